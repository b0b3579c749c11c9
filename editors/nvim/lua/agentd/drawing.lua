--- Draws a view into the chat's buffer: only what has changed, and of a text that grows only what came.
local render = require("agentd.render")

local M = {
  --- Gives the view that is shown and the buffer for it, nil where there is none.
  target = function() end,
}

local space = vim.api.nvim_create_namespace("agentd")
local FLUSH_MS = 16 -- changes are drawn together, once a frame: a model writes faster than a screen is read
local SHARE = 4 -- and where drawing takes long, Neovim is left free for so many times as long

local drawn = {} -- what stands in the buffer, item by item, as `render` gives it; the footer last
local dirty, all_dirty, scheduled = {}, true, false
local took_ms = 0
local folded_in = {} -- window -> whether what is drawn has its folds there
local has_unfolded = false -- whether something has settled whose folds are not made

--- Remembers that an item has changed, nil for all, and draws soon. `grown`: only its last text has grown.
function M.touch(item, grown)
  if not item then
    all_dirty = true
  elseif dirty[item] ~= "changed" then
    dirty[item] = grown and "grown" or "changed"
  end
  M.refresh()
end

--- Draws soon what stands around the items: state, to-do list, prompts that wait.
function M.refresh()
  if not scheduled then
    scheduled = true
    vim.defer_fn(M.redraw, math.max(FLUSH_MS, SHARE * took_ms))
  end
end

--- Forgets what is drawn: the buffer is empty, or shows something else.
function M.forget()
  drawn, all_dirty = {}, true
end

local function replace(buf, first, old, new)
  local same = 0
  while same < #old and same < #new and old[same + 1] == new[same + 1] do
    same = same + 1
  end
  if same < #old or same < #new then
    vim.api.nvim_buf_set_lines(buf, first + same, first + #old, false, vim.list_slice(new, same + 1))
  end
end

local function mark(buf, first, shown)
  vim.api.nvim_buf_clear_namespace(buf, space, first, first + #shown.lines)
  for _, at in ipairs(shown.marks) do
    vim.api.nvim_buf_set_extmark(buf, space, first + at[1] - 1, 0, { line_hl_group = at[2] })
  end
  has_unfolded = has_unfolded or (shown.settled and #shown.folds > 0)
end

local function draw_all(buf, view)
  vim.api.nvim_buf_clear_namespace(buf, space, 0, -1)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, {})
  drawn, folded_in = {}, {}
  local lines = {}
  for _, item in ipairs(view.items) do
    local shown = render.item(item)
    shown.folded = {}
    table.insert(drawn, shown)
    vim.list_extend(lines, shown.lines)
  end
  table.insert(drawn, render.footer(view))
  vim.list_extend(lines, drawn[#drawn].lines)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  local first = 0
  for _, shown in ipairs(drawn) do
    mark(buf, first, shown)
    first = first + #shown.lines
  end
end

-- What came of a text that grows; whether that was possible.
local function draw_growth(buf, first, item, shown)
  local change = shown and dirty[item] == "grown" and render.grow(item, shown)
  if change then
    local row, end_row = first + change.row - 1, first + change.end_row - 1
    vim.api.nvim_buf_set_text(buf, row, change.column, end_row, change.end_column, change.lines)
  end
  return change ~= nil and change ~= false
end

local function draw_changed(buf, view)
  local first = 0
  local footer = table.remove(drawn)
  for number, item in ipairs(view.items) do
    local old = drawn[number]
    if (not old or dirty[item]) and not draw_growth(buf, first, item, old) then
      local new = render.item(item)
      new.folded = old and old.folded or {}
      replace(buf, first, old and old.lines or {}, new.lines)
      mark(buf, first, new)
      drawn[number] = new
    end
    first = first + #drawn[number].lines
  end
  local new = render.footer(view)
  replace(buf, first, footer.lines, new.lines)
  table.insert(drawn, new)
end

local function fold(win, first, shown)
  for _, at in ipairs(shown.folds) do
    vim.cmd(("%d,%dfold"):format(first + at[1], first + at[2]))
    if shown.is_open then
      vim.cmd(("%dfoldopen"):format(first + at[1]))
    end
  end
  shown.folded[win] = true
end

-- Folds are made once, when an item is complete, so that what the user opens stays open. They belong to windows.
local function fold_settled(win)
  if not folded_in[win] then
    folded_in[win] = true
    vim.cmd("normal! zE")
  end
  local first = 0
  for _, shown in ipairs(drawn) do
    if shown.settled and #shown.folds > 0 and not shown.folded[win] then
      fold(win, first, shown)
    end
    first = first + #shown.lines
  end
end

local function make_folds(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if has_unfolded or not folded_in[win] then
      vim.api.nvim_win_call(win, function()
        fold_settled(win)
      end)
    end
  end
  has_unfolded = false
end

local function at_end(buf)
  local last = vim.api.nvim_buf_line_count(buf)
  return vim.tbl_filter(function(win)
    return vim.api.nvim_win_get_cursor(win)[1] >= last - 1
  end, vim.fn.win_findbuf(buf))
end

local function show_status(buf, view)
  local status = render.status(view)
  if vim.b[buf].agentd_status ~= status then
    vim.b[buf].agentd_status = status
    vim.cmd.redrawstatus({ bang = true })
  end
end

--- Draws what has changed. Windows follow whose cursor is at the end.
function M.redraw()
  scheduled = false
  local view, buf = M.target()
  if not view then
    return
  end
  local began, following = vim.uv.hrtime(), at_end(buf)
  vim.bo[buf].modifiable = true
  if all_dirty or #drawn == 0 then
    draw_all(buf, view)
  else
    draw_changed(buf, view)
  end
  vim.bo[buf].modifiable = false
  dirty, all_dirty = {}, false
  make_folds(buf)
  show_status(buf, view)
  for _, win in ipairs(following) do
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
  end
  took_ms = math.ceil((vim.uv.hrtime() - began) / 1e6)
end

return M
