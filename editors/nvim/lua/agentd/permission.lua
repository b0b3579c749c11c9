--- Questions: what would happen is shown whole in a window of its own, beside the choice.
local render = require("agentd.render")

local M = {}

local open = {} -- request id -> { resume, close }

--- What a question is about, as lines and their file type.
function M.subject(question)
  local subject = question.subject
  if subject.type == "command" then
    local lines = render.lines(subject.command)
    vim.list_extend(lines, { "", "# in " .. subject.cwd })
    if subject.reason then
      vim.list_extend(lines, render.lines("# outside the sandbox, because: " .. subject.reason))
    end
    return lines, "sh"
  elseif subject.type == "edit" then
    return render.lines(subject.patch), "diff"
  elseif subject.type == "fetch" then
    return { subject.url }, ""
  elseif subject.type == "read" then
    return { subject.uri, "", "This file may hold secrets." }, ""
  end
  return render.lines(vim.inspect(subject)), ""
end

local function preview(question)
  local lines, filetype = M.subject(question)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].filetype, vim.bo[buf].modifiable, vim.bo[buf].bufhidden = filetype, false, "wipe"
  local width = math.max(20, math.floor(vim.o.columns * 0.8))
  local height = math.max(1, math.min(#lines, math.floor(vim.o.lines * 0.6)))
  local win = vim.api.nvim_open_win(buf, false, {
    relative = "editor",
    row = 1,
    col = math.floor((vim.o.columns - width) / 2),
    width = width,
    height = height,
    border = "rounded",
    title = (" agentd: %s "):format(render.lines(question.title)[1]),
    footer = #lines > height and (" %d lines "):format(#lines) or nil,
    zindex = 40,
  })
  vim.wo[win].wrap = true
  vim.cmd.redraw()
  return function()
    pcall(vim.api.nvim_win_close, win, true)
  end
end

--- `agentd/permission/request`: runs in a coroutine, which waits for the choice.
function M.ask(question)
  local thread = coroutine.running()
  local close = preview(question)
  local answered = false
  local function resume(answer)
    if answered then
      return
    end
    answered, open[question.requestId] = true, nil
    close()
    vim.schedule(function()
      coroutine.resume(thread, answer)
    end)
  end
  open[question.requestId] = resume
  vim.schedule(function()
    vim.ui.select(question.options, {
      prompt = question.title,
      kind = "agentd_permission",
      format_item = function(option)
        return option.rule and ("%s: %s"):format(option.label, option.rule) or option.label
      end,
    }, function(option)
      resume(option and { optionId = option.optionId } or { cancelled = true })
    end)
  end)
  return coroutine.yield()
end

--- The question was answered elsewhere, or withdrawn: its window goes.
function M.resolved(request_id)
  if open[request_id] then
    open[request_id]({ cancelled = true })
  end
end

return M
