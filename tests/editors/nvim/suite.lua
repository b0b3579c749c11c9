-- nvim --clean -l suite.lua: the plugin in a real Neovim, on a real agentd with the scripted model.
package.path = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/?.lua;" .. package.path
local H = require("harness")
local agentd, test, eq, wait = H.agentd, H.test, H.eq, H.wait

test("a prompt opens the chat, and its answer streams in before it has ended", function()
  local view = H.session({}, "ask", { "Half of the ans", hang = true })
  vim.cmd("Agentd what is it?")
  H.shows("what is it?")
  H.shows("Half of the ans")
  eq(true, view.running)
  assert(vim.b[require("agentd.chat").buffer()].agentd_status:find("works", 1, true))
  vim.cmd("AgentdCancel")
  H.until_idle(view)
  H.shows("Cancelled")
  assert(vim.b[require("agentd.chat").buffer()].agentd_status:find("idle", 1, true))
end)

test("the range of a command goes along with its prompt", function()
  local view = H.session({ ["a.txt"] = "one\ntwo\nthree" }, "ask", { "seen" })
  H.edit("a.txt")
  vim.cmd("2,3Agentd explain")
  H.shows("seen")
  H.shows("@a.txt:2-4")
  H.until_idle(view)
end)

test("a tool call is one folded block with its state, its time and what it gave", function()
  local view = H.session({ ["a.txt"] = "needle" }, "full", { H.tool("bash", { command = "echo out of it" }) }, { "done" })
  vim.cmd("Agentd run it")
  H.until_idle(view)
  H.shows("▸ ✓ ")
  H.shows("out of it")
  local buf = require("agentd.chat").buffer()
  local win = vim.fn.win_findbuf(buf)[1]
  vim.api.nvim_win_call(win, function()
    local line = vim.fn.search("^▸ ✓", "w")
    assert(line > 0)
    assert(vim.fn.foldclosed(line) == line, "the call is folded")
    assert(vim.fn.foldclosedend(line) > line)
    vim.cmd(line .. "foldopen")
  end)
  vim.cmd("AgentdModel " .. H.model({ "more" }))
  vim.cmd("Agentd and on")
  H.shows("more")
  vim.api.nvim_win_call(win, function()
    eq(-1, vim.fn.foldclosed(vim.fn.search("^▸ ✓", "w"))) -- what the user opened stays open
  end)
end)

test("a question shows the whole command, and the answer is obeyed", function()
  local _, root = H.session({}, "ask", { H.tool("bash", { command = "touch made; echo \27[31mred" }) }, { "done" })
  local lines
  H.choose("agentd_permission", function(options)
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(win).relative ~= "" then
        lines = vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, false)
      end
    end
    return H.option("allow_once")(options)
  end)
  vim.cmd("Agentd make it")
  H.shows("done")
  assert(lines[1]:find("touch made", 1, true), vim.inspect(lines))
  assert(vim.uv.fs_stat(root .. "/made"))
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    eq("", vim.api.nvim_win_get_config(win).relative)
  end
end)

test("a rejected command does not run", function()
  local _, root = H.session({}, "ask", { H.tool("bash", { command = "touch made" }) }, { "I see" })
  H.choose("agentd_permission", H.option("reject_once"))
  vim.cmd("Agentd make it")
  H.shows("I see")
  H.shows("▸ ✗ ")
  eq(nil, vim.uv.fs_stat(root .. "/made"))
end)

test("a question that nobody chose on is answered by a command", function()
  local view, root = H.session({}, "ask", { H.tool("bash", { command = "touch made" }) }, { "done" })
  vim.cmd("Agentd make it")
  wait("the question", function()
    return #view.pending == 1 and #H.asked == 1
  end)
  H.shows("▸ ? ")
  vim.cmd("AgentdAccept")
  H.shows("done")
  assert(vim.uv.fs_stat(root .. "/made"))
  vim.cmd("AgentdReject")
  assert(vim.tbl_contains(H.said, "agentd: no question is open"))
end)

