"""The user's configuration: one TOML file and two variables, checked to the letter.

Nothing here raises. What is wrong becomes a `Problem` with file, line and key, and what is right still
counts. A key that is wrong is as if it were not there; a provider that would not work without it is left out.
No message shows a value that may be a secret. No file of a workspace is read: none may change a setting.
"""

import os
import re
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast, get_args

from agentd.config.folders import CONFIG_VARIABLE, config_file
from agentd.config.secrets import looks_secret
from agentd.config.toml_table import Document, Table, dotted, meant, shown
from agentd.protocol.messages import Effort, Mode
from agentd.protocol.methods import Problem

APIS = ("openai-chat",)
"""The wire APIs a provider may speak."""

MODEL_VARIABLE = "AGENTD_MODEL"

_BUILT_IN = ("scripted",)
_TOP = ("model", "mode", "allow_full", "providers")
_PROVIDER = ("api", "base_url", "api_key_env", "models")
_MODEL = ("context_window", "max_output", "images", "reasoning", "efforts")
_MAX_BYTES = 1024 * 1024
_MODEL_ID = re.compile(r"[^/\s]+/\S(.*\S)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLES = {
    "api": f"write api = {' or '.join(map(shown, APIS))}",
    "base_url": 'write for example base_url = "http://127.0.0.1:11434/v1"',
}
_USE_VARIABLE = (
    "keys do not belong into this file. Put the key into an environment variable and name that variable "
    'here: api_key_env = "MY_API_KEY"'
)


@dataclass(frozen=True)
class ModelSettings:
    """A model as the user describes it; sizes are tokens, None where it is not said."""

    name: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool = False
    reasoning: bool = False
    efforts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProviderSettings:
    """A model server. `base_url` has no slash at its end; `api_key_env` names the variable with the key."""

    name: str
    api: str
    base_url: str
    api_key_env: str | None = None
    models: Mapping[str, ModelSettings] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What is in force, and why.

    `model` is "provider/model". `path` is the file that was read, None where there was none. `origins` says
    of `model`, `mode`, `allow_full` and each `providers.<name>` where it comes from: `<file>:<line>`,
    `environment AGENTD_MODEL` or `default`.
    """

    model: str | None = None
    mode: Mode = "ask"
    allow_full: bool = False
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    path: Path | None = None
    origins: Mapping[str, str] = field(default_factory=dict)


def load(environ: Mapping[str, str]) -> Settings:
    """The configuration that these variables lead to. Reads one file; never raises.

    The file is the one that `AGENTD_CONFIG` names, which has to be there, or the user's own, which need not.
    `AGENTD_MODEL` goes before the file's `model`.
    """
    path = config_file(environ)
    source = _read(path, is_named=bool(environ.get(CONFIG_VARIABLE, "").strip()))
    document, values = _parse(path, source) if isinstance(source, str) else (Document(path), {})
    if isinstance(source, _Unreadable):
        document.complain(source.why)
    return _settings(document, values, environ, path if isinstance(source, str) else None)


# --- the file -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Unreadable:
    why: str


def _read(path: Path, is_named: bool) -> str | _Unreadable | None:
    """The text of the file; None where there is no file and none was promised."""
    remedy = f"correct or unset {CONFIG_VARIABLE}" if is_named else "make it readable or remove it"
    try:
        status = os.stat(path)  # before opening: opening a FIFO would wait for a writer
        if not stat.S_ISREG(status.st_mode) and path != Path(os.devnull):
            return _Unreadable(f"is no file; {remedy}")
        if status.st_size > _MAX_BYTES:
            return _Unreadable(f"is larger than {_MAX_BYTES} bytes, which no configuration is; {remedy}")
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return _Unreadable(f"does not exist; create it, or {remedy}") if is_named else None
    except UnicodeDecodeError as error:
        return _Unreadable(f"is not UTF-8 text (byte {error.start}); save it as UTF-8")
    except OSError as error:
        return _Unreadable(f"cannot be read: {error.strerror}; {remedy}")


def _parse(path: Path, text: str) -> tuple[Document, dict[str, Any]]:
    """The document and its values, which are none where it is no TOML."""
    import tomllib

    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        document = Document(path)
        document.complain(f"is no valid TOML: {error}; nothing in it counts", line=_line_of(error, text))
        return document, {}
    except RecursionError:
        document = Document(path)
        document.complain("is nested too deep; nothing in it counts")
        return document, {}
    return Document(path, text), values


def _line_of(error: ValueError, text: str) -> int:
    """The 0-based line of a syntax error, which Python 3.11 says in words only."""
    said = re.search(r"\(at line (\d+)", str(error))
    return int(said[1]) - 1 if said else max(len(text.splitlines()) - 1, 0)


# --- what it says ---------------------------------------------------------------------------------


def _settings(
    document: Document, values: Mapping[str, Any], environ: Mapping[str, str], path: Path | None
) -> Settings:
    top = Table(document, (), values)
    for name, _ in top.unknown(_TOP):
        top.complain(name, _not_known(name, _TOP))
    model, model_origin = _model(top, environ)
    mode, allow_full = _mode(top)
    providers = _providers(top)
    origins = {
        "model": model_origin,
        "mode": document.origin(("mode",)) if mode else "default",
        "allow_full": document.origin(("allow_full",) if "allow_full" in top else ("mode",))
        if allow_full
        else "default",
        **{dotted(("providers", name)): document.origin(("providers", name)) for name in providers},
    }
    return Settings(model, mode or "ask", allow_full, providers, _sorted(document.problems), path, origins)


def _model(top: Table, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The model and where it comes from."""
    wrong = 'has to be "provider/model", as in "local/qwen3-coder"'
    in_file = top.text("model")
    if in_file is not None and not _MODEL_ID.fullmatch(in_file):
        top.complain("model", f"{shown(in_file)} {wrong}")
        in_file = None
    named = environ.get(MODEL_VARIABLE, "").strip()
    if _MODEL_ID.fullmatch(named):
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


