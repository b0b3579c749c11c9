--- A session as it is shown: a fold of its events, and nothing but that. No Neovim window is known here.
---
--- A view has `items` in their order, each with a `kind`:
---   user       text
---   assistant  blocks {kind = "text"|"thinking", text}, open, error
---   tool       name, title, state = "running"|"asking"|"done"|"failed", output, patch, duration
---   notice     text, severity
--- The text of a block and the output of a tool are those of `agentd.text`, which grow.
--- `touched` is called with an item that has changed, or with nil when all have; its second argument says that the
--- item's last text has grown, and nothing else has changed.
local texts = require("agentd.text")

local M = {}

local OUTPUT_BYTES = 64 * 1024 -- of a command's output so much is kept, its end

local View = {}
View.__index = View

--- A view of a session (as the wire tells it).
function M.new(session, touched)
  local view = setmetatable({ touched = touched or function() end }, View)
  view:reset(session)
  return view
end

function View:reset(session)
  self.id, self.info = session.sessionId, session
  self.items, self.tools, self.messages = {}, {}, {}
  self.todo, self.queue, self.pending = {}, {}, {}
  self.seq, self.running, self.usage = 0, false, session.usage
end

function View:add(item)
  table.insert(self.items, item)
  self.touched(item)
  return item
end

function View:notice(text, severity)
  return self:add({ kind = "notice", text = text, severity = severity or "info" })
end

--- The text of content blocks, others in words; with `only_text` those that the user wrote.
function M.text_of(blocks, only_text)
  local parts = {}
  for _, block in ipairs(blocks or {}) do
    if block.type == "text" then
      table.insert(parts, block.text)
    elseif block.type == "command" then
      table.insert(parts, vim.trim(("/%s %s"):format(block.name, block.arguments or "")))
    elseif only_text then
      -- references stand in the text
    elseif block.type == "image" then
      table.insert(parts, "[image]")
    elseif block.type == "resource" then
      local lines = block.range and (":%d-%d"):format(block.range.start.line + 1, block.range["end"].line + 1) or ""
      table.insert(parts, ("@%s%s"):format(vim.fs.basename(vim.uri_to_fname(block.uri)), lines))
    end
  end
  return table.concat(parts, "\n")
end

local function shown_blocks(content)
  local blocks = {}
  for _, block in ipairs(content or {}) do
    if block.type == "text" or block.type == "thinking" then
      table.insert(blocks, { kind = block.type, text = texts.new(block.text) })
    end
  end
  return blocks
end

local function patch_of(details)
  if not details or details.type ~= "edit" then
    return nil
  end
  local patches = vim.tbl_map(function(file)
    return file.patch
  end, details.files)
  return table.concat(patches, "\n")
end

function View:finish_tool(item, result, duration)
  item.state = result.isError and "failed" or "done"
  item.message_id, item.duration = result.messageId, duration
  item.patch = patch_of(result.details)
  item.output = texts.new(M.text_of(result.content))
  self.touched(item)
end

function View:start_tool(id, name, title, kind)
  local item = { kind = "tool", id = id, name = name, title = title, tool_kind = kind, state = "running" }
  item.output = texts.new("", OUTPUT_BYTES)
  self.tools[id] = item
  return self:add(item)
end

function View:assistant(message_id)
  local item = self.messages[message_id]
  if not item then
    item = { kind = "assistant", id = message_id, blocks = {}, open = true }
    self.messages[message_id] = item
    self:add(item)
  end
  return item
end

--- Takes a stored message.
function View:take(message)
  if message.role == "user" then
    self:add({ kind = "user", id = message.messageId, text = M.text_of(message.content) })
  elseif message.role == "assistant" then
    local item = self:assistant(message.messageId)
    item.blocks, item.open, item.error = shown_blocks(message.content), false, message.errorMessage
    self.touched(item)
  end
end

