"""Fixtures of the provider tests."""

from fakes.model_server import model_server
from fakes.responses_server import responses_server

__all__ = ["model_server", "responses_server"]
