-- What stands in the chat.
local H = require("harness")
local test, eq, wait = H.test, H.eq, H.wait

test("of an endless output its end is kept, in whole characters", function()
  local view = require("agentd.view").new({ sessionId = "s", workspaceUri = "file:///w" })
  local function event(event)
    view:apply({ event = event })
  end
  event({ type = "tool_execution_start", toolCallId = "c", toolName = "bash", title = "x", kind = "execute" })
  for _ = 1, 3 do
    event({ type = "tool_execution_update", toolCallId = "c", update = { channel = "stdout", delta = ("💡"):rep(20001) .. "x" } })
  end
  local output = view.tools.c.output:all()
  assert(#output <= 128 * 1024 and #output > 64 * 1024 - 4)
  eq("💡", output:sub(1, 4))
end)

test("an output of 20,000 lines and a burst of updates are shown whole at their end", function()
  local view = H.session({}, "full", { H.tool("bash", { command = "seq 1 20000" }) }, { ("word "):rep(20000) .. "last" })
  vim.cmd("Agentd run it")
  H.until_idle(view)
  H.shows("20000\n")
  H.shows("last")
  local buf = require("agentd.chat").buffer()
  local win = vim.fn.win_findbuf(buf)[1]
  wait("the chat follows", function()
    return vim.api.nvim_win_get_cursor(win)[1] == vim.api.nvim_buf_line_count(buf)
  end)
end)

-- --- as a text grows ---------------------------------------------------------------------------------

local chat, render, views = require("agentd.chat"), require("agentd.render"), require("agentd.view")

-- A view without a session, shown; with a function that gives it an event.
local function shown()
  local view = views.new({ sessionId = "drawn", workspaceUri = "file:///w", model = "m", mode = "ask" }, chat.touch)
  chat.show(view)
  chat.open(false)
  return view, function(event)
    view:apply({ event = event })
  end
end

local function said(message_id, kind, index)
  return function(delta)
    return { type = "message_update", messageId = message_id, update = { kind = kind, index = index, delta = delta } }
  end
end

-- What is drawn is what would be drawn at once.
local function is_whole(view)
  chat.redraw()
  local lines = {}
  for _, item in ipairs(view.items) do
    vim.list_extend(lines, render.item(item).lines)
  end
  vim.list_extend(lines, render.footer(view).lines)
  local there = H.lines(chat.buffer())
  if #there == #lines + 1 and there[#there] == "" then
    table.remove(there) -- the line that an empty buffer has
  end
  for number = 1, math.max(#lines, #there) do
    eq({ number, lines[number] }, { number, there[number] })
  end
end

local HARD = {
  "plain ", "\r\n", "\r", "\n", "\n\n", "\27[1", "m red", "\27[0m", "\27", "[2Kx", "é💡", "\0\8bell", "` `` ", "```\n", "`", "``", "\n`````\n", "> ", "",
} -- stylua: ignore

test("what is drawn as it grows reads like what is drawn at once, wherever it was cut", function()
  local view, event = shown()
  event({ type = "message_start", message = { role = "assistant", messageId = "a" } })
  local grow = { said("a", "thinking", 0), said("a", "text", 1) }
  event({ type = "tool_execution_start", toolCallId = "c", toolName = "bash", title = "x", kind = "execute" })
  math.randomseed(7)
  for step = 1, 1200 do
    local piece = HARD[math.random(#HARD)]
    if step % 3 == 0 then
      event({ type = "tool_execution_update", toolCallId = "c", update = { channel = "stdout", delta = piece } })
    else
      event(grow[step < 400 and 1 or step % 100 == 1 and 1 or 2](piece))
    end
    if step % 4 ~= 0 then
      is_whole(view)
    end
  end
  event({ type = "message_end", message = { role = "assistant", messageId = "a", content = { { type = "text", text = "all" } } } })
  is_whole(view)
end)

test("only what came is written into the buffer, however long the answer is", function()
  local view, event = shown()
  event({ type = "message_start", message = { role = "assistant", messageId = "a" } })
  local say = said("a", "text", 0)
  event(say(("a line of some length\n"):rep(5000)))
  chat.redraw()
  local written, items = 0, render.item
  vim.api.nvim_buf_attach(chat.buffer(), false, {
    on_lines = function(_, _, _, first, _, last)
      written = written + last - first
    end,
  })
  render.item = function()
    error("the whole answer is rendered anew")
  end
  for number = 1, 100 do
    event(say(("word %d\n"):format(number)))
    chat.redraw()
  end
  render.item = items
  assert(written <= 300, ("%d lines were written for 100"):format(written))
  is_whole(view)
end)

test("highlighting of what grew is that of a text that was there at once", function()
  local _, event = shown()
  event({ type = "message_start", message = { role = "assistant", messageId = "a" } })
  local say = said("a", "text", 0)
  local text = "# Head\n\nSome *emphasis* and `code`.\n\n```lua\nlocal x = 'a' -- b\n```\n\n- one\n- two **bold**\n"
  for at = 1, #text, 3 do
    event(say(text:sub(at, at + 2)))
    chat.redraw()
    vim.treesitter.get_parser(chat.buffer(), "markdown"):parse(true) -- what is on the screen is parsed each time
  end
  local fresh = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(fresh, 0, -1, false, H.lines(chat.buffer()))
  vim.treesitter.start(fresh, "markdown")
  local function captures(buf)
    vim.treesitter.get_parser(buf, "markdown"):parse(true)
    local found = {}
    for row, line in ipairs(H.lines(buf)) do
      for column = 0, #line - 1 do
        local names = vim.tbl_map(function(capture)
          return capture.lang .. ":" .. capture.capture
        end, vim.treesitter.get_captures_at_pos(buf, row - 1, column))
        table.insert(found, ("%d,%d %s"):format(row, column, table.concat(names, " ")))
      end
    end
    return found
  end
  eq(captures(fresh), captures(chat.buffer()))
  assert(vim.iter(captures(fresh)):any(function(each)
    return each:find("markup.strong", 1, true)
  end))
end)

test("the chat is followed from its end only", function()
  local _, event = shown()
  local win = vim.fn.win_findbuf(chat.buffer())[1]
  event({ type = "message_start", message = { role = "assistant", messageId = "a" } })
  local say = said("a", "text", 0)
  event(say(("line\n"):rep(200)))
  chat.redraw()
  local function last()
    return vim.api.nvim_buf_line_count(chat.buffer())
  end
  eq(last(), vim.api.nvim_win_get_cursor(win)[1])
  vim.api.nvim_win_set_cursor(win, { 50, 2 })
  local top = vim.api.nvim_win_call(win, vim.fn.winsaveview).topline
  event(say(("more\n"):rep(200)))
  chat.redraw()
  eq({ 50, 2 }, vim.api.nvim_win_get_cursor(win))
  eq(top, vim.api.nvim_win_call(win, vim.fn.winsaveview).topline)
  vim.api.nvim_win_set_cursor(win, { last(), 0 })
  event(say("and on\n"))
  chat.redraw()
  eq(last(), vim.api.nvim_win_get_cursor(win)[1])
end)
