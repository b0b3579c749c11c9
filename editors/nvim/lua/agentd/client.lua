--- The agentd process of this Neovim, as an LSP client: start, requests, and what happens when it ends.
local config = require("agentd.config")

local M = {
  --- Called with the params of each `agentd/event`.
  on_event = function() end,
  --- Called when the process has ended: `on_end(asked, code, signal)`.
  on_end = function() end,
  --- What Neovim runs itself of the commands that code actions name.
  commands = {},
  --- After so long without an answer to `initialize` the user is told.
  SLOW_MS = 10000,
}

local state = { id = nil, stopping = false, waiting = {}, roots = {}, starts = {} }

local RESTARTS, WINDOW_MS = 3, 60000 -- so many restarts by themselves in so much time

-- 0.10 has functions (client.request(...)), 0.11 and later methods (client:request(...)).
local function call(client, name, ...)
  if vim.fn.has("nvim-0.11") == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

--- What the wire said, without its nulls: Neovim gives them as nil up to 0.11, as `vim.NIL` since.
function M.plain(value)
  if type(value) ~= "table" then
    return value ~= vim.NIL and value or nil
  end
  for key, inner in pairs(value) do
    if inner == vim.NIL then
      value[key] = nil
    elseif type(inner) == "table" then
      M.plain(inner)
    end
  end
  return value
end

local function current()
  return state.id and vim.lsp.get_client_by_id(state.id) or nil
end

--- Whether the process runs and has answered `initialize`.
function M.is_ready()
  local client = current()
  return client ~= nil and client.initialized == true
end

--- What agentd announced of itself; empty before it did.
function M.announced()
  local client = current()
  return client and vim.tbl_get(client.server_capabilities or {}, "experimental", "agentd") or {}
end

--- Whether agentd serves this method.
function M.serves(method)
  return vim.tbl_contains(M.announced().methods or {}, method)
end

-- Who waits is taken out at once: whoever comes behind waits for another process.
local function take_waiting()
  local waiting = state.waiting
  state.waiting = {}
  return waiting
end

local function settle(waiting, err)
  for _, callback in ipairs(waiting) do
    callback(err)
  end
end

local function ended(code, signal)
  local asked = state.stopping
  local waiting = take_waiting()
  state.id, state.stopping, state.roots = nil, false, {}
  vim.schedule(function()
    settle(waiting, ("agentd ended (%s %d)"):format(signal ~= 0 and "signal" or "code", signal ~= 0 and signal or code))
    M.on_end(asked, code, signal)
  end)
end

-- Neovim takes versioned edits, and does not say so.
local function capabilities()
  local own = { workspace = { workspaceEdit = { documentChanges = true } } }
  return vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), own)
end

local function options(root)
  local said = config.options
  return {
    name = "agentd",
    cmd = said.cmd,
    cmd_env = said.env,
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } },
    init_options = {
      agentd = {
        permission = true,
        save = true,
        diagnostics = true,
        model = said.model,
        mode = said.mode,
        trusted = said.trusted,
      },
    },
    capabilities = capabilities(),
    handlers = require("agentd.handlers"),
    commands = M.commands,
    on_init = function()
      vim.schedule(function()
        settle(take_waiting(), nil)
      end)
    end,
    on_exit = ended,
  }
end

local function spawn(root)
  local wanted = options(root)
  if vim.fn.executable(wanted.cmd[1]) == 0 then
    return nil, ("%s is not an executable. Install it with `pip install agentd-lsp`, or set `cmd`"):format(wanted.cmd[1])
  end
  if vim.fn.has("nvim-0.11") == 1 then
    state.id = vim.lsp.start(wanted, { attach = false })
  else
    state.id = vim.lsp.start_client(wanted) -- `start` would attach the current buffer, whatever it is
  end
  if not state.id then
    return nil, "agentd could not be started"
  end
  state.roots = { [root] = true }
  local id = state.id
  vim.defer_fn(function()
    if state.id == id and not M.is_ready() then
      vim.notify(
        ("agentd: %s does not answer; :AgentdStop gives it up"):format(table.concat(wanted.cmd, " ")),
        vim.log.levels.WARN
      )
    end
  end, M.SLOW_MS)
  return state.id
