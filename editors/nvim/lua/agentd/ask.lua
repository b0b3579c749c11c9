--- Questions that come unasked: one at a time, and not while the user types, whose keys would answer them.
local M = { QUIET_MS = 600 }

local last_key = -math.huge
local waiting, active = {}, nil

vim.on_key(function()
  last_key = vim.uv.now()
end, vim.api.nvim_create_namespace("agentd_keys"))

-- Whether keys are meant for something: a pause in the midst of a line is no end of it. A prompt's window in which
-- nothing stands yet is where whoever sent a prompt waits for it.
local function is_typing()
  local mode = vim.api.nvim_get_mode()
  if mode.blocking or last_key + M.QUIET_MS > vim.uv.now() then
    return true
  elseif mode.mode:sub(1, 1) == "i" then
    local buf = vim.api.nvim_get_current_buf()
    local is_empty = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_get_current_line() == ""
    return not (is_empty and vim.bo[buf].filetype == "agentd")
  end
  return mode.mode ~= "n" and mode.mode ~= "nt"
end

local function next_one()
  local first = waiting[1]
  if active or not first then
    return
  end
  if first.is_over() then
    table.remove(waiting, 1)
    return next_one()
  end
  if is_typing() then
    return vim.defer_fn(next_one, math.max(M.QUIET_MS / 4, last_key + M.QUIET_MS - vim.uv.now()))
  end
  table.remove(waiting, 1)
  active = first
  local over = false
  local function done(choice)
    if over then
      return
    end
    over = true
    if active == first then
      active = nil
      vim.schedule(next_one)
    end
    first.callback(choice)
  end
  first.on_turn()
  local ok, err = pcall(vim.ui.select, first.items, first.options, done)
  if not ok then
    vim.notify("agentd: vim.ui.select failed: " .. tostring(err), vim.log.levels.ERROR)
    done(nil)
  end
end

--- Like `vim.ui.select`, in its turn, which `turns.on_turn()` is told of. `turns.is_over()` says whether nobody waits
--- for an answer any more. Gives a function that lets the next question come, where this one was answered otherwise.
function M.select(items, options, callback, turns)
  local nothing = function() end
  local question = vim.tbl_extend("keep", turns or {}, { is_over = nothing, on_turn = nothing })
  question.items, question.options, question.callback = items, options, callback
  table.insert(waiting, question)
  vim.schedule(next_one)
  return function()
    for number, each in ipairs(waiting) do
      if each == question then
        return table.remove(waiting, number)
      end
    end
    if active == question then
      active = nil
      vim.schedule(next_one)
    end
  end
end

return M
