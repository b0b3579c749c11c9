--- What was said and done: sessions of earlier times, diffs, and going back.
local chat = require("agentd.chat")
local client = require("agentd.client")
local edits = require("agentd.edits")
local registry = require("agentd.registry")

local M = {}

local say, fail = registry.say, registry.fail

local function forked(view)
  client.request("agentd/session/fork", { sessionId = view.sessionId }, function(err, result)
    if err then
      return fail(err)
    end
    M.resume(result.session)
  end)
end

local function delete(session)
  client.request("agentd/session/delete", { sessionId = session.sessionId }, function(err)
    if err then
      return fail(err)
    end
    registry.forget(session.sessionId)
    say("deleted " .. (session.title ~= "" and session.title or session.sessionId))
  end)
end

--- Opens a session (as the wire tells it) and shows it.
function M.resume(session)
  registry.attach(session, function(err, view)
    if err then
      return fail(err)
    end
    registry.show(view)
    chat.open(true)
  end)
end

local ACTIONS = { { "Resume", M.resume }, { "Fork", forked }, { "Delete", delete } }

--- Lists the sessions of this folder, to resume, fork or delete one.
function M.sessions()
  local root = registry.root_here()
  registry.start(root, function()
    client.request("agentd/session/list", { workspaceUri = vim.uri_from_fname(root) }, function(err, result)
      if err then
        return fail(err)
      end
      if #result.sessions == 0 then
        return say("there is no session in " .. root)
      end
      vim.ui.select(result.sessions, {
        prompt = "Sessions",
        kind = "agentd_session",
        format_item = function(session)
          local title = session.title ~= "" and session.title or session.sessionId
          local held = session.lockedBy and (" (open in process %d)"):format(session.lockedBy) or ""
          return ("%s  %s, %d messages%s"):format(title, session.updatedAt:sub(1, 16):gsub("T", " "), session.messageCount, held)
        end,
      }, function(session)
        if not session then
          return
        end
        vim.ui.select(ACTIONS, {
          prompt = session.title,
          kind = "agentd_session_action",
          format_item = function(action)
            return action[1]
          end,
        }, function(action)
          if action then
            action[2](session)
          end
        end)
      end)
    end)
  end)
end

--- Shows what the session changed, in a tab of its own.
function M.diff()
  local view = chat.view
  if not view then
    return say("there is no session yet")
  end
  client.request("agentd/session/diff", { sessionId = view.id }, function(err, result)
    if err then
      return fail(err)
    end
    if result.patch == "" then
      return say("the session has changed no file")
    end
    vim.cmd.tabnew()
    local buf = vim.api.nvim_get_current_buf()
    vim.bo[buf].buftype, vim.bo[buf].bufhidden = "nofile", "wipe"
    vim.api.nvim_buf_set_lines(buf, 0, -1, false, require("agentd.render").lines(result.patch))
    vim.bo[buf].filetype, vim.bo[buf].modifiable = "diff", false
  end)
end

local function told(files)
  local conflicts, done = {}, {}
  for _, file in ipairs(files) do
    local name = vim.fn.fnamemodify(vim.uri_to_fname(file.uri), ":~:.")
    table.insert(file.conflict and conflicts or done, file.conflict and ("%s: %s"):format(name, file.conflict) or name)
  end
  return done, conflicts
end

--- Undoes the last undo of the session that is shown.
function M.undo_again()
  local view = chat.view
  if not view then
    return say("there is no session yet")
  end
  client.request("agentd/session/rewind", { sessionId = view.id, undo = true }, function(err, result)
    if err then
      return fail(err)
    end
    edits.reload(result.files)
    local done, conflicts = told(result.files)
    say(#done > 0 and ("brought back " .. table.concat(done, ", ")) or "no file was brought back")
    if #conflicts > 0 then
      say("left alone: " .. table.concat(conflicts, "; "), vim.log.levels.WARN)
    end
  end)
end

return M
