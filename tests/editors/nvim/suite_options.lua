-- Options, health and help.
local H = require("harness")
local agentd, test, eq = H.agentd, H.test, H.eq

test("wrong options are refused by name", function()
  local ok, err = pcall(agentd.setup, { savve = true })
  eq(false, ok)
  assert(err:find("savve", 1, true))
  ok, err = pcall(agentd.setup, { save = "perhaps" })
  eq(false, ok)
  assert(err:find("ask, always, never", 1, true))
end)

test("checkhealth says how it stands", function()
  vim.cmd("checkhealth agentd")
  local said = table.concat(H.lines(0), "\n")
  assert(said:find("protocol 1", 1, true), said)
  assert(not said:find("ERROR"), said)
end)

test("the help is there", function()
  local docs = vim.api.nvim_get_runtime_file("doc/agentd.txt", false)[1]
  assert(docs)
  local text = table.concat(vim.fn.readfile(docs), "\n")
  for name in pairs(vim.api.nvim_get_commands({})) do
    if name:find("^Agentd") then
      assert(text:find("*:" .. name .. "*", 1, true), name .. " has no help")
    end
  end
end)
