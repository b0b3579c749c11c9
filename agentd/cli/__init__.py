"""The command line. Each command is a module of its own, imported only when it is used."""

import sys
from importlib import import_module

from agentd import __version__

COMMANDS = {
    "serve": "speak the protocol on stdin and stdout (what `agentd` without a command does)",
    "acp": "speak the Agent Client Protocol on stdin and stdout",
    "run": "run one prompt here and print the answer",
    "demo": "watch an agent repair a small project; needs no network and no key",
    "sessions": "list, show, export and remove sessions",
    "models": "list the models that can be used",
    "trust": "list or change the folders that you trust",
    "permissions": "list or change what you allowed for good",
    "doctor": "show the configuration in force and what is wrong with it",
    "schema": "print the protocol as JSON Schema or TypeScript",
}

_USAGE = "usage: agentd [--version] [--help] [COMMAND ...]"


def main(argv: list[str]) -> int:
    """Run the command that `argv` names, with the rest as its arguments. Gives the exit code, 2 for usage."""
    try:
        code = _run(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader of stdout is gone: end as quietly as a program that SIGPIPE ends
        _discard_stdout()
        return 141
    except OSError as error:
        from agentd.cli.failures import in_words, is_nowhere, is_unwritable

        if is_unwritable(error):
            _discard_stdout()
        elif not is_nowhere(error):
            raise
        print(f"agentd: {in_words(error)}", file=sys.stderr)
        return 1
    return code


def _run(argv: list[str]) -> int:
    name, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if argv == ["--version"]:
        print(f"agentd {__version__}")
        return 0
    if name in ("-h", "--help", "help"):
        print(_help())
        return 0
    if name not in COMMANDS or name == "serve":
        print(f"{_USAGE}\nagentd: there is no command {name!r}; agentd --help lists them.", file=sys.stderr)
        return 2
    code: int = import_module(f"agentd.cli.{name}").main(rest)
    return code


def _help() -> str:
    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    return f"""{_USAGE}

agentd is a coding agent that lives in your editor as a language server. Without a command it serves
an editor on stdin and stdout.

commands:
{commands}

agentd COMMAND --help says more about each."""


def _discard_stdout() -> None:
    """What is still buffered has nowhere to go; without this the interpreter would complain at its end."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
