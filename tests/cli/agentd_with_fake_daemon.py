"""The `agentd` command, whose daemon is the one that plays a part (`fakes/fake_agentd.py`)."""

import sys
from pathlib import Path

from agentd.cli import main
from agentd.client import daemon

daemon.DEFAULT_COMMAND = (sys.executable, str(Path(__file__).parents[1] / "fakes" / "fake_agentd.py"))
sys.exit(main(sys.argv[1:]))
