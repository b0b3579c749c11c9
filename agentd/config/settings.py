"""The user's configuration: one TOML file and some variables, checked to the letter.

Nothing here raises. What is wrong becomes a `Problem` with file, line and key, and what is right still
counts. A key that is wrong is as if it were not there; a provider that would not work without it is left out.
No message shows a value that may be a secret. No file of a workspace is read here; what one may say is in
`workspace_settings.py`.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from agentd.config.builtin import BUILT_IN
from agentd.config.checker_settings import Checker, checker_settings
from agentd.config.checkpoint_settings import CheckpointSettings, checkpoint_settings
from agentd.config.command_rules import NO_RULES, UNKNOWN_RULES, CommandRules, command_rules
from agentd.config.compaction_settings import CompactionSettings, compaction_settings
from agentd.config.dialects import APIS
from agentd.config.folders import CONFIG_VARIABLE, DATA_VARIABLE, config_file, data_dir, is_nowhere
from agentd.config.provider_settings import (
    MODEL_ID,
    VARIABLE,
    ModelSettings,
    Placed,
    ProviderSettings,
    built_in,
    described,
    not_known,
    plain_built_in,
)
from agentd.config.sandbox_settings import SandboxSettings, sandbox_settings
from agentd.config.subagent_settings import SubagentSettings, subagent_settings
from agentd.config.toml_table import Document, Table, dotted, shown
from agentd.config.trust import too_wide
from agentd.protocol.messages import Mode
from agentd.protocol.methods import Problem

__all__ = ["APIS", "MODEL_VARIABLE", "ModelSettings", "ProviderSettings", "Settings", "load"]

MODEL_VARIABLE = "AGENTD_MODEL"

_KEY = re.compile(r"\[{0,2}[\w.-]+\]{0,2}")
_NO_NAMES = ("scripted",)
USER_KEYS = (
    "model", "mode", "allow_full", "trusted", "permissions", "sandbox", "compaction", "subagents",
    "retention_days", "providers", "environment", "checkpoints", "checkers",
)  # fmt: skip
"""All that the file may say."""
_ENVIRONMENT = ("pass",)
DEFAULT_RETENTION_DAYS = 90
_MAX_BYTES = 1024 * 1024
COUNTS_NOT = "nothing in it counts, and every command is asked about, but in mode full"
"""What is said of a file that cannot be understood: it may hold rules."""
_NO_HOME = f"This user has no home folder to keep sessions in: set {DATA_VARIABLE} to a folder."
_Providers = dict[str, ProviderSettings]


@dataclass(frozen=True)
class Settings:
    """What is in force, and why.

    `model` is "provider/model". `trusted` are folders the user trusts, resolved. `permissions` are the user's
    rules for commands, `sandbox` is what commands in mode `auto` may do. `providers` are those of the file,
    `built_in` the others that there are. `path` is the file that was read, None where there was none.
    `passed` are the variables that commands get besides those that every command gets. `retention_days` is
    how old sessions may grow before `agentd sessions prune` removes them, `checkpoints` how much is kept of
    what files were. `checkers` find what is wrong where no editor tells it. `origins` says of `model`,
    `mode`, `allow_full`, `environment.pass`, of `compaction` and `subagents` where the file speaks of them,
    and of each `providers.<name>` that is not plainly built in where it comes from: `<file>:<line>`,
    `environment <variable>` or `default`.
    """

    model: str | None = None
    mode: Mode = "ask"
    allow_full: bool = False
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    path: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    built_in: Mapping[str, ProviderSettings] = field(default_factory=plain_built_in)
    passed: tuple[str, ...] = ()
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    trusted: tuple[Path, ...] = ()
    permissions: CommandRules = NO_RULES
    retention_days: int = DEFAULT_RETENTION_DAYS
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    subagents: SubagentSettings = field(default_factory=SubagentSettings)
    checkers: tuple[Checker, ...] = ()

    @property
    def all_providers(self) -> Mapping[str, ProviderSettings]:
        """Those of the file first, then the built-in ones."""
        return {**self.providers, **self.built_in}


def load(environ: Mapping[str, str]) -> Settings:
    """The configuration that these variables lead to. Reads one file; never raises.

    The file is the one that `AGENTD_CONFIG` names, which has to be there, or the user's own, which need not.
    `AGENTD_MODEL` goes before the file's `model`.
    """
    path = config_file(environ)
    source = None if is_nowhere(path) else _read(path, bool(environ.get(CONFIG_VARIABLE, "").strip()))
    document, values = parsed(path, source) if isinstance(source, str) else (Document(path), {})
    if isinstance(source, _Unreadable):
        document.complain(source.why if source.is_absent else f"{source.why}; {COUNTS_NOT}")
        document.is_understood = source.is_absent  # where there is no file there are no rules
    return _settings(document, values, environ, path if isinstance(source, str) else None)


# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unreadable:
    why: str
    is_absent: bool = False
    """Whether it is known that there is no file: one that cannot be looked at may be there."""


def _read(path: Path, is_named: bool) -> str | _Unreadable | None:
    """The text of the file; None where there is no file and none was promised."""
    remedy = f"correct or unset {CONFIG_VARIABLE}" if is_named else "remove it"
    try:
        status = os.stat(path)  # before opening: opening a FIFO would wait for a writer
        if not stat.S_ISREG(status.st_mode) and path != Path(os.devnull):
            return _Unreadable(f"is no file; put one in its place, or {remedy}")
        if status.st_size > _MAX_BYTES:
            return _Unreadable(
                f"is larger than {_MAX_BYTES} bytes, which no configuration is; shorten it, or {remedy}"
            )
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        is_link = os.path.islink(path)
        what = "is a link to a file that does not exist" if is_link else "does not exist"
        absent = _Unreadable(f"{what}; create it, or {remedy}", is_absent=not is_link)
        return absent if is_named or is_link else None
    except UnicodeDecodeError as error:
        return _Unreadable(f"is not UTF-8 text (byte {error.start}); save it as UTF-8")
    except OSError as error:
        return _Unreadable(f"cannot be read: {error.strerror}; make it readable, or {remedy}")


def parsed(path: Path, text: str) -> tuple[Document, dict[str, Any]]:
    """The document and its values, which are none where it is no TOML."""
    import tomllib

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        document = Document(path)
        line = _line_of(error, text)
        document.complain(f"is no valid TOML: {_fault(error, line, text)}; {COUNTS_NOT}", line=line)
        document.is_understood = False
        return document, {}
    except RecursionError:
        document = Document(path)
        document.complain(f"is nested too deep; {COUNTS_NOT}")
        document.is_understood = False
        return document, {}
    return Document(path, text), values


def _fault(error: ValueError, line: int, text: str) -> str:
    """What is wrong, in our words where Python's name no key."""
    said = text.split("\n")[line].strip()
    key = said if said.startswith("[") else said.partition("=")[0].strip()
    twice = ("Cannot declare",) if said.startswith("[") else ("Cannot overwrite a value",)
    if not str(error).startswith(twice) or not _KEY.fullmatch(key):
        return str(error)
    return f"{shown(key)} stands there a second time; keep one of the two"


