--- Items of a view as lines of Markdown, with what is folded and highlighted. Nothing of Neovim's windows.
local M = {}

local MARKS = { running = "…", asking = "?", done = "✓", failed = "✗" }
local SEVERITIES = { error = "Error", warning = "Warning", info = "Note", files = "Files" }

--- A text as lines that a buffer takes: no line ends in them, and no control characters that would hide text.
function M.lines(text)
  text = text:gsub("\r\n?", "\n"):gsub("\27%[[%d;?]*%a", ""):gsub("[%z\1-\8\11-\31\127]", "·")
  return vim.split(text, "\n", { plain = true })
end

--- The same without a change of any character: Neovim itself shows control characters as what they are.
function M.exact(text)
  return vim.split(text, "\n", { plain = true })
end

--- Strips what would end a block of code too early: a fence longer than any in the text.
local function fence(text)
  local longest = 2
  for run in text:gmatch("`+") do
    longest = math.max(longest, #run)
  end
  return ("`"):rep(longest + 1)
end

local function code(into, text, language)
  local mark = fence(text)
  table.insert(into, mark .. language)
  vim.list_extend(into, M.lines((text:gsub("\n$", ""))))
  table.insert(into, mark)
  return mark
end

--- A text as a block of code.
function M.fenced(text, language)
  local mark = fence(text)
  return table.concat({ mark .. language, text, mark }, "\n")
end

local function duration(ms)
  if not ms then
    return ""
  end
  return ms < 1000 and (" (%d ms)"):format(ms) or (" (%.1f s)"):format(ms / 1000)
end

-- --- texts that grow ---------------------------------------------------------------------------

local LONGEST_ESCAPE = 32 -- bytes of a sequence that M.lines leaves out

-- From which byte on a text may read otherwise once more of it has come: a line's end or an escape sequence of which
-- a part is there; in a block of code also its last line's end, which is not shown.
local function unsettled(raw, in_code)
  local at = raw:find("[\r\27]", math.max(1, #raw - LONGEST_ESCAPE + 1)) or #raw + 1
  return in_code and raw:sub(-1) == "\n" and math.min(at, #raw) or at
end

local function shown_of(raw, in_code)
  return M.lines(in_code and raw:gsub("\n$", "") or raw)
end

-- Remembers where in the lines of `shown`, whose last are those of `text`, it goes on. `how`: `prefix` of its lines,
-- how many lines will follow it (`closing`), and in a block of code its `fence`.
local function follow(shown, text, how)
  local raw = text:all()
  local from = unsettled(raw, how.fence)
  local settled = M.lines(raw:sub(1, from - 1))
  local before = #shown.lines - #shown_of(raw, how.fence)
  shown.growth = vim.tbl_extend("force", how, {
    text = text,
    pieces = #text.pieces,
    cuts = text.cuts,
    tail = raw:sub(from),
    row = before + #settled,
    column = #how.prefix + #settled[#settled],
  })
end

local function last_text(item)
  if item.kind == "tool" then
    return item.output
  end
  return item.blocks[#item.blocks].text
end

--- Takes what has come of an item's last text into `shown`, as `M.item` gave it, and tells where that changes its
--- lines: `{row, column, end_row, end_column, lines}`, rows from 1 and bytes from 0. Nil where all has to be rendered.
function M.grow(item, shown)
  local growth, lines = shown.growth, shown.lines
  local text = growth and growth.text
  if not text or text ~= last_text(item) or text.cuts ~= growth.cuts then
    return nil
  end
  local raw = growth.tail .. text:since(growth.pieces)
  local from, new = unsettled(raw, growth.fence), shown_of(raw, growth.fence)
  local last, head = #lines - growth.closing, lines[growth.row]:sub(1, growth.column)
  if growth.fence and (head .. table.concat(new, "\n")):find(growth.fence, 1, true) then
    return nil -- it would end the block
  end
  for number = 2, #new do
    new[number] = growth.prefix .. new[number]
  end
  local change = { row = growth.row, column = growth.column, end_row = last, end_column = #lines[last], lines = new }
  local closing = vim.list_slice(lines, last + 1)
  for number = #lines, growth.row, -1 do
    lines[number] = nil
  end
  table.insert(lines, head .. new[1])
  vim.list_extend(lines, new, 2)
  vim.list_extend(lines, closing)
  local settled = M.lines(raw:sub(1, from - 1))
  growth.column = (#settled == 1 and growth.column or #growth.prefix) + #settled[#settled]
  growth.row, growth.tail, growth.pieces = growth.row + #settled - 1, raw:sub(from), #text.pieces
  return change
end

local function diff_marks(lines, first, marks)
  for number = first, #lines do
    local start = lines[number]:sub(1, 1)
    local group = start == "+" and "DiffAdd" or start == "-" and "DiffDelete" or start == "@" and "DiffChange"
    if group and not lines[number]:find("^[+-][+-][+-] ") then
      table.insert(marks, { number, group })
    end
  end
end

local render = {}

function render.user(item)
  local lines = { "## You", "" }
  vim.list_extend(lines, M.lines(item.text))
  table.insert(lines, "")
  return { lines = lines, marks = { { 1, "AgentdUser" } } }
end

function render.assistant(item)
  local shown = { lines = {}, folds = {}, marks = {} }
  for number, block in ipairs(item.blocks) do
    local text, prefix = block.text:all(), ""
    local first = #shown.lines + 1
    if block.kind == "text" then
      vim.list_extend(shown.lines, M.lines(text))
    elseif vim.trim(text) ~= "" then
      prefix = "> "
      table.insert(shown.lines, "▸ Thinking")
      for _, line in ipairs(M.lines(text)) do
        table.insert(shown.lines, prefix .. line)
      end
      table.insert(shown.folds, { first, #shown.lines })
      table.insert(shown.marks, { first, "AgentdThinking" })
    end
    if item.open and number == #item.blocks and #shown.lines >= first then
      follow(shown, block.text, { prefix = prefix, closing = 1 })
    end
  end
  if #shown.lines > 0 and (shown.growth or shown.lines[#shown.lines] ~= "") then
    table.insert(shown.lines, "")
  end
  return shown
end

function render.tool(item)
  local head = ("▸ %s %s%s"):format(MARKS[item.state], M.lines(item.title)[1], duration(item.duration))
  local shown = { lines = { head }, folds = {}, marks = { { 1, "AgentdTool" .. item.state } } }
  if item.patch and item.patch ~= "" then
    code(shown.lines, item.patch, "diff")
    diff_marks(shown.lines, 3, shown.marks)
  elseif item.output.bytes > 0 then
    local mark = code(shown.lines, item.output:all(), "")
    if item.state == "running" then
      table.remove(shown.lines)
      follow(shown, item.output, { prefix = "", closing = 2, fence = mark })
      table.insert(shown.lines, mark)
    end
  end
  if #shown.lines > 1 then
    table.insert(shown.folds, { 1, #shown.lines })
  end
  table.insert(shown.lines, "")
  return shown
end

function render.notice(item)
  local lines = M.lines(("%s: %s"):format(SEVERITIES[item.severity] or "Note", item.text))
  for number, line in ipairs(lines) do
    lines[number] = "*" .. line .. "*"
  end
  table.insert(lines, "")
  local group = item.severity == "error" and "DiagnosticError" or item.severity == "warning" and "DiagnosticWarn"
  return { lines = lines, marks = group and { { 1, group } } or {} }
end

--- Gives `{lines, folds = {{first, last}}, marks = {{line, group}}, settled, is_open}`, counted from 1, for an item
--- of a view. `settled`: it will not change any more. `is_open`: its folds begin open, as for what edits did.
function M.item(item)
  local shown = render[item.kind](item)
  shown.folds = shown.folds or {}
  shown.settled = not item.open and item.state ~= "running" and item.state ~= "asking"
  shown.is_open = item.patch ~= nil
  return shown
end

--- What stands below all items: the to-do list and the prompts that wait.
function M.footer(view)
  local lines = {}
  if #view.todo > 0 then
    table.insert(lines, "## To do")
    for _, todo in ipairs(view.todo) do
      local box = todo.status == "completed" and "x" or todo.status == "in_progress" and "-" or " "
      table.insert(lines, ("- [%s] %s"):format(box, M.lines(todo.text)[1]))
    end
    table.insert(lines, "")
  end
  if #view.queue > 0 then
    table.insert(lines, "## Waiting")
    for _, queued in ipairs(view.queue) do
      local text = require("agentd.view").text_of(queued.prompt)
      table.insert(lines, ("- %s: %s"):format(queued.kind, M.lines(text)[1]))
    end
    table.insert(lines, "")
  end
  return { lines = lines, folds = {}, marks = {} }
end

local function count(tokens)
  return tokens < 1000 and tostring(tokens) or ("%.1fk"):format(tokens / 1000)
end

--- One line on the state of a session: what it does, model, mode, and what it used.
function M.status(view)
  local state = #view.pending > 0 and "asks" or view.compacting and "sums up" or view.running and "works" or "idle"
  local parts = { state, view.info.model or "no model", view.info.mode }
  local usage = view.usage
  if usage then
    local window = usage.contextWindow
    local fill = window and (" (%d%%)"):format(math.floor(100 * usage.contextTokens / window)) or ""
    table.insert(parts, count(usage.contextTokens) .. " tokens" .. fill)
    if usage.cost then
      table.insert(parts, ("$%.2f"):format(usage.cost.total))
    end
  end
  return table.concat(parts, " · ")
end

return M