test("an edit lands in the unsaved buffer, as one undo step that is the edit alone", function()
  local view, root = H.session({ ["a.txt"] = "one\ntwo\nthree" }, "full", { H.tool("read_file", { file_path = "a.txt" }) }, {
    H.tool("edit_file", { file_path = "a.txt", old_string = "three", new_string = "THREE" }),
  }, { "done" })
  local buf = H.edit("a.txt")
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "ONE, not saved" })
  vim.cmd("Agentd edit it")
  H.until_idle(view)
  H.shows("done")
  eq({ "ONE, not saved", "two", "THREE" }, H.lines(buf))
  eq({ "one", "two", "three" }, vim.fn.readfile(root .. "/a.txt"))
  eq(true, vim.bo[buf].modified)
  vim.api.nvim_buf_call(buf, function()
    vim.cmd("silent undo")
  end)
  eq({ "ONE, not saved", "two", "three" }, H.lines(buf))
end)

test("an edit for an older text is refused, and what was typed stays", function()
  local view = H.session({ ["a.txt"] = "one\ntwo" }, "ask", { H.tool("read_file", { file_path = "a.txt" }) }, {
    H.tool("edit_file", { file_path = "a.txt", old_string = "two", new_string = "TWO" }),
  }, { "I read it again" })
  local buf = H.edit("a.txt")
  vim.cmd("Agentd edit it")
  wait("the question", function()
    return #view.pending == 1
  end)
  vim.api.nvim_buf_set_lines(buf, 1, 2, false, { "two, as I want it" })
  vim.cmd("AgentdAccept")
  H.shows("I read it again")
  H.shows("▸ ✗ ")
  H.until_idle(view)
  eq({ "one", "two, as I want it" }, H.lines(buf))
end)

test("Neovim itself refuses an edit for another version of a buffer", function()
  H.session({ ["a.txt"] = "one\ntwo" }, "ask", { "x" })
  local buf = H.edit("a.txt")
  wait("agentd knows the buffer", function()
    require("agentd.client").attach(buf)
    return require("agentd.client").version(buf)
  end)
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "typed" })
  local edit = { range = { start = { line = 0, character = 0 }, ["end"] = { line = 0, character = 3 } }, newText = "X" }
  local change = { textDocument = { uri = vim.uri_from_bufnr(buf), version = -1 }, edits = { edit } }
  local answer = require("agentd.edits").apply(nil, { edit = { documentChanges = { change } } }, {})
  eq(false, answer.applied)
  eq(0, answer.failedChange)
  eq({ "typed", "two" }, H.lines(buf))
end)

test("a command that would not see unsaved text waits for the user's word", function()
  local view, root = H.session({ ["a.txt"] = "one" }, "full", { H.tool("bash", { command = "cat a.txt > b.txt" }) }, { "done" })
  local buf = H.edit("a.txt")
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "unsaved" })
  H.choose("agentd_save", function(_, options)
    assert(options.prompt:find("a.txt", 1, true))
    return "Save"
  end)
  vim.cmd("Agentd run it")
  H.until_idle(view)
  eq({ "unsaved" }, vim.fn.readfile(root .. "/b.txt"))
  eq(false, vim.bo[buf].modified)
end)

test("diagnostics of other servers are told", function()
  H.session({ ["a.txt"] = "one\ntwo" }, "ask", { "x" })
  local buf = H.edit("a.txt")
  local space = vim.api.nvim_create_namespace("other")
  vim.diagnostic.set(space, buf, { { lnum = 1, col = 0, message = "odd", severity = vim.diagnostic.severity.WARN } })
  local told = require("agentd.handlers")["agentd/diagnostics/get"](nil, { uris = { vim.uri_from_bufnr(buf) } })
  eq("odd", told.items[1].diagnostics[1].message)
  eq(2, told.items[1].diagnostics[1].severity)
  eq(1, #require("agentd.handlers")["agentd/diagnostics/get"](nil, {}).items)
end)

test("a diff is shown as one, and by a command in a tab of its own", function()
  local view = H.session({}, "full", { H.tool("write_file", { file_path = "new.txt", content = "hello\n" }) }, { "done" })
  vim.cmd("Agentd write it")
  H.until_idle(view)
  H.shows("+hello")
  H.shows("created new.txt")
  local buf = require("agentd.chat").buffer()
  local added = vim.iter(vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true })):any(function(mark)
    return mark[4].line_hl_group == "DiffAdd"
  end)
  assert(added, "added lines are marked")
  vim.cmd("AgentdDiff")
  wait("the diff", function()
    return vim.bo.filetype == "diff"
  end)
  assert(table.concat(H.lines(0), "\n"):find("+hello", 1, true))
