"""`python -m agentd` is the `agentd` command."""

import sys

from agentd.boot import main

sys.exit(main())