end

local function add_root(root)
  if state.roots[root] then
    return
  end
  state.roots[root] = true
  local folder = { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) }
  call(current(), "notify", "workspace/didChangeWorkspaceFolders", { event = { added = { folder }, removed = {} } })
end

--- Has agentd run for a folder; `callback(err)` once it does.
function M.start(root, callback)
  if M.is_ready() then
    add_root(root)
    return callback(nil)
  end
  table.insert(state.waiting, function(err)
    if not err then
      add_root(root)
    end
    callback(err)
  end)
  if not state.id then
    local _, err = spawn(root)
    if err then
      settle(take_waiting(), err)
    end
  end
end

--- Whether agentd may be started again by itself: not when it dies over and over.
function M.may_restart()
  local now = vim.uv.now()
  state.starts = vim.tbl_filter(function(at)
    return now - at < WINDOW_MS
  end, state.starts)
  if #state.starts >= RESTARTS then
    return false
  end
  table.insert(state.starts, now)
  return true
end

--- Sends a request; `callback(err, result)`, where `err` is a text for the user.
function M.request(method, params, callback)
  callback = callback or function() end
  local client = current()
  if not client then
    return callback("agentd is not running")
  end
  -- Open documents are told before: Neovim sends what was typed ahead of each request.
  local object = next(params) and params or vim.empty_dict() -- an empty table would be sent as a list
  local sent = call(client, "request", method, object, function(err, result)
    local text = err and (err.message or vim.inspect(err))
    local hint = err and type(err.data) == "table" and err.data.hint
    callback(text and (type(hint) == "string" and text .. " " .. hint or text) or nil, M.plain(result))
  end)
  if not sent then
    callback("agentd is not running")
  end
end

--- Sends a notification.
function M.notify(method, params)
  local client = current()
  if client then
    call(client, "notify", method, params)
  end
end

--- The buffer of a file, nil where there is none. Names are compared as they are: |bufnr()| takes patterns.
function M.buffer(uri)
  local ok, path = pcall(vim.uri_to_fname, uri)
  if not ok then
    return nil
  end
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if name ~= "" and (name == path or vim.uv.fs_realpath(name) == path) then
      return buf
    end
  end
end

--- How agentd counts the characters of a line.
function M.encoding()
  local client = current()
  return client and client.offset_encoding or "utf-16"
end

--- Whether a buffer is a file that agentd should know as it is shown.
local function is_document(buf)
  local name = vim.api.nvim_buf_get_name(buf)
  if not vim.api.nvim_buf_is_loaded(buf) or vim.bo[buf].buftype ~= "" or name == "" or name:find("^%w+://") then
    return false
  end
  local path = vim.fs.normalize(name)
  for root in pairs(state.roots) do
    if vim.startswith(path, root == "/" and root or root .. "/") then
      return true
    end
  end
  return false
end

--- Has agentd follow a buffer, where it is a file of one of its folders.
function M.attach(buf)
  if M.is_ready() and is_document(buf) and not vim.lsp.buf_is_attached(buf, state.id) then
    vim.lsp.buf_attach_client(buf, state.id)
  end
end

--- Has it follow all files that are open.
function M.attach_all()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    M.attach(buf)
  end
end

--- The version of a buffer that agentd was told last, nil where it does not know the buffer.
function M.version(buf)
  if state.id and vim.lsp.buf_is_attached(buf, state.id) then
    return vim.lsp.util.buf_versions[buf]
  end
end

--- Ends the process.
function M.stop()
  local client = current()
  if client then
    state.stopping = true
    call(client, "stop")
  end
end

--- The process id of the LSP client, for health checks and tests.
function M.id()
  return state.id
end

return M
