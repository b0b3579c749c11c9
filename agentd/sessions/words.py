"""What a prompt's words come to: its commands looked up, before anything of it happens.

Looking up is one step without a wait, so that prompts are taken in the order in which they were read. It
reads one small file for each command, and only where there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.agent.command_arguments import TooLong, filled_in
from agentd.agent.commands import BUILT_IN, Command, CommandError, Commands, stricter
from agentd.agent.references import Template
from agentd.protocol.errors import RpcError
from agentd.protocol.messages import CommandContent, ContentBlock, Mode, ResourceContent
from agentd.sessions.house import House
from agentd.sessions.prompts import built_in, check_blocks


@dataclass(frozen=True)
class Words:
    """A prompt with the texts of its commands in their places.

    `model` and `mode` are what its commands want. `built_in` is the command of agentd's own that it is.
    """

    parts: tuple[ContentBlock | Template, ...]
    model: str | None = None
    mode: Mode | None = None
    built_in: CommandContent | None = None

    @property
    def are_literal(self) -> bool:
        """Whether the model is shown just what the user wrote."""
        return not any(isinstance(part, Template | ResourceContent | CommandContent) for part in self.parts)


def look_up(blocks: Sequence[ContentBlock], root: Path, house: House) -> Words:
    """What a prompt comes to now. Raises `RpcError` for one that cannot run.

    That is `invalidParams` where there is no such command, or none that can be used.
    """
    check_blocks(blocks, root)
    if (own := built_in(blocks)) is not None:
        return Words(tuple(blocks), built_in=own)
    parts: list[ContentBlock | Template] = []
    model: str | None = None
    mode: Mode | None = None
    for number, block in enumerate(blocks):
        if not isinstance(block, CommandContent):
            parts.append(block)
            continue
        where = f"/prompt/{number}"
        command = _command(block.name, commands_in(root, house), where)
        model = model or command.model
        mode = command.mode if mode is None else stricter(mode, command.mode)
        try:
            parts.append(Template(filled_in(command.text, block.arguments)))
        except TooLong as error:
            raise RpcError("invalidParams", f"{where}/arguments: {error}") from error
    return Words(tuple(parts), model, mode)


def commands_in(root: Path, house: House) -> Commands:
    """The commands that count in a workspace folder, as far as the user trusts it now."""
    return Commands(root, house.config_folder, trusted=house.settings.trusts(root))


def _command(name: str, commands: Commands, where: str) -> Command:
    if name in BUILT_IN:
        raise RpcError(
            "invalidParams", f"{where}: /{name} is a command of agentd itself; send it in a prompt of its own"
        )
    try:
        return commands.find(name)
    except CommandError as error:
        hint = "/help lists those that there are. Where you type it, a blank before the / makes it text."
        raise RpcError("invalidParams", f"{where}/name: {error}", hint=hint) from error
