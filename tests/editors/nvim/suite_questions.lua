-- Questions: asked, put off, answered elsewhere, and when nobody waits for them any more.
local H = require("harness")
local agentd, test, eq, wait = H.agentd, H.test, H.eq, H.wait

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
    end, {
      is_over = function()
        return name == "b"
      end,
    })
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

test("a question of a sub-agent is shown and answered like one of its session", function()
  local task = { description = "job", prompt = "Do the job." }
  local view, root = H.session({}, "ask", { H.tool("task", { tasks = { task } }) }, {
    H.tool("bash", { command = "touch made" }),
    when = "Do the job.",
  }, { "job done", when = "Do the job." }, { "all done" })
  vim.cmd("Agentd hand it out")
  wait("the question", function()
    return #H.asked == 1 and float()
  end)
  vim.cmd("AgentdAccept")
  H.shows("all done")
  H.until_idle(view)
  eq(nil, float())
  assert(vim.uv.fs_stat(root .. "/made"))
  eq(view, agentd.view())
end)

test("a command is asked about to the letter", function()
  local lines = require("agentd.permission").subject({ subject = { type = "command", command = "echo \27[8mrm\27[0m\r\nls", cwd = "/w" } })
  eq({ "echo \27[8mrm\27[0m\r", "ls", "", "# in /w" }, lines)
end)
