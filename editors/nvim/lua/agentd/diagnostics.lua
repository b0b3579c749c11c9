--- What other language servers and linters say of files, as agentd counts it.
local client = require("agentd.client")

local M = {}

local told_at = {} -- buffer -> the version of its text when its diagnostics were told last
local waiting = {} -- functions that look again

vim.api.nvim_create_autocmd("DiagnosticChanged", {
  group = vim.api.nvim_create_augroup("agentd_diagnostics", {}),
  callback = function(args)
    told_at[args.buf] = client.version(args.buf)
    for _, look in ipairs(vim.list_slice(waiting)) do
      look()
    end
  end,
})

local function units(line, byte, encoding)
  byte = math.min(byte, #line)
  if encoding == "utf-8" then
    return byte
  elseif vim.fn.has("nvim-0.11") == 1 then
    return vim.str_utfindex(line, encoding, byte, false)
  end
  local utf32, utf16 = vim.str_utfindex(line, byte)
  return encoding == "utf-16" and utf16 or utf32
end

-- Neovim counts bytes; LSP what was agreed.
local function position(buf, row, column)
  local line = vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or nil
  return { line = row, character = line and units(line, column, client.encoding()) or column }
end

local function to_lsp(diagnostic)
  local buf, original = diagnostic.bufnr, vim.tbl_get(diagnostic, "user_data", "lsp")
  local code = original and original.code or diagnostic.code
  return {
    range = {
      start = position(buf, diagnostic.lnum, diagnostic.col),
      ["end"] = position(buf, diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col),
    },
    severity = diagnostic.severity, -- Neovim has LSP's numbers
    message = diagnostic.message,
    source = diagnostic.source,
    code = (type(code) == "string" or type(code) == "number") and code or nil,
  }
end

local function item(buf, uri)
  return {
    uri = uri or vim.uri_from_bufnr(buf),
    version = told_at[buf],
    diagnostics = vim.tbl_map(to_lsp, vim.diagnostic.get(buf)),
  }
end

-- Whether what is known of a buffer is of its present text, or there is nobody who would tell.
local function is_fresh(buf)
  if told_at[buf] == client.version(buf) then
    return true
  end
  local others = vim.tbl_filter(function(each)
    return each.id ~= client.id()
  end, vim.lsp.get_clients({ bufnr = buf }))
  return #others == 0 and #vim.diagnostic.get(buf) == 0
end

local function found(uris)
  local items = {}
  for _, uri in ipairs(uris) do
    local buf = client.buffer(uri)
    if buf then
      table.insert(items, item(buf, uri))
    end
  end
  return { items = items }
end

local function all()
  local items = {}
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local is_file = vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= ""
    if is_file and #vim.diagnostic.get(buf) > 0 then
      table.insert(items, item(buf))
    end
  end
  return { items = items }
end

--- `agentd/diagnostics/get`: those of the present texts as soon as they are known, at the latest when the time is up
--- what there is. Runs in a coroutine.
function M.get(params)
  if not params.uris then
    return all()
  end
  local thread, timer, over = coroutine.running(), nil, false
  local function is_known()
    return vim.iter(params.uris):all(function(uri)
      local buf = client.buffer(uri)
      return not buf or is_fresh(buf)
    end)
  end
  if not thread or is_known() then
    return found(params.uris)
  end
  local function look(time_is_up)
    if not over and (time_is_up or is_known()) then
      over = true
      timer:stop()
      waiting = vim.tbl_filter(function(each)
        return each ~= look
      end, waiting)
      vim.schedule(function()
        coroutine.resume(thread, found(params.uris))
      end)
    end
  end
  table.insert(waiting, look)
  timer = vim.defer_fn(function()
    look(true)
  end, params.timeoutMs)
  return coroutine.yield()
end

--- Another process counts versions anew.
function M.forget()
  told_at = {}
end

return M