def _providers(top: Table) -> dict[str, ProviderSettings]:
    table = top.table("providers")
    found = {}
    for name in table or ():
        assert table is not None
        if "/" in name or not name.strip() or name in _BUILT_IN:
            table.complain(name, 'cannot be a provider\'s name; use another, without "/"')
        elif (entry := table.table(name)) is not None and (provider := _provider(name, entry)) is not None:
            found[name] = provider
    return found


def _provider(name: str, table: Table) -> ProviderSettings | None:
    """The provider that a table describes; None where it would not work, or would not be safe."""
    api = table.choice("api", APIS)
    base_url = _base_url(table)
    api_key_env = table.text("api_key_env")
    if api_key_env is not None and not _VARIABLE.fullmatch(api_key_env):
        table.complain("api_key_env", "has to be the name of an environment variable, not a key itself")
    models = _models(table)
    for missing in ("api", "base_url"):
        if missing not in table:
            table.complain(missing, f"is missing; {_EXAMPLES[missing]}")
    usable = table.is_sound
    for key, _ in table.unknown(_PROVIDER):
        table.complain(key, _not_known(key, _PROVIDER))
        usable = usable and not looks_secret(key)
    if not usable or api is None or base_url is None:
        return None
    return ProviderSettings(name, api, base_url, api_key_env, models)


def _base_url(table: Table) -> str | None:
    """The address of a model server. What is said about a wrong one never shows it: it may hold a key."""
    from urllib.parse import parse_qsl, urlsplit

    text = table.text("base_url")
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        table.complain("base_url", f"is no valid address; {_EXAMPLES['base_url']}")
        return None
    if "@" in parts.netloc or any(looks_secret(name) for name, _ in parse_qsl(parts.query)):
        table.complain("base_url", f"holds credentials; {_USE_VARIABLE}")
    elif parts.scheme not in ("http", "https"):
        table.complain("base_url", f"has to begin with http:// or https://; {_EXAMPLES['base_url']}")
    elif not parts.hostname or not has_port or not text.isprintable() or " " in text:
        table.complain("base_url", f"is no valid address; {_EXAMPLES['base_url']}")
    else:
        return text.rstrip("/")
    return None


def _models(provider: Table) -> dict[str, ModelSettings]:
    """The models of a provider, those left out of which something is wrong that counts."""
    table = provider.table("models")
    found = {}
    for name in table or ():
        assert table is not None
        if (entry := table.table(name)) is not None:
            model = ModelSettings(
                name,
                context_window=entry.count("context_window"),
                max_output=entry.count("max_output"),
                images=entry.flag("images") or False,
                reasoning=entry.flag("reasoning") or False,
                efforts=entry.choices("efforts", get_args(Effort)) or (),
            )
            usable = entry.is_sound
            for key, value in entry.unknown(_MODEL):
                is_part_of_name = isinstance(value, dict)
                entry.complain(key, _dotted_name(entry, key) if is_part_of_name else _not_known(key, _MODEL))
                usable = usable and not is_part_of_name
            if usable:
                found[name] = model
    return found


def _dotted_name(entry: Table, key: str) -> str:
    whole = dotted((*entry.path[:-1], f"{entry.path[-1]}.{key}"))
    return f"is no setting of a model. A name with a dot is written in quotes: [{whole}]"


def _not_known(name: str, known: Collection[str]) -> str:
    if looks_secret(name):
        return _USE_VARIABLE
    return f"is no known key{meant(name, known)}; known here: {', '.join(known)}"


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    """In the order of the file; those without a line first."""
    return tuple(sorted(problems, key=lambda problem: -1 if problem.line is None else problem.line))
