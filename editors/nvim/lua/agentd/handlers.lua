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
    local buf = vim.uri_to_bufnr(uri)
    local ok, err = pcall(vim.api.nvim_buf_call, buf, function()
      vim.cmd("silent write")
    end)
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
  vim.schedule(function()
    vim.ui.select({ "Save", "Run anyway" }, {
      prompt = ("agentd runs a command that would not see what is unsaved in %s"):format(table.concat(names, ", ")),
      kind = "agentd_save",
    }, function(choice)
      local answer = choice == "Save" and save(uris) or keep(uris, "the user chose not to save it")
      vim.schedule(function()
        coroutine.resume(thread, answer)
      end)
    end)
  end)
  return coroutine.yield()
end

local SEVERITY = { 1, 2, 3, 4 }

local function to_lsp(diagnostic)
  local original = vim.tbl_get(diagnostic, "user_data", "lsp")
  return {
    range = {
      start = { line = diagnostic.lnum, character = diagnostic.col },
      ["end"] = { line = diagnostic.end_lnum or diagnostic.lnum, character = diagnostic.end_col or diagnostic.col },
    },
    severity = SEVERITY[diagnostic.severity],
    message = diagnostic.message,
    source = diagnostic.source,
    code = original and original.code or diagnostic.code,
  }
end

--- What other language servers say of files.
M["agentd/diagnostics/get"] = function(_, params)
  local items = {}
  local function add(uri, buf)
    table.insert(items, {
      uri = uri,
      version = client.version(buf),
      diagnostics = vim.tbl_map(to_lsp, vim.diagnostic.get(buf)),
    })
  end
  if client.plain(params).uris then
    for _, uri in ipairs(params.uris) do
      local buf = vim.fn.bufnr(vim.uri_to_fname(uri))
      if buf > 0 then
        add(uri, buf)
      end
    end
  else
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if #vim.diagnostic.get(buf) > 0 then
        add(vim.uri_from_bufnr(buf), buf)
      end
    end
  end
  return { items = items }
end

return M
