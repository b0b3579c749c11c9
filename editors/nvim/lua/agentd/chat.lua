--- The chat: a split that shows a view as it changes, and a small one below it to write in.
local config = require("agentd.config")
local drawing = require("agentd.drawing")
local render = require("agentd.render")

local M = { view = nil, send = function() end, cancel = function() end }

local buffers = { chat = nil, prompt = nil }

local function highlights()
  local links = {
    AgentdUser = "Title",
    AgentdThinking = "Comment",
    AgentdToolrunning = "Special",
    AgentdToolasking = "WarningMsg",
    AgentdTooldone = "Function",
    AgentdToolfailed = "DiagnosticError",
  }
  for group, target in pairs(links) do
    vim.api.nvim_set_hl(0, group, { link = target, default = true })
  end
end

-- A buffer that the user has unloaded (:bdelete) has lost its text and its keys: it is made anew.
local function is_valid(buf)
  return buf ~= nil and vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_buf_is_loaded(buf)
end

local function map(buf, mode, key, run, desc)
  if key and key ~= "" then
    vim.keymap.set(mode, key, run, { buffer = buf, nowait = true, desc = "agentd: " .. desc })
  end
end

local function scratch(name, filetype)
  for _, old in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(old) == name then
      pcall(vim.api.nvim_buf_delete, old, { force = true })
    end
  end
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buf, name)
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "nofile", "hide", false
  vim.bo[buf].filetype = filetype
  return buf
end

--- The buffer in which the conversation stands.
function M.buffer()
  if not is_valid(buffers.chat) then
    highlights()
    buffers.chat = scratch("agentd://chat", "markdown")
    vim.bo[buffers.chat].modifiable = false
    vim.bo[buffers.chat].undolevels = -1
    pcall(vim.treesitter.start, buffers.chat, "markdown")
    map(buffers.chat, "n", config.options.keys.close, M.close, "close the chat")
    map(buffers.chat, "n", config.options.keys.cancel, function()
      M.cancel()
    end, "cancel the running prompt")
    map(buffers.chat, "n", "i", M.focus, "write a prompt")
    drawing.forget()
  end
  return buffers.chat
end

--- The buffer in which prompts are written.
function M.prompt_buffer()
  if not is_valid(buffers.prompt) then
    local buf = scratch("agentd://prompt", "agentd")
    buffers.prompt = buf
    vim.bo[buf].omnifunc = "v:lua.require'agentd.complete'.omnifunc"
    local keys = config.options.keys
    map(buf, "n", keys.send, M.submit, "send the prompt")
    map(buf, "i", keys.send_insert, M.submit, "send the prompt")
    map(buf, "n", keys.cancel, function()
      M.cancel()
    end, "cancel the running prompt")
    map(buf, "n", keys.close, M.close, "close the chat")
    for _, trigger in ipairs({ "@", "/" }) do
      map(buf, "i", trigger, function()
        require("agentd.complete").trigger(trigger)
      end, "complete")
    end
  end
  return buffers.prompt
end

--- Sends what was written.
function M.submit()
  local buf = M.prompt_buffer()
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
  if vim.trim(text) ~= "" then
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
    M.send(text)
  end
end

-- The window of this tab page; where the chat is a tab page of its own, that one.
local function window_of(buf)
  local windows = is_valid(buf) and vim.fn.win_findbuf(buf) or {}
  local here = vim.api.nvim_get_current_tabpage()
  return vim.iter(windows):find(function(win)
    return config.options.chat.position == "tab" or vim.api.nvim_win_get_tabpage(win) == here
  end)
end

--- Puts a text into the prompt's buffer, in front of what stands there.
function M.give_back(text)
  local buf = M.prompt_buffer()
  local there = vim.api.nvim_buf_get_lines(buf, 0, -1, false)
  local lines = render.lines(text)
  if #there > 1 or there[1] ~= "" then
    vim.list_extend(lines, there)
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
end

local function dress(win)
  local set = vim.wo[win]
  set.wrap, set.linebreak, set.number, set.relativenumber, set.signcolumn = true, true, false, false, "no"
  set.foldmethod, set.foldenable = "manual", true
  set.foldtext = "v:lua.require'agentd.chat'.foldtext()"
  set.winbar = "%#Title# agentd %*%{get(b:,'agentd_status','')}"
end

local function open_window(position, size)
  if position == "tab" then
    vim.cmd("tab sbuffer " .. M.buffer()) -- and no empty buffer beside it
    return vim.api.nvim_get_current_win()
  end
  local options = { split = position, win = -1 }
  options[position == "below" and "height" or "width"] = size
  return vim.api.nvim_open_win(M.buffer(), false, options)
end

--- Opens the chat; the user's place stays where it is, but with `focus`.
function M.open(focus)
  local chat = config.options.chat
  local win = window_of(M.buffer())
  if not win then
    local whole = chat.position == "below" and vim.o.lines or vim.o.columns
    win = open_window(chat.position, chat.width < 1 and math.floor(whole * chat.width) or chat.width)
    dress(win)
  end
  if not window_of(buffers.prompt) then
    local below = vim.api.nvim_open_win(M.prompt_buffer(), false, { split = "below", win = win, height = chat.prompt_height })
    vim.wo[below].winfixheight, vim.wo[below].number, vim.wo[below].wrap = true, false, true
    vim.wo[below].winbar = "%#Comment# prompt: " .. config.options.keys.send .. " sends %*"
  end
  M.redraw()
  if focus then
    M.focus()
  end
end

--- Goes to where prompts are written.
function M.focus()
  local win = window_of(M.prompt_buffer())
  if win then
    vim.api.nvim_set_current_win(win)
    vim.cmd.startinsert()
  end
end

--- Closes the windows; the session goes on.
function M.close()
  for _, buf in pairs(buffers) do
    for _, win in ipairs(is_valid(buf) and vim.fn.win_findbuf(buf) or {}) do
      if not pcall(vim.api.nvim_win_close, win, true) then -- the last window of Neovim
        vim.api.nvim_win_call(win, vim.cmd.enew)
      end
    end
  end
end

-- --- drawing ----------------------------------------------------------------------------------

--- For 'foldtext': the first line, and how much lies below it.
function M.foldtext()
  local first = vim.fn.getline(vim.v.foldstart)
  return ("%s  [%d lines]"):format(first, vim.v.foldend - vim.v.foldstart)
end

M.touch, M.refresh, M.redraw = drawing.touch, drawing.refresh, drawing.redraw

drawing.target = function()
  if M.view and is_valid(buffers.chat) then
    return M.view, buffers.chat
  end
end

--- Shows another view.
function M.show(view)
  if M.view ~= view then
    drawing.forget()
  end
  M.view = view
  M.buffer()
  M.redraw()
end

return M