end)

test("what the last prompt did is undone after a question, and the undoing undone", function()
  local view, root = H.session({ ["a.txt"] = "one" }, "full", { H.tool("bash", { command = "echo two > b.txt" }) }, {
    H.tool("write_file", { file_path = "c.txt", content = "three\n" }),
  }, { "done" })
  vim.cmd("Agentd write it")
  H.until_idle(view)
  H.choose("agentd_undo", function(_, options)
    assert(options.prompt:find("c.txt", 1, true), options.prompt)
    return "Bring back"
  end)
  vim.cmd("AgentdUndo")
  wait("the file is gone", function()
    return not vim.uv.fs_stat(root .. "/c.txt")
  end)
  vim.cmd("AgentdUndo!")
  wait("the file is back", function()
    return vim.uv.fs_stat(root .. "/c.txt")
  end)
end)

test("a buffer without changes is read again when its file was changed", function()
  local view = H.session({ ["a.txt"] = "one" }, "full", { H.tool("bash", { command = "echo two > a.txt" }) }, { "done" })
  local buf = H.edit("a.txt")
  vim.cmd("Agentd change it")
  H.until_idle(view)
  wait("the buffer is read again", function()
    return H.lines(buf)[1] == "two"
  end)
end)

test("a prompt while another runs can steer it", function()
  local view = H.session({}, "ask", { H.tool("bash", { command = "true" }) }, { "steered well" })
  vim.cmd("Agentd begin")
  wait("the question", function()
    return #view.pending == 1
  end)
  H.choose("agentd_busy", function(items)
    eq({ "steer", "queue", "interrupt" }, items)
    return "steer"
  end)
  vim.cmd("Agentd but carefully")
  wait("it waits", function()
    return #view.queue == 1
  end)
  H.shows("steer: but carefully")
  vim.cmd("AgentdAccept")
  H.shows("steered well")
  H.until_idle(view)
  eq({}, view.queue)
end)

test("a cancel gives back what waited", function()
  local view = H.session({}, "ask", { "on and on", hang = true })
  vim.cmd("Agentd begin")
  H.shows("on and on")
  agentd.prompt("and then this", { when_busy = "queue" })
  wait("it waits", function()
    return #view.queue == 1
  end)
  vim.cmd("AgentdCancel")
  H.until_idle(view)
  wait("it is given back", function()
    return H.lines(require("agentd.chat").prompt_buffer())[1] == "and then this"
  end)
end)

test("the to-do list stands below the conversation", function()
  local items = { { id = "1", text = "look", status = "completed" }, { id = "2", text = "do", status = "in_progress" } }
  local view = H.session({}, "ask", { H.tool("todo_write", { items = items }) }, { "done" })
  vim.cmd("Agentd plan it")
  H.until_idle(view)
  H.shows("- [x] look")
  H.shows("- [-] do")
end)

test("sessions are listed, resumed, forked and deleted", function()
  local view = H.session({}, "ask", { "first answer" })
  vim.cmd("Agentd the first prompt")
  H.until_idle(view)
  H.shows("first answer")
  vim.cmd("AgentdNew")
  wait("a new session", function()
    return agentd.view().id ~= view.id
  end)
  local function pick(action)
    H.choose("agentd_session", function(items)
      return vim.iter(items):find(function(session)
        return session.sessionId == view.id
      end)
    end)
    H.choose("agentd_session_action", function(actions)
      return vim.iter(actions):find(function(each)
        return each[1] == action
      end)
    end)
    vim.cmd("AgentdSessions")
  end
  pick("Resume")
  wait("it is shown", function()
    return agentd.view().id == view.id
  end)
  H.shows("first answer")
  pick("Fork")
  wait("a fork", function()
    return vim.tbl_get(agentd.view().info, "forkedFrom", "sessionId") == view.id
  end)
  H.shows("first answer")
  pick("Delete")
  wait("it is deleted", function()
    return vim.iter(H.said):any(function(text)
      return text:find("deleted", 1, true)
    end)
  end)
end)

