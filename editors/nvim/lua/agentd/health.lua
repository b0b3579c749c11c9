--- `:checkhealth agentd`.
local client = require("agentd.client")
local config = require("agentd.config")

local M = {}

local function check_neovim(health)
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim 0.10 or newer is needed")
  end
  if pcall(vim.treesitter.language.inspect, "markdown") then
    health.ok("the treesitter parser for Markdown is there")
  else
    health.warn("there is no treesitter parser for Markdown: answers are shown without highlighting")
  end
end

local function check_command(health)
  local command = config.options.cmd[1]
  if vim.fn.executable(command) == 0 then
    health.error(command .. " is not an executable", { "pip install agentd-lsp", "or set `cmd` in setup()" })
    return
  end
  local asked = {} -- `python -m agentd` is a command, too
  for _, part in ipairs(config.options.cmd) do
    if part:sub(1, 2) == "--" then
      break
    end
    table.insert(asked, part)
  end
  table.insert(asked, "--version")
  local ran = vim.system(asked, { text = true, env = config.options.env }):wait(10000)
  if ran.code == 0 then
    health.ok(("%s: %s"):format(vim.fn.exepath(command), vim.trim(ran.stdout)))
  else
    health.warn(("%s --version failed: %s"):format(command, vim.trim(ran.stderr or "")))
  end
end

local function check_daemon(health)
  if not client.is_ready() then
    health.info("agentd does not run yet: `:Agentd` starts it")
    return
  end
  health.ok(("agentd %s runs, protocol %d"):format(client.announced().version, client.announced().protocol))
  local done = false
  client.request("agentd/status", {}, function(err, status)
    done = true
    if err then
      return health.error(err)
    end
    for _, problem in ipairs(status.problems) do
      local report = problem.severity == "error" and health.error or problem.severity == "warning" and health.warn or health.info
      report(problem.message)
    end
    if #status.problems == 0 then
      health.ok("agentd reports no problem")
    end
  end)
  if not vim.wait(5000, function()
    return done
  end, 20) then
    health.error("agentd does not answer")
  end
end

function M.check()
  local health = vim.health
  health.start("agentd")
  check_neovim(health)
  check_command(health)
  check_daemon(health)
end

return M