def _line_of(error: ValueError, text: str) -> int:
    """The 0-based line of a syntax error, which Python 3.11 says in words only."""
    said = re.search(r"\(at line (\d+)", str(error))
    return int(said[1]) - 1 if said else text.removesuffix("\n").count("\n")


# --- what it says ---------------------------------------------------------------------------------


def _settings(
    document: Document, values: Mapping[str, Any], environ: Mapping[str, str], path: Path | None
) -> Settings:
    top = Table(document, (), values)
    for name, _ in top.unknown(USER_KEYS):
        top.complain(name, not_known(name, USER_KEYS))
    model, model_origin = _model(top, environ)
    mode, allow_full = _mode(top)
    providers, beside, variables = _providers(top, environ)
    passed = _passed(top, {**providers, **beside})
    found_in_environment = {name: variable for name, variable in variables.items() if name in beside}
    if is_nowhere(data_dir(environ)):
        document.problems.append(Problem(severity="error", message=_NO_HOME))
    return Settings(
        model=model,
        mode=mode or "ask",
        allow_full=allow_full,
        providers=providers,
        path=path,
        origins={
            "model": model_origin,
            **_origins(top, providers, mode=bool(mode), allow_full=allow_full, passed=bool(passed)),
            **{
                dotted(("providers", name)): f"environment {variable}"
                for name, variable in found_in_environment.items()
            },
        },
        built_in=beside,
        passed=passed,
        sandbox=sandbox_settings(top.table("sandbox")),
        trusted=_trusted(top, environ),
        permissions=command_rules(top) if document.is_understood else UNKNOWN_RULES,
        retention_days=top.count("retention_days") or DEFAULT_RETENTION_DAYS,
        compaction=compaction_settings(top.table("compaction")),
        checkpoints=checkpoint_settings(top.table("checkpoints")),
        subagents=subagent_settings(top.table("subagents")),
        checkers=checker_settings(top.table("checkers")),
        problems=_sorted(document.problems),  # all that was read above may have added some
    )


