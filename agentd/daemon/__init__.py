"""The process below every face: its pipes, its JSON-RPC door, its life and its house."""
