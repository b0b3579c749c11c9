-- Options, commands, health and help: what is documented is what there is.
local H = require("harness")
local agentd, test, eq, wait = H.agentd, H.test, H.eq, H.wait

local config = require("agentd.config")
local help = table.concat(vim.fn.readfile(vim.api.nvim_get_runtime_file("doc/agentd.txt", false)[1]), "\n")

test("wrong options are refused by name", function()
  local ok, err = pcall(agentd.setup, { savve = true })
  eq(false, ok)
  assert(err:find("savve", 1, true))
  ok, err = pcall(agentd.setup, { save = "perhaps" })
  eq(false, ok)
  assert(err:find("ask, always, never", 1, true))
end)

test("every command has its help, and every command that the help names is there", function()
  local documented, there = {}, {}
  for name in help:gmatch("%*:(Agentd%a*)%*") do
    documented[name] = true
    assert(help:find("\n:" .. name, 1, true), name .. " has a tag and no text")
  end
  for name, command in pairs(vim.api.nvim_get_commands({})) do
    if name:find("^Agentd") then
      there[name] = true
      assert(command.definition ~= "", name .. " does not say what it does")
    end
  end
  eq(there, documented)
  eq(true, vim.api.nvim_get_commands({}).AgentdUndo.bang)
end)

test("the options in the help are all that there are, with their defaults", function()
  local block = help:match('require%("agentd"%)(%.setup%(%b{}%))')
  local said
  local documented = { setup = function(options)
    said = options
  end }
  assert(loadstring("local documented = ... documented" .. block))(documented)
  local before = config.options
  config.setup({})
  eq(config.options, said)
  config.options = before
  for name, value in pairs({ env = {}, root = vim.fn.getcwd, model = "m", mode = "ask", trusted = true }) do
    assert(block:find("\n      " .. name .. " = nil", 1, true), name .. " is not in the help")
    assert(pcall(config.setup, { [name] = value }))
  end
  for name, choices in pairs({ save = { "ask", "always", "never" }, when_busy = { "ask", "steer", "queue", "interrupt" } }) do
    for _, choice in ipairs(choices) do
      assert(block:find('"' .. choice .. '"', 1, true), choice .. " is not in the help")
      config.setup({ [name] = choice })
      eq(choice, config.options[name])
    end
  end
  config.options = before
end)

test("the functions in the help are there", function()
  local count = 0
  for name in help:match("FUNCTIONS.-\n==="):gmatch("([%a_]+)%(") do
    if name ~= "require" then
      count = count + 1
      eq({ name, "function" }, { name, type(agentd[name]) })
    end
  end
  eq(12, count)
end)

test("the keys of the help do in their windows what it says", function()
  H.session({}, "ask", { "x" })
  local chat = require("agentd.chat")
  local function keys(buf, mode)
    return vim.tbl_map(function(map)
      return map.lhs
    end, vim.api.nvim_buf_get_keymap(buf, mode))
  end
  for key, where in pairs({ ["<CR>"] = "n", ["<C-S>"] = "i", ["<C-C>"] = "n", q = "n", ["@"] = "i", ["/"] = "i" }) do
    assert(vim.tbl_contains(keys(chat.prompt_buffer(), where), key), key)
  end
  for _, key in ipairs({ "<C-C>", "q", "i" }) do
    assert(vim.tbl_contains(keys(chat.buffer(), "n"), key), key)
  end
end)

-- --- health ------------------------------------------------------------------------------------------

local function health()
  vim.cmd("checkhealth agentd")
  return table.concat(H.lines(0), "\n")
end

local function stopped()
  agentd.stop()
  wait("it has ended", function()
    return not require("agentd.client").id()
  end)
end

-- What health says with this command, and that the report is one with a way out.
local function health_with(cmd, env)
  local before = config.options
  config.setup({ cmd = cmd, env = env })
  local said = health()
  config.options = before
  assert(said:find("ADVICE", 1, true), said)
  return said
end

local function program(text)
  local path = vim.fn.tempname()
  vim.fn.writefile(vim.split("#!/bin/sh\n" .. text, "\n"), path)
  vim.uv.fs_chmod(path, tonumber("755", 8))
  return path
end

test("checkhealth says how it stands", function()
  H.session({}, "ask", { "x" })
  local said = health()
  assert(said:find("protocol 1", 1, true), said)
  assert(not said:find("ERROR"), said)
end)

test("checkhealth tells the way out where agentd is not there, is another program or too old", function()
  stopped()
  local said = health_with({ "no-such-agentd" })
  assert(said:find("no-such-agentd is not an executable", 1, true), said)
  assert(said:find("pip install", 1, true), said)
  said = health_with({ program("echo something else"), "--stdio" })
  assert(said:find("does not say which agentd it is: something else", 1, true), said)
  said = health_with({ program("echo broken >&2; exit 3"), "--stdio" })
  assert(said:find("broken", 1, true), said)
  said = health_with({ program("echo agentd 0.0.9"), "--stdio" })
  assert(said:find("agentd 0.0.9 is older than this plugin", 1, true), said)
end)

test("checkhealth tells what is wrong with the configuration before agentd runs", function()
  stopped()
  local broken = H.home .. "/broken.toml"
  vim.fn.writefile({ "modell = " }, broken)
  local said = health_with(config.options.cmd, { AGENTD_CONFIG = broken })
  assert(said:find("ERROR.*broken.toml:1: is no valid TOML"), said)
  assert(said:find("agentd doctor", 1, true), said)
end)

test("checkhealth tells of a process that speaks another protocol", function()
  H.session({}, "ask", { "x" })
  local client = require("agentd.client")
  local announced = client.announced
  client.announced = function()
    return { version = "9.0", protocol = 2 }
  end
  local said = health()
  client.announced = announced
  assert(said:find("agentd 9.0 speaks protocol 2, this plugin 1", 1, true), said)
end)
