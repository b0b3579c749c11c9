"""agentd: the coding agent that lives inside your editor as a language server."""

__version__ = "0.1.0"
