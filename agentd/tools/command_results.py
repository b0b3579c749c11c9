"""What the command tools tell alike: how a command ended, and where its whole output is."""

from agentd.protocol.messages import CommandDetails
from agentd.workspace.command import CommandResult
from agentd.workspace.paths import uri_of
from agentd.workspace.spills import FILE_BYTES, Spill


def ending(result: CommandResult) -> str:
    """How a command ended by itself: `exit code 3`, `killed by SIGKILL`."""
    return f"killed by {result.signal}" if result.signal else f"exit code {result.exit_code}"


def kept_output(truncated: bool, spill: Spill | None) -> list[str]:
    """Where the model finds all of an output that was cut, or why it does not; a line, or none."""
    if not truncated or spill is None:
        return []
    if spill.path is None:
        return [f"[the whole output could not be kept in a file: {spill.flaw}]"] if spill.flaw else []
    part = f"the first {FILE_BYTES // 2**20} MB" if spill.is_capped else "all"
    return [f"[{part} of the output: {spill.path} (read_file and search_files take this path)]"]


def command_details(
    result: CommandResult, spill: Spill | None, *, printed: str | None = None
) -> CommandDetails:
    """The same for clients. `printed`: what it printed in colour, where the call tells all of the command."""
    path = spill.path if spill is not None else None
    return CommandDetails(
        exit_code=result.exit_code,
        signal=result.signal,
        duration_ms=round(result.duration * 1000),
        truncated=result.truncated,
        total_bytes=result.total_bytes,
        spill_uri=uri_of(path) if path is not None else None,
        printed=printed,
    )
