-- What the suite needs: a place of its own, a real agentd with the scripted model, and waiting with a deadline.
local H = { passed = 0, failed = 0, tests = {} }

local here = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h")
local repository = vim.fs.normalize(here .. "/../../..")
H.home = vim.env.AGENTD_TEST_HOME
local DEADLINE = 20000

vim.opt.rtp:prepend(repository .. "/editors/nvim")
vim.o.swapfile = false
vim.cmd.runtime("plugin/agentd.lua")
H.agentd = require("agentd")

function H.test(name, run)
  local only = vim.env.AGENTD_TEST_ONLY -- a part of the name, for one who works at a test
  if not only or name:find(only, 1, true) then
    table.insert(H.tests, { name, run })
  end
end

function H.eq(want, got)
  if not vim.deep_equal(want, got) then
    error(("wanted %s, got %s"):format(vim.inspect(want), vim.inspect(got)), 2)
  end
end

function H.wait(what, condition)
  local value
  local ok = vim.wait(DEADLINE, function()
    value = condition()
    return value
  end, 10)
  if not ok then
    error(("it did not happen: %s\n%s\n%s"):format(what, H.chat(), vim.inspect(H.said)), 2)
  end
  return value
end

--- The text of the chat.
function H.chat()
  return table.concat(vim.api.nvim_buf_get_lines(require("agentd.chat").buffer(), 0, -1, false), "\n")
end

function H.shows(text)
  H.wait("the chat shows " .. text, function()
    return H.chat():find(text, 1, true) ~= nil
  end)
end

local numbers = 0

--- A fresh workspace with files; it is the working directory from then on.
function H.workspace(files)
  numbers = numbers + 1
  local root = ("%s/w%d"):format(H.home, numbers)
  vim.fn.mkdir(root, "p")
  vim.system({ "git", "init", "-q", root }):wait()
  for name, text in pairs(files or {}) do
    vim.fn.writefile(vim.split(text, "\n", { plain = true }), root .. "/" .. name)
  end
  vim.cmd.cd(root)
  return root
end

function H.edit(name)
  vim.cmd.edit(name)
  return vim.api.nvim_get_current_buf()
end

function H.lines(buf)
  return vim.api.nvim_buf_get_lines(buf, 0, -1, false)
end

--- A script for the scripted model; gives the name of the model that plays it.
function H.model(...)
  numbers = numbers + 1
  local path = ("%s/script%d.json"):format(H.home, numbers)
  local responses = {}
  for _, response in ipairs({ ... }) do
    local content = {}
    for _, block in ipairs(response) do
      table.insert(content, type(block) == "string" and { type = "text", text = block } or block)
    end
    local said = { content = #content > 0 and content or vim.empty_dict() }
    for key, value in pairs(response) do
      if type(key) == "string" then
        said[key] = value
      end
    end
    table.insert(responses, said)
  end
  vim.fn.writefile({ vim.json.encode(responses) }, path)
  return "scripted/" .. path
end

function H.tool(name, arguments)
  return { type = "tool_call", name = name, arguments = arguments }
end

--- A session in a fresh workspace whose model plays these responses.
function H.session(files, mode, ...)
  local root = H.workspace(files)
  H.agentd.new_session()
  local view = H.wait("a session", function()
    local view = H.agentd.view()
    return view and vim.uri_to_fname(view.info.workspaceUri) == root and view
  end)
  local model = H.model(...)
  H.agentd.set_model(model)
  H.agentd.set_mode(mode)
  H.wait("model and mode", function()
    return view.info.model == model and view.info.mode == mode
  end)
  return view, root
end

function H.until_idle(view)
  H.wait("the prompt ends", function()
    return view.seq > 1 and not view.running and #view.items > 0
  end)
end

--- Answers the next `vim.ui.select` of this kind by what `choose(items, options)` gives; others fail the test.
function H.choose(kind, choose)
  H.choices[kind] = choose
end

H.choices = {}
vim.ui.select = function(items, options, callback)
  local choose = H.choices[options.kind]
  table.insert(H.asked, { kind = options.kind, prompt = options.prompt, items = items })
  if choose then
    vim.schedule(function()
      callback(choose(items, options))
    end)
  end
end
H.asked = {}

function H.option(kind)
  return function(options)
    return vim.iter(options):find(function(option)
      return option.kind == kind
    end)
  end
end

--- The process id of agentd: the child of this Neovim that it is.
function H.daemon()
  local me = vim.fn.getpid()
  for child in io.open(("/proc/%d/task/%d/children"):format(me, me)):read("a"):gmatch("%d+") do
    if io.open(("/proc/%s/cmdline"):format(child)):read("a"):find("agentd", 1, true) then
      return tonumber(child)
    end
  end
end

H.said = {}
vim.notify = function(text)
  table.insert(H.said, text)
end

function H.run()
  require("agentd").setup({ cmd = vim.json.decode(vim.env.AGENTD_TEST_COMMAND), trusted = true })
  for _, test in ipairs(H.tests) do
    H.choices, H.asked, H.said = {}, {}, {}
    local ok, err = xpcall(test[2], debug.traceback)
    H[ok and "passed" or "failed"] = H[ok and "passed" or "failed"] + 1
    io.write((ok and "ok   " or "FAIL ") .. test[1] .. "\n")
    if not ok then
      io.write("  " .. tostring(err):gsub("\n", "\n  ") .. "\n")
    end
    vim.cmd("silent! %bwipeout!")
  end
  H.agentd.stop()
  vim.wait(5000, function()
    return not require("agentd.client").id()
  end, 10)
  io.write(("%d passed, %d failed\n"):format(H.passed, H.failed))
  io.flush()
  os.exit(H.failed == 0 and 0 or 1)
end

return H
