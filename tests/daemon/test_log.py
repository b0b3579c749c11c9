"""The log shows no secret, whichever way an error comes to it."""

import subprocess
import sys

import pytest

CANARY = "sk-canary-0123456789abcdef"

BEGIN = f"""
import logging, threading
from agentd.config.secrets import Secrets
from agentd.daemon.log import set_up_log

key = "{CANARY}"
secrets = Secrets()
secrets.learn(key)
handler = set_up_log(secrets, "WARNING")
"""

WAYS = {
    "a message": "logging.warning('with %s', key)",
    "a traceback": "try: raise ValueError(f'bad header {key}')\n"
    "except ValueError: logging.exception('it failed')",
    "a thread": "def fail(): raise ValueError(f'bad header {key}')\n"
    "thread = threading.Thread(target=fail); thread.start(); thread.join()",
    "a finalizer": "class Fails:\n    def __del__(self): raise ValueError(f'bad header {key}')\nFails()",
    "the program itself": "import atexit; atexit.register(handler.flush)\n"
    "raise ValueError(f'bad header {key}')",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_error_shows_a_key(way: str) -> None:
    source = f"{BEGIN}\n{way}\nhandler.flush()"
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert "***" in done.stderr
    assert CANARY not in done.stderr
    assert ("bad header ***" in done.stderr) == ("bad header" in way)
    assert CANARY not in done.stdout
