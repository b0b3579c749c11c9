-- The commands. Nothing else is loaded before one of them is used.
if vim.g.loaded_agentd then
  return
end
vim.g.loaded_agentd = true

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("agentd needs Neovim 0.10 or newer", vim.log.levels.ERROR)
  return
end

local function command(name, run, options)
  vim.api.nvim_create_user_command(name, function(args)
    run(require("agentd"), args)
  end, options)
end

local function names(of)
  return function(lead)
    return require("agentd.complete").names(of, lead)
  end
end

command("Agentd", function(agentd, args)
  local range = args.range > 0 and { args.line1, args.line2 } or nil
  if args.args == "" and not range then
    agentd.open()
  else
    agentd.prompt(args.args, { range = range })
  end
end, {
  nargs = "*",
  range = true,
  desc = "Open the chat, or send a prompt; a range sends the selection along",
  complete = function(lead)
    return require("agentd.complete").words(lead)
  end,
})
command("AgentdCancel", function(agentd)
  agentd.cancel()
end, { desc = "Cancel the running prompt" })
command("AgentdModel", function(agentd, args)
  agentd.set_model(args.args)
end, { nargs = "?", desc = "Choose the model", complete = names("models") })
command("AgentdMode", function(agentd, args)
  agentd.set_mode(args.args)
end, { nargs = "?", desc = "Choose the permission mode", complete = names("modes") })
command("AgentdSessions", function(agentd)
  agentd.sessions()
end, { desc = "List, resume, fork and delete sessions" })
command("AgentdNew", function(agentd)
  agentd.new_session()
end, { desc = "Begin a new session" })
command("AgentdDiff", function(agentd)
  agentd.diff()
end, { desc = "Show what the session changed" })
command("AgentdUndo", function(agentd, args)
  agentd.undo({ again = args.bang })
end, { bang = true, desc = "Take back what the last prompt did to files; with ! undo that" })
command("AgentdAccept", function(agentd)
  agentd.answer("allow_once")
end, { desc = "Allow what agentd asks for" })
command("AgentdReject", function(agentd)
  agentd.answer("reject_once")
end, { desc = "Reject what agentd asks for" })
command("AgentdQueue", function(agentd)
  agentd.queue()
end, { desc = "Show and change the prompts that wait" })
command("AgentdStop", function(agentd)
  agentd.stop()
end, { desc = "Stop the agentd process" })
