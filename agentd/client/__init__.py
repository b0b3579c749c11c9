"""A headless client of agentd: the daemon in a child process, as an async Python object."""

from agentd.client.client import Client
from agentd.client.connection import ConnectionLost
from agentd.client.event_stream import EventStream
from agentd.client.link import DaemonEnded
from agentd.client.prompt_run import PromptRun
from agentd.protocol.errors import RpcError
from agentd.protocol.methods import ClientOptions, PermissionAnswer

__all__ = [
    "Client",
    "ClientOptions",
    "ConnectionLost",
    "DaemonEnded",
    "EventStream",
    "PermissionAnswer",
    "PromptRun",
    "RpcError",
]
