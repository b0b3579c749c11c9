--- agentd in Neovim. What the commands do; each function here is public, for mappings of one's own.
local chat = require("agentd.chat")
local client = require("agentd.client")
local complete = require("agentd.complete")
local config = require("agentd.config")
local edits = require("agentd.edits")
local permission = require("agentd.permission")
local views = require("agentd.view")

local M = {}

local sessions = {} -- id -> view
local current = {} -- root -> session id
local group = vim.api.nvim_create_augroup("agentd", {})
local prompts = 0

local function say(text, level)
  vim.notify("agentd: " .. text, level or vim.log.levels.INFO)
end

local function fail(err)
  say(err, vim.log.levels.ERROR)
end

--- The options; see `:help agentd-options`. Calling it is not needed.
function M.setup(options)
  config.setup(options)
end

--- The view of the session that is shown, nil where there is none.
function M.view()
  return chat.view
end

local function root_here()
  local view = chat.view
  local buf = vim.api.nvim_get_current_buf()
  if view and vim.api.nvim_buf_get_name(buf):find("^agentd://") then
    return vim.uri_to_fname(view.info.workspaceUri)
  end
  return config.root(buf)
end

-- --- sessions ---------------------------------------------------------------------------------

local function view_of(session)
  local view = sessions[session.sessionId]
  if not view then
    view = views.new(session, function(item)
      if chat.view and chat.view.id == session.sessionId then
        chat.touch(item)
      end
    end)
    sessions[session.sessionId] = view
  end
  return view
end

local function show(view)
  current[vim.uri_to_fname(view.info.workspaceUri)] = view.id
  chat.show(view)
end

local MESSAGES = 1000 -- so many of a long session are shown

local function read_anew(view, callback)
  view.stale = false
  client.request("agentd/session/get", { sessionId = view.id, limit = MESSAGES }, function(err, snapshot)
    if not err then
      view:load(snapshot)
    end
    if callback then
      callback(err, view)
    end
  end)
end

