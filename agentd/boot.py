"""The command's entry: it takes stdin and stdout away, answers `initialize`, and only then imports the rest.

Standard library only. An editor waits for `initialize` before it does anything else, and pydantic and asyncio
alone take longer to import than everything up to here. So the answer is given from plain data
(`protocol/capabilities.py`), and the request is handed on with the word that it is answered.

What is taken away before anything else runs:

* stdin and stdout: a stray `print` or a child that inherits them cannot touch the wire;
* the secrets in the environment: no child process and no reader of /proc finds them.
"""

import gc
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentd.config.secrets import Secrets
from agentd.daemon.descriptors import read_some, write_all
from agentd.daemon.start import Reader, Start
from agentd.protocol import strict_json
from agentd.protocol.capabilities import LIMITS, MAX_PROCESS_ID, initialize_result
from agentd.protocol.frames import BrokenFraming, FrameReader, encode
from agentd.protocol.lines import LineReader, encode_line
from agentd.server.client_profile import quirks_of

_READ_BYTES = 64 * 1024
_SERVING = ("serve", "--stdio", "--allow-full")
_CLIENT_PROCESS = re.compile(r"--clientProcessId=([1-9][0-9]{0,9})")
"""The editor's process, as vscode-languageclient names it; `processId` in `initialize` says the same."""
_RECORD = "--record="
"""Begins the argument that names a new file, to which all exchanges with model servers are written."""
_FLAGS = ("trusted", "permission", "diagnostics", "save")


def main(argv: list[str] | None = None) -> int:
    """The `agentd` command. Without a command of its own it serves; see `agentd --help`."""
    arguments = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # until there is more to end than ourselves
    had_stdout = _open_missing()
    if sys.platform == "win32" and arguments != ["--version"]:
        print("agentd does not run on Windows itself: use it inside WSL.", file=sys.stderr)
        return 2
    if arguments[:1] == ["acp"] and all(map(_is_of_acp, arguments[1:])):
        return _serve(arguments[1:], _ACP) if had_stdout else 1
    if all(map(_is_of_daemon, arguments)):
        return _serve(arguments, _LSP) if had_stdout else 1
    from agentd.cli import main as command_line

    signal.signal(signal.SIGINT, signal.default_int_handler)
    return command_line(arguments)


def _is_of_daemon(argument: str) -> bool:
    return (
        argument in _SERVING
        or argument.startswith(_RECORD)
        or _CLIENT_PROCESS.fullmatch(argument) is not None
    )


def _is_of_acp(argument: str) -> bool:
    return argument == "--allow-full" or argument.startswith(_RECORD)


@dataclass(frozen=True)
class _Face:
    """How a protocol is spoken before the room that speaks it is imported.

    `answer` gives the result of the first message where that is right beyond doubt, else None. `load` imports
    the rest and gives what serves.
    """

    reader: Callable[[int], Reader]
    frame: Callable[[bytes], bytes]
    answer: Callable[[Any], dict[str, Any] | None]
    load: Callable[[], Callable[[Start], int]]


def _serve(arguments: list[str], face: _Face) -> int:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # from `serve` on, in good order
    fd_in, fd_out = _take_stdio()
    start = Start(fd_in, fd_out, face.reader(LIMITS["maxMessageBytes"]), Secrets.take_from(os.environ))
    start.allow_full = "--allow-full" in arguments
    start.client_process = next((int(m[1]) for m in map(_CLIENT_PROCESS.fullmatch, arguments) if m), None)
    for file in [argument.removeprefix(_RECORD) for argument in arguments if argument.startswith(_RECORD)]:
        try:
            start.recording = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            print(f"agentd: cannot record to {file!r}: {error.strerror}.", file=sys.stderr)
            return 1
    _read_first_frame(start)
    if start.ended and not start.frames:
        return 0  # told nothing, so there is nothing to load
    try:
        start.answered = _answer_early(start, face)
    except OSError:  # nobody reads
        return 1
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # looking for some reads every installed distribution
    gc.disable()  # imports make a hundred thousand objects that all stay
    serve = face.load()
    gc.freeze()
    gc.enable()
    code = serve(start)
    # A tool that was left behind in a thread must not keep the process: everything worth saving is saved.
    os._exit(code)


