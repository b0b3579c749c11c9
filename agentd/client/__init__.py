"""A headless client of agentd."""
