--- Where the user looks, for the next prompt: the file in front, what is selected in it and which lines can be seen.
local client = require("agentd.client")

local M = {}

local DELAY_MS = 200
local timer, told

local function lines(first, last)
  return { start = { line = first - 1, character = 0 }, ["end"] = { line = last - 1, character = 0 } }
end

local function selected(win)
  local mode = vim.api.nvim_get_mode().mode:sub(1, 1)
  if mode == "v" or mode == "V" or mode == "\22" then
    local first, last = vim.fn.line("v", win), vim.fn.line(".", win)
    return lines(math.min(first, last), math.max(first, last) + 1)
  end
  local at = vim.api.nvim_win_get_cursor(win)[1]
  return lines(at, at)
end

--- Tells agentd of a buffer that it follows, as the current window shows it, where that is news.
function M.tell(buf)
  local win = vim.api.nvim_get_current_win()
  if not client.version(buf) or vim.api.nvim_win_get_buf(win) ~= buf then
    return
  end
  local visible = lines(vim.fn.line("w0", win), vim.fn.line("w$", win) + 1)
  local focus = { uri = vim.uri_from_bufnr(buf), selection = selected(win), visible = visible }
  if not vim.deep_equal(focus, told) then
    told = focus
    client.notify("agentd/focus", focus)
  end
end

--- Another process does not know it.
function M.forget()
  told = nil
end

vim.api.nvim_create_autocmd({ "BufEnter", "CursorHold", "ModeChanged" }, {
  group = vim.api.nvim_create_augroup("agentd_focus", {}),
  callback = function(args)
    if timer then
      timer:stop()
    end
    timer = vim.defer_fn(function()
      M.tell(args.buf)
    end, DELAY_MS)
  end,
})

return M
