"""The tool-call loop."""
