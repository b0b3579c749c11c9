--- Questions: what would happen is shown whole in a window of its own, beside the choice.
local ask = require("agentd.ask")
local render = require("agentd.render")

local M = {}

local open = {} -- { id, question, resume(answer), win, turn }, the oldest first
local turns = 0

--- What a question is about, as lines and their file type. Nothing of it is left out or shown otherwise.
function M.subject(question)
  local subject = question.subject
  if subject.type == "command" then
    local lines = render.exact(subject.command)
    vim.list_extend(lines, { "", "# in " .. subject.cwd })
    if subject.reason then
      vim.list_extend(lines, render.exact("# outside the sandbox, because: " .. subject.reason))
    end
    return lines, "sh"
  elseif subject.type == "edit" then
    return render.exact(subject.patch), "diff"
  elseif subject.type == "fetch" then
    return render.exact(subject.url), ""
  elseif subject.type == "read" then
    return { subject.uri, "", "This file may hold secrets." }, ""
  end
  return render.exact(vim.inspect(subject)), ""
end

local function preview(question)
  local lines, filetype = M.subject(question)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].filetype, vim.bo[buf].modifiable, vim.bo[buf].bufhidden = filetype, false, "wipe"
  local width = math.min(math.max(20, math.floor(vim.o.columns * 0.8)), math.max(vim.o.columns - 2, 1))
  local height = math.max(1, math.min(#lines, math.floor(vim.o.lines * 0.6)))
  local win = vim.api.nvim_open_win(buf, false, {
    relative = "editor",
    row = 1,
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    border = "rounded",
    title = (" agentd: %s "):format(render.lines(question.title)[1]),
    footer = (" %d lines; :AgentdAccept, :AgentdReject "):format(#lines),
    zindex = 40,
  })
  vim.wo[win].wrap = true
  return win
end

-- The question that is in view: the one whose turn it was last.
local function front()
  local last
  for _, entry in ipairs(open) do
    last = (not last or (entry.turn or 0) > (last.turn or 0)) and entry or last
  end
  return last
end

-- Of several questions that are open one is in view, so that nobody answers another than he reads.
local function show_front()
  local shown = front()
  for _, entry in ipairs(open) do
    if entry.win and not vim.api.nvim_win_is_valid(entry.win) then
      entry.win = nil -- the user has closed it
    end
    if entry == shown and entry.turn and not entry.win then
      entry.win = preview(entry.question)
    elseif entry.win then
      vim.api.nvim_win_set_config(entry.win, { hide = entry ~= shown })
    end
  end
  vim.cmd.redraw()
end

local function take_turn(entry)
  turns = turns + 1
  entry.turn = turns
  show_front()
end

local function close(entry)
  if entry.win then
    pcall(vim.api.nvim_win_close, entry.win, true)
  end
end

--- `agentd/permission/request`: runs in a coroutine, which waits for the choice. A choice that is put off leaves the
--- question open, and what it is about in view.
function M.ask(question)
  local thread = coroutine.running()
  local answered, next_one = false, nil
  local entry = { id = question.requestId, question = question }
  function entry.resume(answer)
    if answered then
      return
    end
    answered = true
    open = vim.tbl_filter(function(each)
      return each ~= entry
    end, open)
    close(entry)
    next_one()
    vim.schedule(show_front)
    vim.schedule(function()
      coroutine.resume(thread, answer)
    end)
  end
  table.insert(open, entry)
  vim.schedule(function()
    if not answered and #open == 1 then
      take_turn(entry) -- in view before it is asked, where nothing else is
    end
  end)
  next_one = ask.select(question.options, {
    prompt = render.lines(question.title)[1],
    kind = "agentd_permission",
    format_item = function(option)
      return option.rule and ("%s: %s"):format(option.label, option.rule) or option.label
    end,
  }, function(option)
    if option then
      entry.resume({ optionId = option.optionId })
    elseif not answered then
      vim.notify("agentd: the question stays open; answer it by :AgentdAccept or :AgentdReject")
    end
  end, {
    is_over = function()
      return answered
    end,
    on_turn = function()
      take_turn(entry)
    end,
  })
  return coroutine.yield()
end

--- The question that is in view, nil where none is open.
function M.current()
  local entry = front()
  return entry and entry.question
end

--- The question was answered elsewhere, or withdrawn: its window goes.
function M.resolved(request_id)
  for _, entry in ipairs(open) do
    if entry.id == request_id then
      return entry.resume({ cancelled = true })
    end
  end
end

--- The process has ended: nobody waits for an answer.
function M.forget_all()
  for _, entry in ipairs(vim.list_slice(open)) do
    entry.resume({ cancelled = true })
  end
end

return M
