--- `:checkhealth agentd`.
local client = require("agentd.client")
local config = require("agentd.config")

local M = {
  --- The protocol that this plugin speaks, and the first agentd that speaks it.
  PROTOCOL = 1,
  OLDEST = "0.1.0",
}

local WAIT_MS = 10000

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

-- `python -m agentd` is a command, too: what comes before the first option, and these arguments.
local function ask(...)
  local asked = {}
  for _, part in ipairs(config.options.cmd) do
    if part:sub(1, 2) == "--" then
      break
    end
    table.insert(asked, part)
  end
  vim.list_extend(asked, { ... })
  local ok, ran = pcall(function()
    return vim.system(asked, { text = true, env = config.options.env, cwd = config.root(0) }):wait(WAIT_MS)
  end)
  return ok and ran or { code = -1, stdout = "", stderr = tostring(ran) }
end

local INSTALL = { "pip install --upgrade agentd-lsp", "or set `cmd` in setup() to the agentd that is meant" }

--- Whether the command is there, and is an agentd that this plugin can work with.
local function check_command(health)
  local command = config.options.cmd[1]
  if vim.fn.executable(command) == 0 then
    health.error(command .. " is not an executable", INSTALL)
    return false
  end
  local ran = ask("--version")
  local said = vim.trim((ran.stdout or "") .. (ran.stderr or ""))
  local version = ran.code == 0 and vim.trim(ran.stdout):match("^agentd (%d+%.%d+%S*)$")
  if not version then
    local why = ran.code == 124 and "nothing within ten seconds" or said ~= "" and said or ("exit code %d"):format(ran.code)
    health.error(("%s --version does not say which agentd it is: %s"):format(command, why), INSTALL)
    return false
  elseif vim.version.lt(version:match("^[%d.]+"), M.OLDEST) then
    health.error(("agentd %s is older than this plugin, which needs %s"):format(version, M.OLDEST), INSTALL)
    return false
  end
  health.ok(("%s: agentd %s"):format(vim.fn.exepath(command), version))
  return true
end

local ADVICE = { "`agentd doctor` shows the settings in force and where each comes from" }

local function report(health, severity, message)
  if severity == "error" then
    health.error(message, ADVICE)
  elseif severity == "warning" then
    health.warn(message, ADVICE)
  else
    health.info(message)
  end
end

--- What `agentd doctor` finds in this folder, where no process can be asked.
local function check_configuration(health)
  local ran = ask("doctor")
  local _, from = (ran.stdout or ""):find("\nproblems\n")
  for severity, message in (from and ran.stdout:sub(from + 1) or ""):gmatch("  (%a+)%s+([^\n]+)") do
    report(health, severity, message)
  end
  if ran.code ~= 0 and not from then
    health.error("agentd doctor failed: " .. vim.trim(ran.stderr or ""), ADVICE)
  elseif not from then
    health.ok("`agentd doctor` finds nothing wrong with the configuration")
  end
end

local function check_daemon(health)
  local announced = client.announced()
  if announced.protocol ~= M.PROTOCOL then
    local text = "agentd %s speaks protocol %s, this plugin %d: one of them is too old"
    health.error(text:format(tostring(announced.version), tostring(announced.protocol), M.PROTOCOL), INSTALL)
    return
  end
  health.ok(("agentd %s runs, protocol %d"):format(announced.version, announced.protocol))
  local done = false
  client.request("agentd/status", {}, function(err, status)
    done = true
    if err then
      return health.error(err)
    end
    for _, problem in ipairs(status.problems) do
      report(health, problem.severity, problem.message)
    end
    if #status.problems == 0 then
      health.ok("agentd reports no problem")
    end
  end)
  if not vim.wait(5000, function()
    return done
  end, 20) then
    health.error("agentd does not answer", { ":AgentdStop ends it; the next prompt starts it anew" })
  end
end

function M.check()
  local health = vim.health
  health.start("agentd")
  check_neovim(health)
  local is_usable = check_command(health)
  if client.is_ready() then
    check_daemon(health)
  elseif is_usable then
    check_configuration(health)
    health.info("agentd does not run yet: `:Agentd` starts it")
  end
end

return M
