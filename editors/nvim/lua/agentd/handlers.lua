--- What agentd says and asks of this editor.
local client = require("agentd.client")
local config = require("agentd.config")

local M = {}

M["agentd/event"] = function(_, params)
  client.on_event(client.plain(params))
end

M["agentd/permission/request"] = function(_, params)
  return require("agentd.permission").ask(client.plain(params))
end

M["workspace/applyEdit"] = function(...)
  return require("agentd.edits").apply(...)
end

local function save(uris)
  local saved, failed = {}, {}
  for _, uri in ipairs(uris) do
    local buf = client.buffer(uri)
    local ok, err = false, "its buffer is gone"
    if buf and vim.api.nvim_buf_is_loaded(buf) then
      ok, err = pcall(vim.api.nvim_buf_call, buf, function()
        vim.cmd("silent write")
      end)
    end
    if ok and not vim.bo[buf].modified then
      table.insert(saved, uri)
    else
      table.insert(failed, { uri = uri, reason = tostring(err or "the buffer is still modified") })
    end
  end
  return { saved = saved, failed = failed }
end

local function keep(uris, reason)
  return {
    saved = {},
    failed = vim.tbl_map(function(uri)
      return { uri = uri, reason = reason }
    end, uris),
  }
end

--- A command is about to run, and would not see what is not saved.
M["agentd/document/save"] = function(_, params)
  local uris = params.uris
  if config.options.save == "always" then
    return save(uris)
  elseif config.options.save == "never" then
    return keep(uris, "the user keeps buffers unsaved")
  end
  local thread = coroutine.running()
  local names = vim.tbl_map(function(uri)
    return vim.fn.fnamemodify(vim.uri_to_fname(uri), ":~:.")
  end, uris)
  require("agentd.ask").select({ "Save", "Run anyway" }, {
    prompt = ("agentd runs a command that would not see what is unsaved in %s"):format(table.concat(names, ", ")),
    kind = "agentd_save",
  }, function(choice)
    local answer = choice == "Save" and save(uris) or keep(uris, "the user chose not to save it")
    vim.schedule(function()
      coroutine.resume(thread, answer)
    end)
  end)
  return coroutine.yield()
end

--- What other language servers say of files.
M["agentd/diagnostics/get"] = function(_, params)
  return require("agentd.diagnostics").get(client.plain(params))
end

return M
