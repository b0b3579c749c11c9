"""How JSON-RPC is spoken in LSP."""

from agentd.daemon.door import Dialect

LSP = Dialect(cancel="$/cancelRequest", cancelled_id="id", begin="initialize", end="shutdown", leave="exit")
