"""Fixtures of the provider tests."""

from fakes.gemini_server import gemini_server
from fakes.model_server import model_server
from fakes.responses_server import responses_server

__all__ = ["gemini_server", "model_server", "responses_server"]
