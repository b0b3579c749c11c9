"""`agentd acp`: what it says of itself. Serving is done by `boot.py`, before anything else is imported."""

import sys

_USAGE = "usage: agentd acp [--allow-full] [--record=FILE]"
_HELP = f"""{_USAGE}

Speaks the Agent Client Protocol (version 1, newline-delimited JSON) on stdin and stdout, for editors and
programs that start agents that way. Which model is used, and what it may do, is in your configuration, as for
every other face of agentd; keys come from the environment that it is started in.

  --allow-full    offers mode full, in which nothing is asked
  --record=FILE   writes all exchanges with model servers to a new file, for a bug report

In Zed's settings.json:
  {{"agent_servers": {{"agentd": {{"type": "custom", "command": "agentd", "args": ["acp"]}}}}}}

ACP has no word for whether you trust a folder: `agentd trust add DIR` is how you say it."""


def main(argv: list[str]) -> int:
    """Print the help, or what is wrong with the arguments. Gives the exit code."""
    if argv and argv[0] in ("-h", "--help"):
        print(_HELP)
        return 0
    wrong = " ".join(argv)
    print(f"{_USAGE}\nagentd acp: {wrong!r} is not understood; agentd acp --help says more.", file=sys.stderr)
    return 2
