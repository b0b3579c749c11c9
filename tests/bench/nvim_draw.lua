-- nvim --clean -l nvim_draw.lua REPOSITORY: what the Neovim plugin takes to draw an answer that streams.
--
-- 5,000 deltas of a Markdown answer, each drawn by itself, as on a screen that is always quick enough. The floor is
-- one nvim_buf_set_text at the end of a buffer for each of the same deltas. Prints one JSON line.
local repository = arg[1]
vim.opt.rtp:prepend(repository .. "/editors/nvim")
vim.o.swapfile = false
require("agentd").setup({})
local chat, views = require("agentd.chat"), require("agentd.view")

local DELTAS = 5000
local WORDS = { "The ", "parser ", "reads ", "`one` ", "token, ", "then ", "**waits**.\n", "\n- and ", "goes on\n" }
local CODE = { "\n```lua\n", "local x = 1\n", "return x\n", "```\n\n" }

local function delta(number)
  local place = number % 60
  return place >= 56 and CODE[place - 55] or WORDS[number % #WORDS + 1]:rep(4)
end

local function figures(times)
  table.sort(times)
  local sum = 0
  for _, each in ipairs(times) do
    sum = sum + each
  end
  return { median = times[#times / 2], p99 = times[math.floor(#times * 0.99)], most = times[#times], sum = sum }
end

local function timed(run)
  local times = {}
  for number = 1, DELTAS do
    local began = vim.uv.hrtime()
    run(delta(number))
    table.insert(times, (vim.uv.hrtime() - began) / 1e6)
  end
  return figures(times)
end

local function floor()
  local buf = vim.api.nvim_create_buf(false, true)
  vim.cmd("botright vsplit")
  vim.api.nvim_win_set_buf(0, buf)
  return timed(function(text)
    local row = vim.api.nvim_buf_line_count(buf) - 1
    local column = #vim.api.nvim_buf_get_lines(buf, row, row + 1, false)[1]
    vim.api.nvim_buf_set_text(buf, row, column, row, column, vim.split(text, "\n", { plain = true }))
  end)
end

local function plugin()
  local session = { sessionId = "s", workspaceUri = "file:///w", mode = "ask", model = "m" }
  local view
  view = views.new(session, function(...)
    chat.touch(...)
  end)
  chat.refresh = function() end -- what is drawn, and when, is said here
  chat.show(view)
  chat.open(false)
  local function event(event)
    view:apply({ event = event })
  end
  for turn = 1, 20 do
    event({ type = "message_end", message = { role = "user", messageId = "u" .. turn, content = { { type = "text", text = "go" } } } })
  end
  event({ type = "message_start", message = { role = "assistant", messageId = "a" } })
  local offset = 0
  return timed(function(text)
    event({ type = "message_update", messageId = "a", update = { kind = "text", index = 0, offset = offset, delta = text } })
    offset = offset + #text
    chat.redraw()
  end)
end

local floored = floor()
io.write(vim.json.encode({ version = tostring(vim.version()), floor = floored, plugin = plugin() }) .. "\n")
