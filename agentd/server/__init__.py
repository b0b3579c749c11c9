"""The language server: the only room that knows JSON-RPC and LSP."""
