--- agentd in Neovim. What the commands do; each function here is public, for mappings of one's own.
local chat = require("agentd.chat")
local client = require("agentd.client")
local complete = require("agentd.complete")
local config = require("agentd.config")
local focus = require("agentd.focus")
local history = require("agentd.history")
local permission = require("agentd.permission")
local registry = require("agentd.registry")
local render = require("agentd.render")
local views = require("agentd.view")

local M = {}

local say, fail, with_session = registry.say, registry.fail, registry.with_session
local group = vim.api.nvim_create_augroup("agentd", {})
local prompts = 0

--- The options; see `:help agentd-options`. Calling it is not needed.
function M.setup(options)
  config.setup(options)
end

--- The view of the session that is shown, nil where there is none.
function M.view()
  return chat.view
end

M.new_session = registry.new_session
M.sessions, M.resume, M.diff = history.sessions, history.resume, history.diff

--- Opens the chat, and goes to where prompts are written.
function M.open()
  local asked_in = vim.api.nvim_get_current_win()
  with_session(function(view)
    registry.show(view)
    chat.open(vim.api.nvim_get_current_win() == asked_in) -- whoever went on to work elsewhere stays there
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
      chat.give_back(views.text_of(blocks, true)) -- it never began
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
  if name == "" or vim.bo[buf].buftype ~= "" then
    local lines = vim.api.nvim_buf_get_lines(buf, range[1] - 1, range[2], false)
    return { type = "text", text = render.fenced(table.concat(lines, "\n"), vim.bo[buf].filetype) }
  end
  local block = { type = "resource", uri = vim.uri_from_bufnr(buf) }
  block.range = { start = { line = range[1] - 1, character = 0 }, ["end"] = { line = range[2], character = 0 } }
  return block
end

--- Sends a prompt to the session of this folder. `options.range` {first, last} sends those lines along;
--- `options.when_busy` is "steer", "queue" or "interrupt". With `options.command` it is that command of agentd's, and
--- the text its arguments.
function M.prompt(text, options)
  options = options or {}
  local buf = vim.api.nvim_get_current_buf()
  local range = options.range and selection(buf, options.range)
  with_session(function(view)
    registry.show(view)
    chat.open(false)
    local root = vim.uri_to_fname(view.info.workspaceUri)
    if text == "" and range then
      chat.give_back(complete.reference(range, root))
      return chat.focus()
    end
    focus.tell(buf)
    local command = options.command and { { type = "command", name = options.command, arguments = text } }
    local blocks = command or complete.blocks(text, root)
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

--- Takes back what the last prompt did to files: the prompt `/undo`. With `options.again` the last undo is undone.
function M.undo(options)
  if options and options.again then
    return history.undo_again()
  end
  M.prompt("", { command = "undo", when_busy = "queue" })
end

--- Answers the question that is in view: `kind` is "allow_once" or "reject_once".
function M.answer(kind)
  local question = permission.current() or (chat.view and chat.view.pending[1])
  if not question then
    return say("no question is open")
  end
  for _, option in ipairs(question.options) do
    if option.kind == kind then
      local params = { requestId = question.requestId, optionId = option.optionId }
      return client.request("agentd/permission/respond", params, function(err)
        if err then
          fail(err)
        end
      end)
    end
  end
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

-- Prompts from the menu of code actions belong into the chat as well.
for _, name in ipairs({ "prompt", "fix", "edit", "explain", "test" }) do
  client.commands["agentd." .. name] = function(command)
    local params = { command = command.command, arguments = command.arguments }
    client.request("workspace/executeCommand", params, function(err, result)
      if err then
        return fail(err)
      end
      local view = registry.all()[result.sessionId]
      if view then
        registry.show(view)
        chat.open(false)
      end
    end)
  end
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
      chat.refresh()
    end)
  end)
end

--- Sets the session's model; without a name the user chooses.
function M.set_model(name)
  if name and name ~= "" then
    return update({ model = name })
  end
  registry.start(registry.root_here(), function()
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

-- --- the process ------------------------------------------------------------------------------

--- Ends the process; sessions can be resumed later.
function M.stop()
  client.stop()
end

client.on_end = function(asked, code, signal)
  local view = chat.view
  registry.lose()
  focus.forget()
  require("agentd.diagnostics").forget()
  chat.refresh()
  if asked or not view then
    return
  end
  if not client.may_restart() then
    return view:notice(("agentd ended again and again (code %d, signal %d): see :checkhealth agentd"):format(code, signal), "error")
  end
  view:notice("agentd ended and is started again", "warning")
  registry.start(vim.uri_to_fname(view.info.workspaceUri), function()
    registry.attach(view.info, function(err)
      if err then
        view:notice(err, "error")
      end
      chat.refresh()
    end)
  end)
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "FileType" }, {
  group = group,
  callback = function(args)
    client.attach(args.buf)
  end,
})

return M
