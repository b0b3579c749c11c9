"""Fixtures of the provider tests."""

from fakes.model_server import model_server

__all__ = ["model_server"]
