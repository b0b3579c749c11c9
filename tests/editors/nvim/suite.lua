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
    vim.cmd("normal! zx")
    local line = vim.fn.search("^▸ ✓", "w")
    assert(line > 0)
    assert(vim.fn.foldclosed(line) == line, "the call is folded")
    assert(vim.fn.foldclosedend(line) > line)
    assert(require("agentd.chat").foldlevel(line) == ">1")
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