client.on_event = function(params)
  local event = params.event
  local view = sessions[params.sessionId]
  if not view and event.type == "session_changed" and not event.session.parent then
    view = view_of(event.session)
  end
  if not view then
    return
  end
  view:apply(params)
  if event.type == "permission_resolved" then
    permission.resolved(event.requestId)
  elseif event.type == "files_changed" or event.type == "session_rewound" then
    edits.reload(event.files)
  elseif event.type == "tool_execution_end" then
    local details = event.result.details
    if details and details.type == "edit" then
      edits.reload(details.files)
    elseif details and details.type == "command" then
      edits.reload()
    end
  end
  if view.stale then
    read_anew(view)
  end
  if chat.view == view then
    chat.touch(view.items[#view.items])
  end
end

--- Opens a session of an earlier time and reads it, or catches up with it: every event once, in order.
local function attach(session, callback)
  local view = view_of(session)
  local is_new = view.seq == 0
  client.request("agentd/session/attach", { sessionId = view.id, afterSeq = is_new and session.seq or view.seq }, function(err, answer)
    if err then
      return callback(err)
    end
    if is_new then
      return read_anew(view, callback)
    elseif answer.kind == "snapshot" then
      view:load(answer.snapshot)
    else
      for _, params in ipairs(answer.events) do
        view:apply(params)
      end
      view:resume(answer)
    end
    callback(nil, view)
  end)
end

local function start(root, callback)
  client.start(root, function(err)
    if err then
      return fail(err)
    end
    client.attach_all()
    complete.refresh(root)
    callback()
  end)
end

--- Begins a new session and shows it.
function M.new_session(callback)
  local root = root_here()
  start(root, function()
    client.request("agentd/session/new", { workspaceUri = vim.uri_from_fname(root) }, function(err, result)
      if err then
        return fail(err)
      end
      show(view_of(result.session))
      if callback then
        callback(chat.view)
      end
    end)
  end)
end

local function with_session(callback)
  local view = sessions[current[root_here()]]
  if view and client.is_ready() then
    return callback(view)
  end
  M.new_session(callback)
end

--- Opens the chat, and goes to where prompts are written.
function M.open()
  with_session(function(view)
    show(view)
    chat.open(true)
  end)
end

-- --- prompts ----------------------------------------------------------------------------------

local function new_id()
  prompts = prompts + 1
  return ("nvim-%d-%d-%d"):format(vim.fn.getpid(), vim.uv.hrtime(), prompts)
end

local function send(view, blocks, when_busy)
  local params = { sessionId = view.id, promptId = new_id(), prompt = blocks, whenBusy = when_busy }
  view.last_prompt = params.promptId
  client.request("agentd/prompt", params, function(err, result)
    if err then
      view:notice(err, "error")
    end
    for _, queued in ipairs(result and result.restored or {}) do
      chat.give_back(views.text_of(queued.prompt))
    end
  end)
end

local BUSY = { steer = "Steer: say it in the running prompt", queue = "Queue: run it afterwards", interrupt = "Interrupt: stop the running prompt first" }

local function send_when_busy(view, blocks)
  local chosen = config.options.when_busy
  if not view.running and not view.compacting then
    return send(view, blocks)
  elseif chosen ~= "ask" then
    return send(view, blocks, chosen)
  end
  vim.ui.select({ "steer", "queue", "interrupt" }, {
    prompt = "agentd is at work",
    kind = "agentd_busy",
    format_item = function(name)
      return BUSY[name]
    end,
  }, function(choice)
    if choice then
      send(view, blocks, choice)
    else
      chat.give_back(views.text_of(blocks))
    end
  end)
end

local function selection(buf, range)
  local name = vim.api.nvim_buf_get_name(buf)
  local lines = vim.api.nvim_buf_get_lines(buf, range[1] - 1, range[2], false)
  local block = { type = "resource", uri = vim.uri_from_bufnr(buf) }
  if name == "" or vim.bo[buf].buftype ~= "" then
    return { type = "text", text = table.concat(lines, "\n") }
  end
  block.range = { start = { line = range[1] - 1, character = 0 }, ["end"] = { line = range[2], character = 0 } }
  return block
end

--- Sends a prompt to the session of this folder. `options.range` {first, last} sends those lines along;
--- `options.when_busy` is "steer", "queue" or "interrupt".
function M.prompt(text, options)
  options = options or {}
  local buf = vim.api.nvim_get_current_buf()
  local range = options.range and selection(buf, options.range)
  with_session(function(view)
    show(view)
    chat.open(false)
    if text == "" and range then
      return chat.focus()
    end
    local blocks = complete.blocks(text, vim.uri_to_fname(view.info.workspaceUri))
    if range then
      table.insert(blocks, range)
    end
    if options.when_busy then
      send(view, blocks, options.when_busy)
    else
      send_when_busy(view, blocks)
    end
  end)
end

chat.send = function(text)
  M.prompt(text)
end

--- Cancels what runs in the session that is shown; prompts that waited come back into the prompt's window.
function M.cancel()
  local view = chat.view
  if not view then
    return
  end
  client.request("agentd/cancel", { sessionId = view.id }, function(err, result)
    if err then
      return fail(err)
    end
    for _, queued in ipairs(result.restored) do
      chat.give_back(views.text_of(queued.prompt))
    end
  end)
end

chat.cancel = M.cancel

--- Answers the oldest open question: `kind` is "allow_once" or "reject_once".
function M.answer(kind)
  for _, view in pairs(sessions) do
    local question = view.pending[1]
    for _, option in ipairs(question and question.options or {}) do
      if option.kind == kind then
        return client.request("agentd/permission/respond", { requestId = question.requestId, optionId = option.optionId }, function(err)
          if err then
            fail(err)
          end
        end)
      end
    end
  end
  say("no question is open")
end

local QUEUE = { "run", "edit", "remove", "clear" }

--- Shows the prompts that wait, to run, edit or remove one.
function M.queue()
  local view = chat.view
  if not view or #view.queue == 0 then
    return say("no prompt waits")
  end
  local function update(params)
    params.sessionId = view.id
    client.request("agentd/queue/update", params, function(err)
      if err then
        fail(err)
      end
    end)
  end
  vim.ui.select(view.queue, {
    prompt = "Prompts that wait",
    kind = "agentd_queue",
    format_item = function(queued)
      return views.text_of(queued.prompt)
    end,
  }, function(queued)
    if not queued then
      return
    end
    vim.ui.select(QUEUE, { prompt = views.text_of(queued.prompt), kind = "agentd_queue_action" }, function(op)
      if op == "edit" then
        chat.give_back(views.text_of(queued.prompt))
        update({ op = "remove", promptId = queued.promptId })
      elseif op then
        update({ op = op, promptId = op ~= "clear" and queued.promptId or nil })
      end
    end)
  end)
end

-- --- settings ---------------------------------------------------------------------------------

local function update(changes)
  with_session(function(view)
    changes.sessionId = view.id
    client.request("agentd/session/update", changes, function(err, result)
      if err then
        return fail(err)
      end
      view.info = result.session
      chat.touch()
    end)
  end)
end

--- Sets the session's model; without a name the user chooses.
function M.set_model(name)
  if name and name ~= "" then
    return update({ model = name })
  end
  start(root_here(), function()
    client.request("agentd/models", {}, function(err, result)
      if err then
        return fail(err)
      end
      local usable = vim.tbl_filter(function(model)
        return model.available
      end, result.models)
      vim.ui.select(usable, {
        prompt = "Model",
        kind = "agentd_model",
        format_item = function(model)
          return model.id
        end,
      }, function(model)
        if model then
          update({ model = model.id })
        end
      end)
    end)
  end)
end

--- Sets the session's permission mode; without a name the user chooses.
function M.set_mode(name)
  if name and name ~= "" then
    return update({ mode = name })
  end
  vim.ui.select({ "plan", "ask", "edit", "auto", "full" }, { prompt = "Mode", kind = "agentd_mode" }, function(mode)
    if mode then
      update({ mode = mode })
    end
  end)
end

-- --- history ----------------------------------------------------------------------------------

local function forked(view)
  client.request("agentd/session/fork", { sessionId = view.sessionId }, function(err, result)
    if err then
      return fail(err)
    end
    M.resume(result.session)
  end)
end

local function delete(session)
  client.request("agentd/session/delete", { sessionId = session.sessionId }, function(err)
    if err then
      return fail(err)
    end
    sessions[session.sessionId] = nil
    for root, id in pairs(current) do
      if id == session.sessionId then
        current[root] = nil
      end
    end
    say("deleted " .. (session.title ~= "" and session.title or session.sessionId))
  end)
end

--- Opens a session (as the wire tells it) and shows it.
function M.resume(session)
  attach(session, function(err, view)
    if err then
      return fail(err)
    end
    show(view)
    chat.open(true)
  end)
end

local ACTIONS = { { "Resume", M.resume }, { "Fork", forked }, { "Delete", delete } }

--- Lists the sessions of this folder, to resume, fork or delete one.
function M.sessions()
  local root = root_here()
  start(root, function()
    client.request("agentd/session/list", { workspaceUri = vim.uri_from_fname(root) }, function(err, result)
      if err then
        return fail(err)
      end
      if #result.sessions == 0 then
        return say("there is no session in " .. root)
      end
      vim.ui.select(result.sessions, {
        prompt = "Sessions",
        kind = "agentd_session",
        format_item = function(session)
          local title = session.title ~= "" and session.title or session.sessionId
          local held = session.lockedBy and (" (open in process %d)"):format(session.lockedBy) or ""
          return ("%s  %s, %d messages%s"):format(title, session.updatedAt:sub(1, 16):gsub("T", " "), session.messageCount, held)
        end,
      }, function(session)
        if not session then
          return
        end
        vim.ui.select(ACTIONS, {
          prompt = session.title,
          kind = "agentd_session_action",
          format_item = function(action)
            return action[1]
          end,
        }, function(action)
          if action then
            action[2](session)
          end
        end)
      end)
    end)
  end)
end

--- Shows what the session changed, in a tab of its own.
function M.diff()
  local view = chat.view
  if not view then
    return say("there is no session yet")
  end
  client.request("agentd/session/diff", { sessionId = view.id }, function(err, result)
    if err then
      return fail(err)
    end
    if result.patch == "" then
      return say("the session has changed no file")
    end
    vim.cmd.tabnew()
    local buf = vim.api.nvim_get_current_buf()
    vim.bo[buf].buftype, vim.bo[buf].bufhidden = "nofile", "wipe"
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, require("agentd.render").lines(result.patch))
    vim.bo[buf].filetype, vim.bo[buf].modifiable = "diff", false
  end)
end

local function told(files)
  local conflicts, done = {}, {}
  for _, file in ipairs(files) do
    local name = vim.fn.fnamemodify(vim.uri_to_fname(file.uri), ":~:.")
    table.insert(file.conflict and conflicts or done, file.conflict and ("%s: %s"):format(name, file.conflict) or name)
  end
  return done, conflicts
end

local function rewind(params)
  client.request("agentd/session/rewind", params, function(err, result)
    if err then
      return fail(err)
    end
    edits.reload(result.files)
    local done, conflicts = told(result.files)
    say(#done > 0 and ("brought back " .. table.concat(done, ", ")) or "no file was brought back")
    if #conflicts > 0 then
      say("left alone: " .. table.concat(conflicts, "; "), vim.log.levels.WARN)
    end
  end)
end

--- The last prompt of a session that changed files; `callback(nil)` where none did.
local function last_change(view, callback, number)
  number = number or #view.prompts
  local prompt_id = view.prompts[number]
  if not prompt_id then
    return callback(nil)
  end
  client.request("agentd/session/diff", { sessionId = view.id, promptId = prompt_id }, function(err, result)
    if not err and #result.files > 0 then
      return callback(prompt_id)
    end
    last_change(view, callback, number - 1)
  end)
end

--- Takes back what the last prompt did to files, after showing which; with `again` the last undo is undone.
function M.undo(options)
  local view = chat.view
  if not view then
    return say("there is no session yet")
  end
  if options and options.again then
    return rewind({ sessionId = view.id, undo = true })
  end
  last_change(view, function(prompt_id)
    if not prompt_id then
      return say("no prompt of this session has changed a file")
    end
    local params = { sessionId = view.id, promptId = prompt_id, scope = "files" }
    client.request("agentd/session/rewind", vim.tbl_extend("force", params, { dryRun = true }), function(err, plan)
      if err then
        return fail(err)
      end
      local done, conflicts = told(plan.files)
      local left = #conflicts > 0 and (" (left alone: %s)"):format(table.concat(conflicts, "; ")) or ""
      vim.ui.select({ "Bring back", "Leave as it is" }, {
        prompt = ("Undo the last prompt's changes of %s%s"):format(table.concat(done, ", "), left),
        kind = "agentd_undo",
      }, function(choice)
        if choice == "Bring back" then
          rewind(params)
        end
      end)
    end)
  end)
end

-- --- the process ------------------------------------------------------------------------------

--- Ends the process; sessions can be resumed later.
function M.stop()
  client.stop()
end

client.on_lost = function(code, signal)
  local view = chat.view
  if not view then
    return
  end
  view.running, view.pending = false, {}
  if not client.may_restart() then
    return view:notice(("agentd ended again and again (code %d, signal %d): see :checkhealth agentd"):format(code, signal), "error")
  end
  view:notice("agentd ended and is started again", "warning")
  start(vim.uri_to_fname(view.info.workspaceUri), function()
    attach(view.info, function(err)
      if err then
        view:notice(err, "error")
      end
      chat.touch()
    end)
  end)
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "FileType" }, {
  group = group,
  callback = function(args)
    client.attach(args.buf)
  end,
})

local focus_timer
vim.api.nvim_create_autocmd({ "BufEnter", "CursorHold" }, {
  group = group,
  callback = function(args)
    if not client.version(args.buf) or not client.serves("agentd/focus") then
      return
    end
    if focus_timer then
      focus_timer:stop()
    end
    focus_timer = vim.defer_fn(function()
      if vim.api.nvim_get_current_buf() == args.buf then
        local line = vim.api.nvim_win_get_cursor(0)[1] - 1
        local at = { line = line, character = 0 }
        client.notify("agentd/focus", { uri = vim.uri_from_bufnr(args.buf), selection = { start = at, ["end"] = at } })
      end
    end, 200)
  end,
})

return M
