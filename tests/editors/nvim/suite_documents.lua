-- Buffers and what is told of them.
local H = require("harness")
local test, eq, wait = H.test, H.eq, H.wait

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
  eq({}, H.said)
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

test("a code action of Neovim's own menu is answered in the chat, and nowhere else", function()
  local view = H.session({ ["a.txt"] = "# agentd: explain this\ntwo" }, "ask", { "It is a list." })
  local buf = H.edit("a.txt")
  local client = require("agentd.client")
  wait("agentd knows the buffer", function()
    client.attach(buf)
    return client.version(buf)
  end)
  local select, titles = vim.ui.select, nil
  vim.ui.select = function(items, options, callback)
    titles = vim.tbl_map(options.format_item or tostring, items)
    callback(items[1])
  end
  local handlers, answers = require("agentd.handlers"), {}
  for _, name in ipairs({ "window/showDocument", "window/showMessage" }) do
    local handler = handlers[name]
    handlers[name] = function(...)
      answers[name] = handler(...) or "none"
      handlers[name] = handler
      return answers[name] ~= "none" and answers[name] or nil
    end
  end
  vim.lsp.buf.code_action()
  wait("the menu", function()
    return titles
  end)
  vim.ui.select = select
  assert(titles[1]:find("explain this", 1, true), vim.inspect(titles))
  H.shows("It is a list.")
  H.until_idle(view)
  wait("the editor's own means", function()
    return answers["window/showDocument"] and answers["window/showMessage"]
  end)
  eq({ success = true }, answers["window/showDocument"])
  eq(buf, vim.api.nvim_get_current_buf())
  eq(3, #vim.api.nvim_tabpage_list_wins(0))
  eq({}, H.said)
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
