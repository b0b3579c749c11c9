"""The user's settings."""
