"""The contract between agentd and its clients: types and names, no I/O."""