def _open_missing() -> bool:
    """Open what of stdin, stdout and stderr we were started without; whether stdout was there.

    Otherwise the next file that is opened takes its number, and what is printed goes there.
    """
    missing = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            missing.append(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    return 1 not in missing


def _take_stdio() -> tuple[int, int]:
    """Move stdin and stdout to descriptors that only we know; 0 reads nothing and 1 is stderr from now on."""
    fd_in, fd_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return fd_in, fd_out


def _read_first_frame(start: Start) -> None:
    while not start.frames:
        data = read_some(start.fd_in, _READ_BYTES)
        if not data:
            start.ended = True
            return
        try:
            for frame in start.reader.feed(data):
                start.frames.append(frame)
        except BrokenFraming as error:
            start.broken = error
            return


def _answer_early(start: Start, face: _Face) -> bool:
    """Answer the first frame where it is an `initialize` that is right beyond doubt.

    Whatever is not is left to the face's front door, which knows every error. Raises OSError when nobody
    reads.
    """
    if not start.frames or not isinstance(start.frames[0], bytes):
        return False
    try:
        message = strict_json.loads(start.frames[0])
    except ValueError:
        return False
    if not _is_initialize(message) or (result := face.answer(message["params"])) is None:
        return False
    answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
    write_all(start.fd_out, face.frame(json.dumps(answer, separators=(",", ":")).encode()))
    return True


def _is_initialize(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("jsonrpc") == "2.0"
        and message.get("method") == "initialize"
        and type(message.get("id")) in (int, str)
        and isinstance(message.get("params"), dict)
    )


def _answer_in_lsp(params: dict[str, Any]) -> dict[str, Any] | None:
    if not _are_plain(params):
        return None
    quirks = quirks_of(params.get("clientInfo"))
    return initialize_result(
        params["capabilities"], whole_documents=quirks.counts_characters, at_once=quirks.tells_twice
    )


def _answer_in_acp(params: dict[str, Any]) -> dict[str, Any] | None:
    from agentd.acp import greeting

    return greeting.initialize_result() if greeting.is_plain(params) else None


def _load_lsp() -> Callable[[Start], int]:
    from agentd.server.app import serve

    return serve


def _load_acp() -> Callable[[Start], int]:
    from agentd.acp.app import serve

    return serve


_LSP = _Face(FrameReader, encode, _answer_in_lsp, _load_lsp)
_ACP = _Face(LineReader, encode_line, _answer_in_acp, _load_acp)


def _are_plain(params: dict[str, Any]) -> bool:
    capabilities = params.get("capabilities")
    return (
        isinstance(capabilities, dict)
        and _is_process_id(params.get("processId"))
        and _are_plain_folders(params.get("workspaceFolders"))
        and _is_optional(params.get("rootUri"), str)
        and _is_optional(params.get("rootPath"), str)
        and _has_plain_options(params.get("initializationOptions"))
        and _has_plain_options(capabilities.get("experimental"))
    )


def _is_process_id(value: Any) -> bool:
    return value is None or (type(value) is int and 0 < value <= MAX_PROCESS_ID)


def _is_optional(value: Any, kind: type) -> bool:
    return value is None or isinstance(value, kind)


def _are_plain_folders(folders: Any) -> bool:
    return folders is None or (
        isinstance(folders, list)
        and all(isinstance(f, dict) and isinstance(f.get("uri"), str) for f in folders)
    )


def _is_text_table(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _has_plain_options(holder: Any) -> bool:
    options = holder.get("agentd") if isinstance(holder, dict) else None
    if options is None:
        return True
    if not isinstance(options, dict):
        return False
    plain: dict[str, Callable[[Any], bool]] = {
        "model": lambda value: isinstance(value, str),
        "mode": lambda value: value in ("plan", "ask", "edit", "auto"),  # full needs the user's word
        "updates": lambda value: value in ("all", "coalesced", "none"),
        "credentials": _is_text_table,
        **{name: lambda value: isinstance(value, bool) for name in _FLAGS},
    }
    return all(plain[name](value) for name, value in options.items() if name in plain)
