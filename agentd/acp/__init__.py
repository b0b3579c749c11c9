"""The Agent Client Protocol: the other face of the same sessions. The only room that knows ACP."""
