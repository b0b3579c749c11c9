--- The options of `setup()`, each with its default. `:help agentd-options` tells what they mean.
local M = {}

local defaults = {
  cmd = { "agentd", "--stdio" },
  env = nil,
  root = nil,
  model = nil,
  mode = nil,
  trusted = nil,
  save = "ask",
  when_busy = "ask",
  chat = { position = "right", width = 0.42, prompt_height = 4 },
  keys = { send = "<CR>", send_insert = "<C-s>", cancel = "<C-c>", close = "q" },
}

M.options = vim.deepcopy(defaults)

local choices = {
  save = { "ask", "always", "never" },
  when_busy = { "ask", "steer", "queue", "interrupt" },
  ["chat.position"] = { "right", "left", "below", "tab" },
}

local kinds = {
  cmd = "table",
  env = "table",
  root = "function",
  model = "string",
  mode = "string",
  trusted = "boolean",
  save = "string",
  when_busy = "string",
  chat = "table",
  keys = "table",
}

local function refuse(what)
  error("agentd.setup: " .. what, 0)
end

local function check(options)
  for name, value in pairs(options) do
    local kind = kinds[name] or refuse(("there is no option %q"):format(name))
    if type(value) ~= kind then
      refuse(("%s must be a %s"):format(name, kind))
    end
    if type(value) == "table" and type(defaults[name]) == "table" and not vim.islist(defaults[name]) then
      for inner in pairs(value) do
        if defaults[name][inner] == nil then
          refuse(("there is no option %q"):format(name .. "." .. inner))
        end
      end
    end
  end
  for path, allowed in pairs(choices) do
    local value = vim.tbl_get(options, unpack(vim.split(path, ".", { plain = true })))
    if value ~= nil and not vim.tbl_contains(allowed, value) then
      refuse(("%s must be one of %s"):format(path, table.concat(allowed, ", ")))
    end
  end
end

--- Takes the user's options over the defaults. Raises an error that names what is wrong.
function M.setup(options)
  options = options or {}
  check(options)
  M.options = vim.tbl_deep_extend("force", vim.deepcopy(defaults), options)
  if options.cmd then
    M.options.cmd = options.cmd -- a list is replaced, not merged
  end
end

--- The folder that a buffer's work happens in: the repository around its file, else the working directory.
function M.root(buf)
  if M.options.root then
    return vim.fs.normalize(M.options.root(buf))
  end
  local cwd = vim.fn.getcwd()
  local name = vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) or ""
  local found = name ~= "" and vim.fs.root(buf, { ".git", ".hg", ".agentd" }) or nil
  return vim.fs.normalize(found or cwd)
end

return M
