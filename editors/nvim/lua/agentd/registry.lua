--- The sessions that this Neovim knows, each as a view, and which one a folder's prompts go to.
local chat = require("agentd.chat")
local client = require("agentd.client")
local complete = require("agentd.complete")
local config = require("agentd.config")
local edits = require("agentd.edits")
local permission = require("agentd.permission")
local views = require("agentd.view")

local M = {}

local sessions = {} -- id -> view
local current = {} -- root -> session id

--- Tells the user something.
function M.say(text, level)
  vim.notify("agentd: " .. text, level or vim.log.levels.INFO)
end

--- Tells the user what went wrong.
function M.fail(err)
  M.say(err, vim.log.levels.ERROR)
end

--- The folder that what the user is at belongs to.
function M.root_here()
  local view = chat.view
  local buf = vim.api.nvim_get_current_buf()
  if view and vim.api.nvim_buf_get_name(buf):find("^agentd://") then
    return vim.uri_to_fname(view.info.workspaceUri)
  end
  return config.root(buf)
end

--- The view of a session (as the wire tells it).
function M.view_of(session)
  local view = sessions[session.sessionId]
  if not view then
    view = views.new(session, function(item)
      if chat.view and chat.view.id == session.sessionId then
        chat.touch(item)
      end
    end)
    sessions[session.sessionId] = view
  end
  return view
end

--- Shows a view; its folder's prompts go to it from now on.
function M.show(view)
  current[vim.uri_to_fname(view.info.workspaceUri)] = view.id
  chat.show(view)
end

local MESSAGES = 1000 -- so many of a long session are shown

--- Reads a session as it is now.
function M.read_anew(view, callback)
  view.stale = false
  client.request("agentd/session/get", { sessionId = view.id, limit = MESSAGES }, function(err, snapshot)
    if not err then
      view:load(snapshot)
    end
    if callback then
      callback(err, view)
    end
  end)
end

client.on_event = function(params)
  local event = params.event
  local view = sessions[params.sessionId]
  if not view and event.type == "session_changed" and not event.session.parent then
    view = M.view_of(event.session)
  end
  if not view then
    return
  end
  view:apply(params)
  if event.type == "permission_resolved" then
    permission.resolved(event.requestId)
  elseif event.type == "files_changed" or event.type == "session_rewound" then
    edits.reload(event.files)
  elseif event.type == "tool_execution_end" then
    local details = event.result.details
    if details and details.type == "edit" then
      edits.reload(details.files)
    elseif details and details.type == "command" then
      edits.reload()
    end
  end
  if view.stale then
    M.read_anew(view)
  end
  if chat.view == view then
    chat.refresh()
  end
end

--- Opens a session of an earlier time and reads it, or catches up with it: every event once, in order.
function M.attach(session, callback)
  local view = M.view_of(session)
  local is_new = view.seq == 0
  client.request("agentd/session/attach", { sessionId = view.id, afterSeq = view.seq }, function(err, answer)
    if err then
      return callback(err)
    end
    view.detached = false
    for _, params in ipairs(answer.events or {}) do
      view:apply(params)
    end
    if answer.kind == "snapshot" or (is_new and view.info.forkedFrom) then -- what a fork took over is no event of its own
      return M.read_anew(view, callback)
    end
    view:resume(answer)
    callback(nil, view)
  end)
end

--- Has agentd run for a folder, then calls back; failures are told.
function M.start(root, callback)
  local there = vim.uv.fs_stat(root)
  if not there or there.type ~= "directory" then
    local name = root == "" and "the working directory" or root
    return M.fail(name .. " is no folder (any more): go to one with :cd, or open a file of it")
  end
  client.start(root, function(err)
    if err then
      return M.fail(err)
    end
    client.attach_all()
    complete.refresh(root)
    callback()
  end)
end

--- Begins a new session and shows it.
function M.new_session(callback)
  local root = M.root_here()
  M.start(root, function()
    client.request("agentd/session/new", { workspaceUri = vim.uri_from_fname(root) }, function(err, result)
      if err then
        return M.fail(err)
      end
      M.show(M.view_of(result.session))
      if callback then
        callback(chat.view)
      end
    end)
  end)
end

--- Calls back with the session of this folder: the one at hand, caught up with where agentd was stopped, or a
--- new one.
function M.with_session(callback)
  local root = M.root_here()
  local view = sessions[current[root]]
  if not view then
    return M.new_session(callback)
  elseif client.is_ready() and not view.detached then
    return callback(view)
  end
  M.start(root, function()
    M.attach(view.info, function(err)
      if err then
        return M.fail(err)
      end
      callback(view)
    end)
  end)
end

--- The process has ended.
function M.lose()
  permission.forget_all()
  for _, view in pairs(sessions) do
    view:lose()
  end
end

--- All views.
function M.all()
  return sessions
end

--- A session is gone.
function M.forget(id)
  sessions[id] = nil
  for root, session_id in pairs(current) do
    if session_id == id then
      current[root] = nil
    end
  end
end

return M