--- Takes what `agentd/session/get` answers, in place of all that is there.
function View:load(snapshot)
  self:reset(snapshot.session)
  self.touched(nil)
  if snapshot.hasMore then
    self:notice(("The newest %d of %d messages are shown"):format(#snapshot.messages, snapshot.session.messageCount))
  end
  for _, message in ipairs(snapshot.messages) do
    self:take(message)
    if message.role == "assistant" then
      for _, block in ipairs(message.content) do
        if block.type == "tool_call" then
          self:start_tool(block.id, block.name, M.title_of(block.name, block.arguments))
        end
      end
    elseif message.role == "tool_result" and self.tools[message.toolCallId] then
      self:finish_tool(self.tools[message.toolCallId], message)
    end
  end
  self.todo, self.queue, self.seq = snapshot.todo or {}, snapshot.queue or {}, snapshot.seq
  self.running = snapshot.session.state ~= "idle"
  self:resume(snapshot)
end

--- Takes what stands open: questions, and what a running prompt has said so far.
function View:resume(answer)
  self.pending = {}
  for _, question in ipairs(answer.pending or {}) do
    self:ask(question)
  end
  local partial = answer.partial
  if partial and partial.message then
    local item = self:assistant(partial.message.messageId)
    item.blocks, item.by_index = {}, {}
    for index, block in ipairs(partial.message.content) do
      if block.type ~= "tool_call" then
        self:block(item, index - 1, block.type).text = texts.new(block.text)
      end
    end
    self.touched(item)
  end
  for _, tool in ipairs(partial and partial.tools or {}) do
    local item = self.tools[tool.toolCallId]
    if item then
      item.output = texts.new(tool.output, OUTPUT_BYTES)
      self.touched(item)
    end
  end
end

--- A title for a call of which only the arguments are known.
function M.title_of(name, arguments)
  local first = arguments and (arguments.command or arguments.file_path or arguments.path or arguments.pattern)
  return type(first) == "string" and ("%s %s"):format(name, vim.split(first, "\n")[1]) or name
end

--- The process has ended: what ran runs no more, and what happened since has to be read.
function View:lose()
  self.detached, self.running, self.compacting, self.pending = true, false, false, {}
  for _, item in ipairs(self.items) do
    if item.open or item.state == "running" or item.state == "asking" then
      item.open = false
      item.state, item.question = item.state and "failed", nil
      self.touched(item)
    end
  end
end

--- What the model said last, nil before it did.
function View:last_words()
  for number = #self.items, 1, -1 do
    local item = self.items[number]
    local block = item.kind == "assistant" and item.blocks[#item.blocks]
    if block then
      return block.text:all()
    end
  end
end

function View:block(item, index, kind)
  item.by_index = item.by_index or {}
  local block = item.by_index[index]
  if not block then
    block = { kind = kind, text = texts.new() }
    item.by_index[index] = block
    table.insert(item.blocks, block)
  end
  return block
end

function View:ask(question)
  table.insert(self.pending, question)
  local item = self.tools[question.toolCallId]
  if item then
    item.state, item.question = "asking", question
    self.touched(item)
  end
end

function View:forget(message_ids)
  local gone = {}
  for _, id in ipairs(message_ids) do
    gone[id] = true
  end
  self.items = vim.tbl_filter(function(item)
    return not gone[item.id] and not gone[item.message_id]
  end, self.items)
  self.touched(nil)
end

local events = {}

function events.session_changed(view, event)
  view.info = event.session
end

function events.agent_start(view, event, prompt_id)
  view.running, view.running_prompt = true, prompt_id
  view.model, view.mode = event.prompt.model, event.prompt.mode
end

function events.message_start(view, event)
  if event.message.role == "assistant" then
    view:assistant(event.message.messageId)
  end
end

function events.message_update(view, event)
  local update = event.update
  if update.kind == "tool_call" then
    return
  end
  local item = view:assistant(event.messageId)
  local block = view:block(item, update.index, update.kind)
  block.text:append(update.delta)
  view.touched(item, block == item.blocks[#item.blocks])
end

function events.message_end(view, event)
  view:take(event.message)
end

function events.message_reset(view, event)
  local item = view:assistant(event.messageId)
  item.blocks, item.by_index = {}, {}
  view.touched(item)
end

function events.tool_execution_start(view, event)
  view:start_tool(event.toolCallId, event.toolName, event.title, event.kind)
end

function events.tool_execution_update(view, event)
  local item = view.tools[event.toolCallId]
  if item then
    item.output:append(event.update.delta)
    view.touched(item, true)
  end
end

function events.tool_execution_end(view, event)
  local item = view.tools[event.toolCallId] or view:start_tool(event.toolCallId, event.toolName, event.toolName)
  view:finish_tool(item, event.result, event.durationMs)
end

function events.permission_requested(view, event)
  view:ask(event)
end

function events.permission_resolved(view, event)
  view.pending = vim.tbl_filter(function(question)
    return question.requestId ~= event.requestId
  end, view.pending)
  local item = view.tools[event.toolCallId]
  if item then
    item.state, item.question = "running", nil
    view.touched(item)
  end
end

function events.retry(view, event)
  view:notice(("The model server failed (%s); attempt %d of %d"):format(event.reason, event.attempt, event.maxAttempts), "warning")
end

function events.queue_changed(view, event)
  view.queue = event.queue
end

function events.todo_changed(view, event)
  view.todo = event.items
end

function events.compaction_start(view)
  view.compacting = true
end

function events.compaction_end(view, event)
  view.compacting = false
  if event.outcome == "compacted" then
    view:notice(("The conversation was summed up for the model: %d tokens, %d before"):format(event.tokensAfter or 0, event.tokensBefore))
  elseif event.outcome == "failed" then
    view:notice("The conversation could not be summed up: " .. (event.error and event.error.message or ""), "warning")
  end
end

function events.files_changed(view, event)
  local names = vim.tbl_map(function(file)
    return ("%s %s"):format(file.action, vim.fn.fnamemodify(vim.uri_to_fname(file.uri), ":~:."))
  end, event.files)
  view:notice(table.concat(names, "\n"), "files")
end

function events.session_rewound(view, event)
  view:forget(event.removedMessageIds)
  if event.restoredMessageIds and #event.restoredMessageIds > 0 then
    view.stale = true -- what came back is read anew
  end
  view:notice(event.undo and "The rewind was undone" or ("Rewound: " .. event.scope))
end

function events.notice(view, event)
  view:notice(event.message, event.severity)
end

function events.turn_end(view, event)
  view.usage = event.usage or view.usage
end

function events.agent_end(view, event)
  view.running, view.running_prompt = false, nil
  view.usage = event.usage or view.usage
  if event.error then
    view:notice(event.error.message, "error")
  elseif event.stopReason ~= "stop" then
    view:notice(({
      aborted = "Cancelled",
      interrupted = "Interrupted: agentd stopped",
      length = "The answer was cut at the model's output limit",
      max_turns = "Stopped after the highest number of turns",
    })[event.stopReason] or event.stopReason, "warning")
  end
end

--- Takes the params of an `agentd/event`. An event that was taken before changes nothing.
function View:apply(params)
  if params.seq then
    if params.seq <= self.seq then
      return
    end
    self.seq = params.seq
  end
  local apply = events[params.event.type]
  if apply then
    apply(self, params.event, params.promptId)
  end
end

return M
