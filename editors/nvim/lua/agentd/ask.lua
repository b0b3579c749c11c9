--- Questions that come unasked: one at a time, and not while the user types, whose keys would answer them.
local M = { QUIET_MS = 600 }

local last_key = -math.huge
local waiting, active = {}, nil

vim.on_key(function()
  last_key = vim.uv.now()
end, vim.api.nvim_create_namespace("agentd_keys"))

local function next_one()
  local first = waiting[1]
  if active or not first then
    return
  end
  local left = last_key + M.QUIET_MS - vim.uv.now()
  if left > 0 then
    return vim.defer_fn(next_one, left)
  end
  table.remove(waiting, 1)
  if first.is_over() then
    return next_one()
  end
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
  local ok, err = pcall(vim.ui.select, first.items, first.options, done)
  if not ok then
    vim.notify("agentd: vim.ui.select failed: " .. tostring(err), vim.log.levels.ERROR)
    done(nil)
  end
end

--- Like `vim.ui.select`, in its turn. `is_over()` says whether nobody waits for an answer any more.
--- Gives a function that lets the next question come, where this one was answered otherwise.
function M.select(items, options, callback, is_over)
  local question = { items = items, options = options, callback = callback, is_over = is_over or function() end }
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
