--- Edits of open documents. Neovim's own handler answers `applied: true` for an edit that it has skipped, and
--- does not look at the version of a buffer that was never changed, so this one looks first.
local client = require("agentd.client")

local M = {}

local function buffer_of(change)
  local uri = change.textDocument and change.textDocument.uri
  local buf = uri and client.buffer(uri)
  return buf and vim.api.nvim_buf_is_loaded(buf) and buf or nil
end

local function stale(changes)
  for number, change in ipairs(changes) do
    local wanted, buf = vim.tbl_get(change, "textDocument", "version"), buffer_of(change)
    local have = buf and client.version(buf)
    if type(wanted) == "number" and have and have ~= wanted then
      return number, ("the buffer is at version %d, the edit is for %d"):format(have, wanted)
    end
    if buf and not vim.bo[buf].modifiable then
      return number, "the buffer is not modifiable"
    end
  end
end

--- `workspace/applyEdit`.
function M.apply(err, params, ctx)
  local changes = vim.list_slice(params.edit.documentChanges or {})
  for uri in pairs(params.edit.changes or {}) do
    table.insert(changes, { textDocument = { uri = uri } })
  end
  local number, reason = stale(changes)
  if number then
    return { applied = false, failedChange = number - 1, failureReason = reason }
  end
  for _, change in ipairs(changes) do
    local buf = buffer_of(change)
    if buf then -- an undo step of its own: else it would join what the user typed last
      vim.bo[buf].undolevels = vim.bo[buf].undolevels
    end
  end
  -- The chat tells what is done: labels, of the edit and since 0.12 of its parts, would be printed, and ask for Enter.
  params.edit.changeAnnotations = nil
  for _, change in ipairs(changes) do
    for _, each in ipairs(change.edits or {}) do
      each.annotationId = nil
    end
  end
  return vim.lsp.handlers["workspace/applyEdit"](err, { edit = params.edit }, ctx)
end

local function check(buf)
  if vim.api.nvim_buf_is_loaded(buf) and not vim.bo[buf].modified then
    local before = vim.bo[buf].autoread
    vim.bo[buf].autoread = true
    pcall(vim.cmd, "silent! checktime " .. buf) -- nothing to press Enter for where a file is gone
    if vim.api.nvim_buf_is_valid(buf) then
      vim.bo[buf].autoread = before
    end
  end
end

--- Has Neovim read files again that have changed on disk, where their buffers are open and unchanged; without
--- `files` all that agentd follows, as after a command.
function M.reload(files)
  for _, file in ipairs(files or {}) do
    local buf = client.buffer(file.uri)
    if buf then
      check(buf)
    end
  end
  for _, buf in ipairs(files and {} or vim.api.nvim_list_bufs()) do
    if client.version(buf) then
      check(buf)
    end
  end
end

return M
