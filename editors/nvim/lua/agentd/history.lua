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

local function rewind(params)
  client.request("agentd/session/rewind", params, function(err, result)
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

--- The last prompt of a session that changed files; `callback(nil)` where none did.
local function last_change(view, callback, number)
  number = number or #view.prompts
  local prompt_id = view.prompts[number]
  if not prompt_id then
    return callback(nil)
  end
  client.request("agentd/session/diff", { sessionId = view.id, promptId = prompt_id }, function(err, result)
    if not err and #result.files > 0 then
      return callback(prompt_id)
    end
    last_change(view, callback, number - 1)
  end)
end

--- Takes back what the last prompt did to files, after showing which; with `again` the last undo is undone.
function M.undo(options)
  local view = chat.view
  if not view then
    return say("there is no session yet")
  end
  if options and options.again then
    return rewind({ sessionId = view.id, undo = true })
  end
  last_change(view, function(prompt_id)
    if not prompt_id then
      return say("no prompt of this session has changed a file")
    end
    local params = { sessionId = view.id, promptId = prompt_id, scope = "files" }
    client.request("agentd/session/rewind", vim.tbl_extend("force", params, { dryRun = true }), function(err, plan)
      if err then
        return fail(err)
      end
      local done, conflicts = told(plan.files)
      local left = #conflicts > 0 and (" (left alone: %s)"):format(table.concat(conflicts, "; ")) or ""
      vim.ui.select({ "Bring back", "Leave as it is" }, {
        prompt = ("Undo the last prompt's changes of %s%s"):format(table.concat(done, ", "), left),
        kind = "agentd_undo",
      }, function(choice)
        if choice == "Bring back" then
          rewind(params)
        end
      end)
    end)
  end)
end

return M
