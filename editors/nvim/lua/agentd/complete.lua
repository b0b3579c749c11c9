--- Completion of `@file` and `/command`, in the prompt's window and after `:Agentd`.
local client = require("agentd.client")
local config = require("agentd.config")

local M = {}

local MAX_FILES, FRESH_MS = 20000, 5000
local cache = { root = nil, at = 0, files = {} }
M.commands = {} -- what `agentd/commands` told last
M.models = {}

--- The files below a folder that git would not ignore, else whatever is there; relative.
function M.files(root)
  if cache.root == root and vim.uv.now() - cache.at < FRESH_MS then
    return cache.files
  end
  local listed = vim.system({ "git", "-C", root, "-c", "core.fsmonitor=", "ls-files", "-coz", "--exclude-standard" }, { text = true }):wait(3000)
  local files
  if listed.code == 0 then
    files = vim.split(listed.stdout, "\0", { plain = true, trimempty = true })
  else
    files = {}
    for name, kind in vim.fs.dir(root, { depth = 6 }) do
      if kind == "file" and not name:find("^%.git/") then
        table.insert(files, name)
      end
      if #files >= MAX_FILES then
        break
      end
    end
  end
  cache = { root = root, at = vim.uv.now(), files = files }
  return files
end

local function matching(names, lead)
  return vim.list_slice(vim.fn.matchfuzzy(names, lead), 1, 50)
end

local function quoted(name)
  return name:find("%s") and ('@"%s"'):format(name) or "@" .. name
end

local function of_files(lead)
  local files = M.files(config.root(vim.api.nvim_get_current_buf()))
  return vim.tbl_map(quoted, lead == "" and vim.list_slice(files, 1, 50) or matching(files, lead))
end

local function of_commands(lead)
  local names = vim.tbl_map(function(command)
    return command.name
  end, M.commands)
  return vim.tbl_map(function(name)
    return "/" .. name
  end, lead == "" and names or matching(names, lead))
end

--- A selection as it can be written in a prompt.
function M.reference(block, root)
  if block.type == "text" then
    return block.text
  end
  local path = vim.uri_to_fname(block.uri)
  local name = vim.startswith(path, root .. "/") and path:sub(#root + 2) or path
  return quoted(("%s:%d-%d"):format(name, block.range.start.line + 1, block.range["end"].line)) .. " "
end

--- What could stand in the place of a word that begins with @ or /.
function M.words(lead)
  local first, rest = lead:sub(1, 1), lead:sub(2)
  if first == "@" then
    return of_files((rest:gsub('^"', "")))
  elseif first == "/" then
    return of_commands(rest)
  end
  return {}
end

--- For commands that take the name of a model or a mode.
function M.names(of, lead)
  local names = of == "modes" and { "plan", "ask", "edit", "auto", "full" } or M.models
  return vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, names)
end

local function word_start()
  local line = vim.api.nvim_get_current_line():sub(1, vim.fn.col(".") - 1)
  return line:find("[@/]%S*$"), line
end

--- For 'omnifunc' of the prompt's buffer.
function M.omnifunc(find_start, base)
  if find_start == 1 then
    local start = word_start()
    return start and start - 1 or -3
  end
  return M.words(base)
end

--- Types @ or /, and offers what can follow where it begins a word.
function M.trigger(key)
  vim.api.nvim_feedkeys(key, "n", false)
  vim.schedule(function()
    local start, line = word_start()
    local before = start and line:sub(start - 1, start - 1) or "x"
    if start and (start == 1 or before:find("%s")) and vim.fn.mode() == "i" then
      local words = M.words(line:sub(start))
      if #words > 0 then
        vim.fn.complete(start, words)
      end
    end
  end)
end

--- Asks agentd what can be completed.
function M.refresh(root)
  if client.serves("agentd/commands") then
    client.request("agentd/commands", { workspaceUri = vim.uri_from_fname(root) }, function(_, result)
      M.commands = result and result.commands or M.commands
    end)
  end
  client.request("agentd/models", {}, function(_, result)
    M.models = {}
    for _, model in ipairs(result and result.models or {}) do
      if model.available then
        table.insert(M.models, model.id)
      end
    end
  end)
end

--- A prompt's text as blocks: `/command` at its beginning, and each `@file` that is there.
function M.blocks(text, root)
  local name, arguments = text:match("^/([%w_:-]+)%s*(.*)$")
  if name and vim.iter(M.commands):any(function(command)
    return command.name == name
  end) then
    return { { type = "command", name = name, arguments = arguments } }
  end
  local blocks = { { type = "text", text = text } }
  local seen = {}
  for quoted_name, plain in text:gmatch('@"([^"\n]+)"()') do
    seen[#seen + 1] = { quoted_name, plain }
  end
  for plain in text:gmatch("%f[%S]@([^%s\"]+)") do
    seen[#seen + 1] = { (plain:gsub("[,;:.)]+$", "")) }
  end
  for _, found in ipairs(seen) do
    local path, first, last = found[1]:match("^(.-):(%d+)%-?(%d*)$")
    local file = vim.fs.joinpath(root, path or found[1])
    if vim.uv.fs_stat(file) then
      local block = { type = "resource", uri = vim.uri_from_fname(file) }
      if first then
        local to = tonumber(last) or tonumber(first)
        block.range = { start = { line = tonumber(first) - 1, character = 0 }, ["end"] = { line = to, character = 0 } }
      end
      table.insert(blocks, block)
    end
  end
  return blocks
end

return M