test("a daemon that was killed is started again, and every event is there once", function()
  local view = H.session({}, "ask", { "before the end", hang = true })
  vim.cmd("Agentd begin")
  H.shows("before the end")
  vim.uv.kill(H.daemon(), "sigkill")
  H.shows("agentd ended and is started again")
  H.shows("Interrupted: agentd stopped")
  wait("it is idle", function()
    return not view.running
  end)
  local users = vim.tbl_filter(function(item)
    return item.kind == "user"
  end, view.items)
  eq(1, #users)
  H.agentd.set_model(H.model({ "on we go" }))
  vim.cmd("Agentd go on")
  H.shows("on we go")
end)

test("a prompt after a stop goes on in the same session", function()
  local view = H.session({}, "ask", { "before" })
  vim.cmd("Agentd begin")
  H.until_idle(view)
  vim.cmd("AgentdStop")
  wait("it has ended", function()
    return not require("agentd.client").id()
  end)
  vim.cmd("Agentd and on")
  H.shows("and on")
  eq(view, agentd.view())
  H.until_idle(view)
end)

test("files and commands are completed", function()
  H.session({ ["alpha.txt"] = "x", ["beta file.txt"] = "y" }, "ask", { "x" })
  local complete = require("agentd.complete")
  eq({ "@alpha.txt" }, complete.words("@alp"))
  eq({ '@"beta file.txt"' }, complete.words("@beta"))
  complete.commands = { { name = "review" }, { name = "compact" } }
  eq({ "/review" }, complete.words("/rev"))
  eq({ "plan" }, complete.names("modes", "p"))
end)

test("@file becomes a reference, and what is no file stays text", function()
  local _, root = H.session({ ["a.txt"] = "x", ["b c.txt"] = "y" }, "ask", { "x" })
  local blocks = require("agentd.complete").blocks('see @a.txt:2-3, @"b c.txt" and me@example.org or @nobody', root)
  eq(3, #blocks)
  eq({ "b c.txt", "a.txt" }, { vim.fs.basename(vim.uri_to_fname(blocks[2].uri)), vim.fs.basename(vim.uri_to_fname(blocks[3].uri)) })
  eq({ line = 1, character = 0 }, blocks[3].range.start)
  eq({ line = 3, character = 0 }, blocks[3].range["end"])
end)

-- --- what goes wrong ------------------------------------------------------------------------------

local function float()
  return vim.iter(vim.api.nvim_list_wins()):find(function(win)
    return vim.api.nvim_win_get_config(win).relative ~= ""
  end)
end

local function question(...)
  local view, root = H.session({}, "ask", { H.tool("bash", { command = "touch made" }) }, ...)
  vim.cmd("Agentd make it")
  wait("the question", function()
    return #view.pending == 1 and #H.asked == 1 and float()
  end)
  return view, root
end

test("a choice that is put off leaves the question open, and what it is about in view", function()
  H.choose("agentd_permission", function()
    return nil
  end)
  local view, root = question({ "I see" })
  wait("it is said", function()
    return vim.iter(H.said):any(function(text)
      return text:find("stays open", 1, true)
    end)
  end)
  assert(float())
  eq(1, #view.pending)
  vim.cmd("AgentdReject")
  H.shows("I see")
  eq(nil, float())
  eq(nil, vim.uv.fs_stat(root .. "/made"))
end)

test("a question that was answered elsewhere closes its window, and a late choice changes nothing", function()
  local late, select = nil, vim.ui.select
  vim.ui.select = function(items, options, callback)
    late = late or function()
      callback(H.option("allow_once")(items))
    end
    return select(items, options, callback)
  end
  local view, root = question({ "I see" })
  local pending = view.pending[1]
  local reject = vim.iter(pending.options):find(function(option)
    return option.kind == "reject_once"
  end)
  require("agentd.client").request("agentd/permission/respond", { requestId = pending.requestId, optionId = reject.optionId })
  H.shows("I see")
  wait("the window is gone", function()
    return not float()
  end)
  vim.ui.select = select
  late()
  eq(nil, vim.uv.fs_stat(root .. "/made"))
  H.until_idle(view)
end)

test("a question waits until the user has not typed for a moment", function()
  local ask = require("agentd.ask")
  H.session({}, "ask", { "x" })
  local typed, asked
  H.choose("agentd_test", function(items)
    asked = vim.uv.now()
    return items[1]
  end)
  vim.api.nvim_feedkeys("jk", "xt", false)
  typed = vim.uv.now()
  local chosen
  ask.select({ "one" }, { kind = "agentd_test" }, function(choice)
    chosen = choice
  end)
  wait("it is asked", function()
    return chosen == "one"
  end)
  assert(asked - typed >= ask.QUIET_MS - 5, ("asked after %d ms"):format(asked - typed))
end)

test("questions come one after the other, and one that is over not at all", function()
  local ask = require("agentd.ask")
  H.session({}, "ask", { "x" })
  local calls = {}
  local select = vim.ui.select
  vim.ui.select = function(items, _, callback)
    table.insert(calls, { items[1], callback })
  end
  local chosen = {}
  for _, name in ipairs({ "a", "b", "c" }) do
    ask.select({ name }, {}, function(choice)
      table.insert(chosen, choice)
    end, function()
      return name == "b"
    end)
  end
  wait("the first", function()
    return #calls == 1
  end)
  calls[1][2]("a")
  wait("the last", function()
    return #calls == 2
  end)
  calls[2][2]("c")
  vim.ui.select = select
  eq({ "a", "c" }, chosen)
  eq("c", calls[2][1])
end)

test("the daemon dies while it asks: the window goes, and work goes on", function()
  local view = question({ "x" })
  vim.uv.kill(H.daemon(), "sigkill")
  wait("the window is gone", function()
    return not float() and #view.pending == 0
  end)
  H.shows("Interrupted: agentd stopped")
  vim.cmd("AgentdModel " .. H.model({ "on we go" }))
  vim.cmd("Agentd go on")
  H.shows("on we go")
end)

test("a command is asked about to the letter", function()
  local lines = require("agentd.permission").subject({ subject = { type = "command", command = "echo \27[8mrm\27[0m\r\nls", cwd = "/w" } })
  eq({ "echo \27[8mrm\27[0m\r", "ls", "", "# in /w" }, lines)
end)

test("buffers of the chat that are unloaded or wiped out in the midst of a stream are made anew", function()
  local view = H.session({}, "ask", { "Half of the ans", hang = true })
  vim.cmd("Agentd begin")
  H.shows("Half of the ans")
  for _, kill in ipairs({ "bdelete!", "bwipeout!" }) do
    local chat, prompt = require("agentd.chat").buffer(), require("agentd.chat").prompt_buffer()
    vim.cmd(("%s %d %d"):format(kill, chat, prompt))
    view:notice("said meanwhile by " .. kill)
    vim.cmd("Agentd")
    H.shows("Half of the ans")
    H.shows("said meanwhile by " .. kill)
    eq(1, #vim.fn.win_findbuf(require("agentd.chat").buffer()))
    eq(1, #vim.fn.win_findbuf(require("agentd.chat").prompt_buffer()))
    assert(#vim.api.nvim_buf_get_keymap(require("agentd.chat").buffer(), "n") > 0)
  end
  vim.cmd("AgentdCancel")
  H.until_idle(view)
end)

test("the chat is closed and opened while an answer streams, and is there whole", function()
  local view = H.session({}, "ask", { H.tool("bash", { command = "echo out" }) }, { "the end" })
  vim.cmd("Agentd begin")
  wait("the question", function()
    return #view.pending == 1
  end)
  require("agentd.chat").close()
  eq(0, #vim.fn.win_findbuf(require("agentd.chat").buffer()))
  vim.cmd("AgentdAccept")
  H.until_idle(view)
  vim.cmd("Agentd")
  H.shows("the end")
  local buf = require("agentd.chat").buffer()
  vim.api.nvim_win_call(vim.fn.win_findbuf(buf)[1], function()
    local line = vim.fn.search("^▸ ✓", "w")
    eq(line, vim.fn.foldclosed(line))
  end)
end)

test("each tab page has its own window of the chat", function()
  H.session({}, "ask", { "x" })
  vim.cmd("Agentd")
  vim.cmd("stopinsert | tabnew")
  local here = vim.api.nvim_get_current_tabpage()
  vim.cmd("Agentd")
  eq(here, vim.api.nvim_get_current_tabpage())
  eq(2, #vim.fn.win_findbuf(require("agentd.chat").buffer()))
  vim.cmd("stopinsert | tabclose")
end)

test("lines of a buffer without a name are sent as they are", function()
  local view = H.session({}, "ask", { "seen" })
  vim.cmd("enew")
  vim.bo.filetype = "lua"
  vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'print("`` ``` \\n")', "second" })
  vim.cmd([[1,1Agentd what is "this" | that \n 'x' %]])
  H.until_idle(view)
  local said = view.items[1].text
  assert(said:find([[what is "this" | that \n 'x' %]], 1, true), said)
  assert(said:find('````lua\nprint("`` ``` \\n")\n````', 1, true), said)
end)

test("a range without a prompt is referred to in the prompt's window", function()
  H.session({ ["b c.txt"] = "one\ntwo\nthree" }, "ask", { "seen" })
  H.edit("b c.txt")
  vim.cmd("2,3Agentd")
  wait("the reference", function()
    return H.lines(require("agentd.chat").prompt_buffer())[1] == '@"b c.txt:2-3" '
  end)
  vim.cmd("stopinsert")
end)

test("a prompt that is refused is given back", function()
  local view = H.session({}, "ask", { "on and on", hang = true })
  vim.cmd("Agentd begin")
  H.shows("on and on")
  agentd.prompt("too early", { when_busy = "reject" })
  wait("it is given back", function()
    return H.lines(require("agentd.chat").prompt_buffer())[1] == "too early"
  end)
  H.shows("already processing")
  vim.cmd("AgentdCancel")
  H.until_idle(view)
end)

test("a stop in the midst of a prompt leaves an idle chat, and it can be gone on", function()
  local view = H.session({}, "ask", { "before the end", hang = true })
  vim.cmd("Agentd begin")
  H.shows("before the end")
  vim.cmd("AgentdStop")
  wait("it has ended", function()
    return not require("agentd.client").id()
  end)
  wait("it is idle", function()
    return not view.running
  end)
  wait("the status says so", function()
    return vim.b[require("agentd.chat").buffer()].agentd_status:find("idle", 1, true)
  end)
  vim.cmd("AgentdModel " .. H.model({ "and on" }))
  wait("the model", function()
    return require("agentd.client").is_ready() and not view.detached
  end)
  vim.cmd("Agentd go on")
  H.shows("and on")
  H.shows("Interrupted: agentd stopped")
end)

test("sessions of two folders both go on after the daemon died", function()
  local one, root_one = H.session({}, "ask", { "first folder" }, { "first again" })
  vim.cmd("Agentd begin")
  H.until_idle(one)
  local two = H.session({}, "ask", { "second folder" })
  vim.cmd("Agentd begin")
  H.until_idle(two)
  vim.uv.kill(H.daemon(), "sigkill")
  H.shows("agentd ended and is started again")
  wait("it is there again", function()
    return not two.detached and require("agentd.client").is_ready()
  end)
  eq(true, one.detached)
  require("agentd.chat").close()
  vim.cmd.cd(root_one)
  vim.cmd("enew")
  vim.cmd("Agentd and on")
  wait("the first goes on", function()
    return #one.prompts == 2 and agentd.view() == one
  end)
  H.until_idle(one)
  eq(false, one.detached)
end)

test("what a prompt of an earlier process did can be undone", function()
  local view, root = H.session({}, "full", { H.tool("write_file", { file_path = "new.txt", content = "hello\n" }) }, { "done" })
  vim.cmd("Agentd write it")
  H.until_idle(view)
  require("agentd.registry").forget(view.id)
  require("agentd.history").resume(view.info)
  local resumed = wait("it is resumed", function()
    return agentd.view() ~= view and #agentd.view().prompts > 0 and agentd.view()
  end)
  eq(view.id, resumed.id)
  H.shows("+hello")
  H.choose("agentd_undo", function()
    return "Bring back"
  end)
  vim.cmd("stopinsert")
  vim.cmd("AgentdUndo")
  wait("the file is gone", function()
    return not vim.uv.fs_stat(root .. "/new.txt")
  end)
end)

test("a program that is not there or ends at once is told", function()
  local before = require("agentd.config").options.cmd
  H.session({}, "ask", { "x" })
  vim.cmd("AgentdStop")
  wait("it has ended", function()
    return not require("agentd.client").id()
  end)
  local function said(text)
    wait("it is said: " .. text, function()
      return vim.iter(H.said):any(function(line)
        return line:find(text, 1, true)
      end)
    end)
  end
  require("agentd.config").options.cmd = { "no-such-agentd" }
  vim.cmd("Agentd begin")
  said("no-such-agentd is not an executable")
  require("agentd.config").options.cmd = { "false" }
  vim.cmd("Agentd begin")
  said("agentd ended (code 1)")
  require("agentd.config").options.cmd = before
  vim.cmd("Agentd begin")
  H.shows("begin")
end)

test("files whose names are patterns are told apart", function()
  local view = H.session({ ["a[1].txt"] = "one", ["a1.txt"] = "other", ["*.txt"] = "star" }, "full", {
    H.tool("bash", { command = "echo two > 'a[1].txt'; echo three > '*.txt'" }),
  }, { H.tool("write_file", { file_path = "b.txt", content = "x" }) }, { "done" })
  local bracket, plain, star = H.edit("a\\[1\\].txt"), H.edit("a1.txt"), H.edit("\\*.txt")
  eq("one", H.lines(bracket)[1])
  local client = require("agentd.client")
  eq(bracket, client.buffer(vim.uri_from_bufnr(bracket)))
  eq(star, client.buffer(vim.uri_from_bufnr(star)))
  eq(nil, client.buffer(vim.uri_from_fname(vim.fn.getcwd() .. "/a")))
  vim.cmd("Agentd change them")
  H.until_idle(view)
  wait("both are read again", function()
    return H.lines(bracket)[1] == "two" and H.lines(star)[1] == "three"
  end)
  eq("other", H.lines(plain)[1])
end)

test("an autocommand that fails while a buffer is saved is told as the reason", function()
  H.session({ ["a.txt"] = "one" }, "ask", { "x" })
  local buf = H.edit("a.txt")
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "unsaved" })
  vim.api.nvim_create_autocmd("BufWritePre", {
    buffer = buf,
    callback = function()
      error("no saving today")
    end,
  })
  require("agentd.config").options.save = "always"
  local uri = vim.uri_from_bufnr(buf)
  local answer = require("agentd.handlers")["agentd/document/save"](nil, { uris = { uri, "file:///gone.txt" } })
  require("agentd.config").options.save = "ask"
  eq({}, answer.saved)
  assert(answer.failed[1].reason:find("no saving today", 1, true), vim.inspect(answer))
  eq("its buffer is gone", answer.failed[2].reason)
end)

test("two edits are two steps of undo, and the user's place and window stay", function()
  local view = H.session({ ["a.txt"] = "one\ntwo\nthree" }, "full", { H.tool("read_file", { file_path = "a.txt" }) }, {
    H.tool("edit_file", { file_path = "a.txt", old_string = "one", new_string = "ONE" }),
  }, { H.tool("edit_file", { file_path = "a.txt", old_string = "three", new_string = "THREE" }) }, { "done" })
  local buf = H.edit("a.txt")
  vim.api.nvim_win_set_cursor(0, { 2, 1 })
  local win, messages = vim.api.nvim_get_current_win(), vim.fn.execute("messages")
  vim.cmd("Agentd edit it")
  H.until_idle(view)
  eq(win, vim.api.nvim_get_current_win())
  eq({ 2, 1 }, vim.api.nvim_win_get_cursor(0))
  eq("n", vim.fn.mode())
  eq(messages, vim.fn.execute("messages"))
  eq({ "ONE", "two", "THREE" }, H.lines(buf))
  vim.cmd("silent undo")
  eq({ "ONE", "two", "three" }, H.lines(buf))
  vim.cmd("silent undo")
  eq({ "one", "two", "three" }, H.lines(buf))
end)

test("diagnostics are counted as agentd counts characters", function()
  H.session({ ["a.txt"] = "é💡x" }, "ask", { "x" })
  local buf = H.edit("a.txt")
  local space = vim.api.nvim_create_namespace("other")
  vim.diagnostic.set(space, buf, { { lnum = 0, col = 2, end_col = 6, message = "odd", severity = 1 } })
  local client, get = require("agentd.client"), require("agentd.diagnostics").get
  local encoding = client.encoding
  for name, columns in pairs({ ["utf-8"] = { 2, 6 }, ["utf-16"] = { 1, 3 } }) do
    client.encoding = function()
      return name
    end
    local range = get({}).items[1].diagnostics[1].range
    eq(columns, { range.start.character, range["end"].character })
  end
  client.encoding = encoding
end)

test("diagnostics of a text that has just changed are waited for", function()
  H.session({ ["a.txt"] = "one" }, "ask", { "x" })
  local buf = H.edit("a.txt")
  local client, get = require("agentd.client"), require("agentd.diagnostics").get
  wait("agentd knows the buffer", function()
    client.attach(buf)
    return client.version(buf)
  end)
  local space = vim.api.nvim_create_namespace("other")
  local function tell(message)
    vim.diagnostic.set(space, buf, { { lnum = 0, col = 0, message = message, severity = 1 } })
  end
  tell("old")
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "two" })
  wait("the change is told", function()
    client.request("agentd/status", {})
    return client.version(buf) > 0
  end)
  local uris, answer = { vim.uri_from_bufnr(buf) }, nil
  coroutine.wrap(function()
    answer = get({ uris = uris, timeoutMs = 60000 })
  end)()
  eq(nil, answer)
  tell("new")
  wait("the answer", function()
    return answer
  end)
  eq("new", answer.items[1].diagnostics[1].message)
  eq(client.version(buf), answer.items[1].version)
  vim.api.nvim_buf_set_lines(buf, 0, 1, false, { "three" })
  wait("the change is told", function()
    client.request("agentd/status", {})
    return client.version(buf) > answer.items[1].version
  end)
  local late
  coroutine.wrap(function()
    late = get({ uris = uris, timeoutMs = 50 })
  end)()
  wait("the time is up", function()
    return late
  end)
  assert(late.items[1].version < client.version(buf), "what is old is not told as new")
end)

test("what a review found are diagnostics at their lines", function()
  local finding = { file_path = "a.txt", line = 2, severity = "error", message = "wrong sign" }
  local view = H.session({ ["a.txt"] = "one\n  é two" }, "ask", { H.tool("report_findings", { findings = { finding } }) }, { "done" })
  local buf = H.edit("a.txt")
  vim.cmd("Agentd review it")
  H.until_idle(view)
  local found = wait("the finding", function()
    return vim.diagnostic.get(buf)[1]
  end)
  eq({ 1, 2, "wrong sign", "agentd" }, { found.lnum, found.col, found.message, found.source })
  eq(#"  é two", found.end_col)
end)

test("agentd is told where the user looks before each prompt", function()
  local view = H.session({ ["a.txt"] = "one\ntwo\nthree" }, "ask", { "seen" })
  local buf = H.edit("a.txt")
  local client = require("agentd.client")
  wait("agentd knows the buffer", function()
    client.attach(buf)
    return client.version(buf)
  end)
  vim.api.nvim_win_set_cursor(0, { 3, 0 })
  local told, notify = {}, client.notify
  client.notify = function(method, params)
    table.insert(told, { method, params })
    return notify(method, params)
  end
  vim.cmd("Agentd look")
  client.notify = notify
  H.until_idle(view)
  local last = vim.iter(told):find(function(each)
    return each[1] == "agentd/focus"
  end)
  eq(2, last[2].selection.start.line)
  assert(last[2].visible.start.line <= 2 and last[2].visible["end"].line == 3, vim.inspect(last))
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

test("wrong options are refused by name", function()
  local ok, err = pcall(agentd.setup, { savve = true })
  eq(false, ok)
  assert(err:find("savve", 1, true))
  ok, err = pcall(agentd.setup, { save = "perhaps" })
  eq(false, ok)
  assert(err:find("ask, always, never", 1, true))
end)

test("checkhealth says how it stands", function()
  vim.cmd("checkhealth agentd")
  local said = table.concat(H.lines(0), "\n")
  assert(said:find("protocol 1", 1, true), said)
  assert(not said:find("ERROR"), said)
end)

test("the help is there", function()
  local docs = vim.api.nvim_get_runtime_file("doc/agentd.txt", false)[1]
  assert(docs)
  local text = table.concat(vim.fn.readfile(docs), "\n")
  for name in pairs(vim.api.nvim_get_commands({})) do
    if name:find("^Agentd") then
      assert(text:find("*:" .. name .. "*", 1, true), name .. " has no help")
    end
  end
end)

H.run()
