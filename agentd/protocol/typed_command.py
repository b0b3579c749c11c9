"""Text that a user typed as a command: `/name arguments`."""

import re

from agentd.protocol.messages import CommandContent

_COMMAND = re.compile(r"/(?P<name>\w[\w.:-]*)(?:\s+(?P<arguments>.*))?", re.DOTALL)


def typed_command(text: str) -> CommandContent | None:
    """The command that a text is; None where it is another text, such as a path. A blank before the `/` makes
    it one.
    """
    command = _COMMAND.fullmatch(text.rstrip())
    if command is None:
        return None
    return CommandContent(name=command["name"], arguments=(command["arguments"] or "").strip())
