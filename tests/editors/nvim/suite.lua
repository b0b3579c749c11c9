-- nvim --clean -l suite.lua: the plugin in a real Neovim, on a real agentd with the scripted model.
package.path = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/?.lua;" .. package.path
local H = require("harness")

for _, part in ipairs({ "work", "questions", "chat", "documents", "drawing", "abuse", "options" }) do
  require("suite_" .. part)
end

H.run()
