-- What users do that nobody thought of.
local H = require("harness")
local agentd, test, eq, wait = H.agentd, H.test, H.eq, H.wait

local chat, client, config = require("agentd.chat"), require("agentd.client"), require("agentd.config")

local function said(text)
  wait("it is said: " .. text, function()
    return vim.iter(H.said):any(function(line)
      return line:find(text, 1, true)
    end)
  end)
end

local function stopped()
  agentd.stop()
  wait("it has ended", function()
    return not client.id()
  end)
end

local function floats()
  return vim.tbl_filter(function(win)
    local shown = vim.api.nvim_win_get_config(win)
    return shown.relative ~= "" and not shown.hide
  end, vim.api.nvim_list_wins())
end

test("of several questions at once the one in view is the one that is answered", function()
  local permission = require("agentd.permission")
  local view = H.session({}, "ask", { "x" })
  local answers = {}
  local function question(id)
    local subject = { type = "command", command = "run " .. id, cwd = "/w" }
    local option = { optionId = "yes-" .. id, kind = "allow_once", label = "Allow" }
    coroutine.wrap(function()
      answers[id] = permission.ask({ requestId = id, title = "run " .. id, subject = subject, options = { option } })
    end)()
  end
  local chosen = {}
  H.choose("agentd_permission", function(options)
    table.insert(chosen, options[1].optionId)
    return nil -- put off
  end)
  for _, id in ipairs({ "one", "two", "three" }) do
    question(id)
  end
  wait("each had its turn", function()
    return #chosen == 3
  end)
  local function in_view()
    eq(1, #floats())
    return H.lines(vim.api.nvim_win_get_buf(floats()[1]))[1]
  end
  for _, id in ipairs({ "three", "two", "one" }) do
    eq("run " .. id, in_view())
    eq(id, permission.current().requestId)
    permission.resolved(id)
    wait("it is answered", function()
      return answers[id] and (id == "one" or in_view() ~= "run " .. id)
    end)
  end
  eq({}, floats())
  eq(nil, permission.current())
  eq({}, view.pending)
end)

test("an answer of one very long line, of right-to-left text and of joined emoji is there to the byte", function()
  local long, rtl, emoji = ("x"):rep(300000), "שלום עולם ‏abc‎ مرحبا", "👩‍👩‍👧‍👦 🏳️‍🌈 é́́́"
  local view = H.session({}, "ask", { long .. "\n" .. rtl .. "\n" .. emoji })
  vim.cmd("Agentd " .. rtl .. " " .. emoji)
  H.until_idle(view)
  H.shows("\n" .. emoji .. "\n")
  local lines = H.lines(chat.buffer())
  assert(vim.tbl_contains(lines, rtl .. " " .. emoji), "the prompt")
  for _, line in ipairs({ long, rtl, emoji }) do
    assert(vim.tbl_contains(lines, line), line:sub(1, 80))
  end
end)

test("a session of 2,000 messages is shown whole, with its folds", function()
  local view = H.session({}, "ask", { "x" })
  local messages = {}
  for number = 1, 1000 do
    local call = { type = "tool_call", id = "c" .. number, name = "bash", arguments = { command = "echo " .. number } }
    local content = { { type = "text", text = "answer " .. number }, call }
    table.insert(messages, { role = "assistant", messageId = "a" .. number, content = content })
    local result = { { type = "text", text = "out " .. number } }
    table.insert(messages, { role = "tool_result", messageId = "r" .. number, toolCallId = "c" .. number, content = result })
  end
  view:load({ session = view.info, messages = messages, seq = 5000, hasMore = true })
  agentd.open()
  H.shows("out 1000")
  H.shows("The newest 2000 of")
  H.shows("answer 1\n")
  local win = vim.fn.win_findbuf(chat.buffer())[1]
  vim.api.nvim_win_call(win, function()
    for _, number in ipairs({ 1, 500, 1000 }) do
      local line = vim.fn.search(("^▸ ✓ bash echo %d$"):format(number), "w")
      eq(line, vim.fn.foldclosed(line))
    end
  end)
  vim.cmd("stopinsert")
end)

test("a file that is read again with :edit while its edit is asked about is edited all the same", function()
  local edit = { file_path = "a.txt", old_string = "two", new_string = "TWO" }
  local view, root = H.session({ ["a.txt"] = "one\ntwo" }, "ask", { H.tool("read_file", { file_path = "a.txt" }) }, {
    H.tool("edit_file", edit),
  }, { "done" })
  local buf = H.edit("a.txt")
  vim.cmd("Agentd edit it")
  wait("the question", function()
    return #view.pending == 1
  end)
  vim.cmd("edit!")
  vim.cmd("AgentdAccept")
  H.shows("done")
  H.until_idle(view)
  local text = vim.bo[buf].modified and H.lines(buf) or vim.fn.readfile(root .. "/a.txt")
  eq({ "one", "TWO" }, text)
end)

test("a file whose buffer is wiped out while its edit is asked about is edited on disk", function()
  local edit = { file_path = "a.txt", old_string = "two", new_string = "TWO" }
  local view, root = H.session({ ["a.txt"] = "one\ntwo" }, "ask", { H.tool("read_file", { file_path = "a.txt" }) }, {
    H.tool("edit_file", edit),
  }, { "done" })
  local buf = H.edit("a.txt")
  vim.cmd("Agentd edit it")
  wait("the question", function()
    return #view.pending == 1
  end)
  vim.cmd("bwipeout! " .. buf)
  vim.cmd("AgentdAccept")
  H.shows("done")
  H.until_idle(view)
  eq({ "one", "TWO" }, vim.fn.readfile(root .. "/a.txt"))
end)

test("in a folder that is gone it is said, and elsewhere work goes on", function()
  local root = H.workspace({})
  stopped()
  vim.fn.delete(root, "rf")
  vim.cmd("Agentd begin")
  said("is no folder (any more)")
  eq(nil, client.id())
  local view = H.session({}, "ask", { "here it works" })
  vim.cmd("Agentd begin")
  H.shows("here it works")
  H.until_idle(view)
end)

-- An agentd that notes each start in a file, and then does this.
local function counting(script)
  local path, starts = vim.fn.tempname(), vim.fn.tempname()
  vim.fn.writefile(vim.split(("#!/bin/sh\necho start >> %s\n%s"):format(starts, script), "\n"), path)
  vim.uv.fs_chmod(path, tonumber("755", 8))
  return path, function()
    return vim.uv.fs_stat(starts) and #vim.fn.readfile(starts) or 0
  end
end

test("an agentd that crashes at each start is not started again and again", function()
  local view = H.session({}, "ask", { "here it works" })
  vim.cmd("Agentd") -- a chat that would be gone on with
  vim.cmd("stopinsert")
  stopped()
  local before, may_restart = config.options.cmd, client.may_restart
  local path, starts = counting("exit 7")
  config.options.cmd = { path, "--stdio" }
  vim.cmd("Agentd begin")
  said("agentd ended (code 7)")
  H.shows("agentd ended again and again (code 7, signal 0): see :checkhealth agentd")
  local count = starts()
  assert(count <= 4, ("it was started %d times"):format(count))
  vim.wait(300)
  eq(count, starts())
  eq(nil, client.id())
  config.options.cmd = before
  vim.cmd("Agentd and on") -- whoever asks for it himself is served
  H.shows("here it works")
  H.until_idle(view)
  eq(may_restart, client.may_restart)
end)