def _origins(
    top: Table, providers: Iterable[str], *, mode: bool, allow_full: bool, passed: bool
) -> dict[str, str]:
    """Where in the file what it says stands; each flag tells whether that is in force."""
    origin = top.document.origin
    allowed_by = ("allow_full",) if "allow_full" in top else ("mode",)
    return {
        "mode": origin(("mode",)) if mode else "default",
        "allow_full": origin(allowed_by) if allow_full else "default",
        **{name: origin((name,)) for name in ("compaction", "subagents") if name in top},
        **{dotted(("providers", name)): origin(("providers", name)) for name in providers},
        **({"environment.pass": origin(("environment", "pass"))} if passed else {}),
    }


def _model(top: Table, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The model and where it comes from."""
    wrong = 'has to be "provider/model", as in "local/qwen3-coder"'
    in_file = top.text("model")
    if in_file is not None and not MODEL_ID.fullmatch(in_file):
        top.complain("model", f"{shown(in_file)} {wrong}")
        in_file = None
    named = environ.get(MODEL_VARIABLE, "").strip()
    if MODEL_ID.fullmatch(named):
        return named, f"environment {MODEL_VARIABLE}"
    if named:
        problem = f"{MODEL_VARIABLE}: {shown(named)} {wrong}; correct or unset the variable"
        top.document.problems.append(Problem(severity="error", message=problem))
    return in_file, top.document.origin(("model",)) if in_file else "default"


def _mode(top: Table) -> tuple[Mode | None, bool]:
    """The mode, None where none counts, and whether `full` may be chosen. Starting in `full` allows it."""
    mode = cast(Mode | None, top.choice("mode", get_args(Mode)))
    allow_full = top.flag("allow_full")
    if mode != "full":
        return mode, bool(allow_full)
    if allow_full or "allow_full" not in top:
        return mode, True
    top.complain("mode", '"full" is not allowed below: set allow_full = true, or choose another mode')
    return None, False


def _trusted(top: Table, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders that the user trusts, resolved. One that is not there is no mistake: it may come back."""
    found = []
    for text in top.texts("trusted") or ():
        path = Path(text)
        with suppress(RuntimeError):  # `~name` of a user who does not exist
            path = path.expanduser()
        if not path.is_absolute():
            top.complain("trusted", f"{shown(text)} has to be an absolute path, or begin with ~")
        elif (why := too_wide(real := Path(os.path.realpath(path)), environ)) is not None:
            top.complain("trusted", f"{shown(text)} cannot be trusted: {why}")
        else:
            found.append(real)
    return tuple(found)


def _providers(top: Table, environ: Mapping[str, str]) -> tuple[_Providers, _Providers, dict[str, str]]:
    """The providers of the file, the built-in ones beside them, and the variables that say where they are.

    A built-in provider that is described wrongly is left out: its own address is not the meant one. A wrong
    variable of one that the file does not speak of is a warning only, as it may be meant for another program.
    """
    table = top.table("providers")
    found: _Providers = {}
    beside: _Providers = {}
    variables: dict[str, str] = {}

    def add(name: str, placed: Placed, providers: _Providers) -> None:
        if placed.flaw is not None:
            problem = f"{placed.variable}: {placed.flaw}; correct or unset the variable"
            severity: Literal["error", "warning"] = "warning" if providers is beside else "error"
            top.document.problems.append(Problem(severity=severity, message=problem))
        if placed.provider is not None:
            providers[name] = placed.provider
            if placed.variable is not None:
                variables[name] = placed.variable

    for name in table or ():
        assert table is not None
        if "/" in name or not name.strip() or name in _NO_NAMES:
            table.complain(name, 'cannot be a provider\'s name; use another, without "/"')
        elif (entry := table.table(name)) is not None:
            add(name, described(name, entry, environ), found)
    for name in BUILT_IN:
        if table is None or name not in table:
            add(name, built_in(name, environ), beside)
    return found, beside, variables


def _passed(top: Table, providers: _Providers) -> tuple[str, ...]:
    """The variables to pass on to commands, without those that none may see."""
    table = top.table("environment")
    if table is None:
        return ()
    for name, _ in table.unknown(_ENVIRONMENT):
        table.complain(name, not_known(name, _ENVIRONMENT))
    keys = {variable: provider.name for provider in providers.values() for variable in provider.key_variables}
    passed = []
    for name in table.texts("pass") or ():
        if not VARIABLE.fullmatch(name):
            table.complain("pass", f"{shown(name)} is not the name of an environment variable")
        elif name in keys:
            table.complain(
                "pass",
                f'{name} holds the key of provider "{keys[name]}", which no command may see; give commands '
                "one of their own in another variable",
            )
        else:
            passed.append(name)
    return tuple(passed)


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    """In the order of the file; those without a line first."""
    return tuple(sorted(problems, key=lambda problem: -1 if problem.line is None else problem.line))
