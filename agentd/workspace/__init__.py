"""The user's files, buffers and processes."""
