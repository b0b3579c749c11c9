"""Model servers and their models as the user's configuration, the environment and the built-in list say."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from agentd.config.builtin import BUILT_IN, BuiltIn
from agentd.config.dialects import APIS, FLAGS, OF_THE_SERVER, TIMEOUTS, Kind
from agentd.config.headers import HeaderSettings, headers_in
from agentd.config.secrets import looks_secret
from agentd.config.toml_table import Table, dotted, meant, shown
from agentd.protocol.messages import Effort

_PROVIDER = ("api", "base_url", "api_key_env", "headers", "headers_env", "timeouts", "dialect", "models")
_MODEL = ("context_window", "max_output", "images", "reasoning", "efforts", "thinking_tag", "prices")
_PRICES = ("input", "output", "cache_read", "cache_write")
MODEL_ID = re.compile(r"[^/\s]+/\S(.*\S)?")
"""A model as users name it: "provider/model"."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_:.-]{0,63}")
_EXAMPLES = {
    "api": f"write api = {' or '.join(map(shown, APIS))}",
    "base_url": 'write for example base_url = "http://127.0.0.1:11434/v1"',
}
USEVARIABLE = (
    "keys do not belong into this file. Put the key into an environment variable and name that variable "
    'here: api_key_env = "MY_API_KEY"'
)


@dataclass(frozen=True)
class ModelSettings:
    """A model as the user describes it; sizes are tokens, None where it is not said.

    `thinking_tag` is the tag in which the model writes its thinking into its text, "think" mostly; None where
    it does not. `prices` are USD for a million tokens: `input`, `output` and perhaps `cache_read` and
    `cache_write`.
    """

    name: str
    context_window: int | None = None
    max_output: int | None = None
    images: bool | None = None
    reasoning: bool | None = None
    efforts: tuple[str, ...] | None = None
    thinking_tag: str | None = None
    prices: Mapping[str, float] | None = None


@dataclass(frozen=True)
class ProviderSettings:
    """A model server.

    `base_url` has no slash at its end; it is None where it is not known yet, and `base_url_variables` are
    what would tell. The key is in the first of `key_variables` that is set; without one that `needs_key`
    cannot be asked. `is_local`: it runs on the user's own machine and knows its models itself. `is_original`:
    it is the hosted provider of that name, no other server in its place. `asks_limit`: it wants to be told
    how long an answer may be. `dialect` and `timeouts` (seconds) are what differs from the defaults.
    `headers` go with every request.
    """

    name: str
    api: str
    base_url: str | None
    key_variables: tuple[str, ...] = ()
    base_url_variables: tuple[str, ...] = ()
    needs_key: bool = False
    is_local: bool = False
    is_original: bool = False
    asks_limit: bool = False
    dialect: Mapping[str, Any] = field(default_factory=dict)
    timeouts: Mapping[str, float] = field(default_factory=dict)
    headers: HeaderSettings = field(default_factory=HeaderSettings)
    models: Mapping[str, ModelSettings] = field(default_factory=dict)

    @property
    def tells_models(self) -> bool:
        """Whether the server itself is to be asked for its models: of hosted ones a catalogue knows more."""
        return not self.is_original


@dataclass(frozen=True)
class Placed:
    """A provider, and the variable that says where it is: None where no variable does.

    `flaw` says what is wrong with that variable's value, and is fit to show; then there is no provider.
    """

    provider: ProviderSettings | None
    variable: str | None = None
    flaw: str | None = None


def built_in(name: str, environ: Mapping[str, str]) -> Placed:
    """A built-in provider as the environment has it."""
    known = BUILT_IN[name]
    address = _from_environment(known, environ)
    if address.flaw is not None:
        return Placed(None, address.variable, address.flaw)
    return Placed(_assembled(name, known, known.keys, address), address.variable)


def plain_built_in() -> dict[str, ProviderSettings]:
    """All built-in providers as they are where neither file nor environment says anything of them."""
    return {name: provider for name in BUILT_IN if (provider := built_in(name, {}).provider) is not None}


@dataclass(frozen=True)
class _Address:
    base_url: str | None
    variable: str | None = None
    flaw: str | None = None


def _from_environment(known: BuiltIn, environ: Mapping[str, str]) -> _Address:
    """Where the environment says that a built-in provider is, else its own address."""
    for variable in known.base_urls:
        value = environ.get(variable, "").strip().strip("\"'").strip()
        if not value:
            continue
        from agentd.config.addresses import completed, flaw, from_host

        try:
            address = from_host(value, known.base_url) if known.is_local and known.base_url else value
        except ValueError:
            return _Address(None, variable, "is no valid address")
        wrong = flaw(address)
        return _Address(None if wrong else completed(address, known.usual_path), variable, wrong)
    return _Address(known.base_url)


def _assembled(
    name: str, known: BuiltIn, keys: tuple[str, ...], address: _Address, api: str | None = None
) -> ProviderSettings:
    """A built-in provider at an address; `api` is what the user says that it speaks."""
    is_original = known.base_url in (None, address.base_url)
    if not is_original:
        from agentd.config.addresses import is_own

        is_original = is_own(address.base_url, known.base_url)
    moved_by_variable = not is_original and address.variable is not None
    api = api or (known.elsewhere if moved_by_variable else None) or known.api
    return ProviderSettings(
        name,
        api,
        address.base_url,
        key_variables=keys,
        base_url_variables=known.base_urls,
        needs_key=known.needs_key and is_original,
        is_local=known.is_local,
        is_original=is_original and not known.is_local,
        asks_limit=known.asks_limit,
        dialect=known.dialect if api == known.api else _of_the_server(known, api),
    )


def _of_the_server(known: BuiltIn, api: str) -> dict[str, Any]:
    """What holds of a built-in provider in another API than its usual one too."""
    flags = set(OF_THE_SERVER) & set(FLAGS[api])
    return {flag: value for flag, value in known.dialect.items() if flag in flags}


# --- the file -------------------------------------------------------------------------------------


def described(name: str, table: Table, environ: Mapping[str, str]) -> Placed:
    """The provider that a table describes; none where it would not work, or would not be safe.

    A table with the name of a built-in provider changes only what it names.
    """
    known = BUILT_IN.get(name)
    api = table.choice("api", APIS)
    address = _Address(_base_url(table, known))
    if known is not None and "base_url" not in table:
        address = _from_environment(known, environ)
    keys = _key_variables(table, known)
    models = _models(table)
    if known is None:
        for missing in ("api", "base_url"):
            if missing not in table:
                table.complain(missing, f"is missing; {_EXAMPLES[missing]}")
    headers, is_safe = headers_in(table)
    usable = table.is_sound and is_safe
    for key, _ in table.unknown(_PROVIDER):
        table.complain(key, not_known(key, _PROVIDER))
        usable = usable and not looks_secret(key)
    timeouts = _timeouts(table)
    if known is not None:
        provider = _assembled(name, known, keys, address, api)
    else:
        provider = ProviderSettings(name, api or "", address.base_url, keys)
    dialect = {**provider.dialect, **(_dialect(table, provider.api) if provider.api else {})}
    if not usable or address.flaw is not None:
        return Placed(None, address.variable, address.flaw)
    described_so = replace(provider, dialect=dialect, timeouts=timeouts, headers=headers, models=models)
    return Placed(described_so, address.variable)


def _key_variables(table: Table, known: BuiltIn | None) -> tuple[str, ...]:
    name = table.text("api_key_env")
    if name is None:
        return known.keys if known is not None else ()
    if not VARIABLE.fullmatch(name):
        table.complain("api_key_env", "has to be the name of an environment variable, not a key itself")
    return (name,)


def _base_url(table: Table, known: BuiltIn | None) -> str | None:
    """The address of a model server. What is said about a wrong one never shows it: it may hold a key."""
    text = table.text("base_url")
    if text is None:
        return None
    from agentd.config.addresses import HOLDS_CREDENTIALS, completed, flaw

    if wrong := flaw(text):
        remedy = USEVARIABLE if wrong == HOLDS_CREDENTIALS else _EXAMPLES["base_url"]
        table.complain("base_url", f"{wrong}; {remedy}")
        return None
    return text.rstrip("/") if known is None else completed(text, known.usual_path)


def _timeouts(provider: Table) -> dict[str, float]:
    """The waits that a table sets, in seconds, without those that are wrong."""
    table = provider.table("timeouts")
    if table is None:
        return {}
    _complain_of_unknown(table, TIMEOUTS)
    return {name: seconds for name in TIMEOUTS if (seconds := table.number(name)) is not None}


def _dialect(provider: Table, api: str) -> dict[str, Any]:
    """The flags that a table sets, without those that are wrong."""
    table, flags = provider.table("dialect"), FLAGS[api]
    if table is None:
        return {}
    for name, _ in table.unknown(flags):
        elsewhere = [other for other, its_flags in FLAGS.items() if name in its_flags]
        of_others = f"is no flag of {api}, but of {' and '.join(elsewhere)}"
        table.complain(name, of_others if elsewhere else not_known(name, flags))
    found = ((name, _flag(table, name, kind)) for name, kind in flags.items())
    return {name: value for name, value in found if value is not None}


def _flag(table: Table, name: str, kind: Kind) -> Any:
    if isinstance(kind, tuple):
        return table.choice(name, kind)
    readers: Mapping[type, Callable[[str], Any]] = {
        bool: table.flag, str: table.text, int: table.count, float: table.number, list: table.texts,
    }  # fmt: skip
    return readers[kind](name)


# --- models ---------------------------------------------------------------------------------------


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
                images=entry.flag("images"),
                reasoning=entry.flag("reasoning"),
                efforts=entry.choices("efforts", get_args(Effort)),
                thinking_tag=_tag(entry),
                prices=_prices(entry),
            )
            usable = entry.is_sound
            for key, value in entry.unknown(_MODEL):
                is_part_of_name = isinstance(value, dict)
                entry.complain(key, _dotted_name(entry, key) if is_part_of_name else not_known(key, _MODEL))
                usable = usable and not is_part_of_name
            if usable:
                found[name] = model
    return found


def _tag(model: Table) -> str | None:
    """The name of a tag, without its brackets."""
    tag = model.text("thinking_tag")
    if tag is None or _TAG.fullmatch(tag):
        return tag
    model.complain("thinking_tag", 'has to be the name of a tag alone, as in thinking_tag = "think"')
    return None


def _prices(model: Table) -> dict[str, float] | None:
    """The prices of a model; none where one of them is wrong, as a part of the cost would look like all."""
    table = model.table("prices")
    if table is None:
        return None
    found = {name: price for name in _PRICES if (price := table.number(name, zero=True)) is not None}
    for name in ("input", "output"):
        if name not in table:
            table.complain(name, f"is missing; write {name} = the price of a million tokens in USD")
    usable = table.is_sound
    _complain_of_unknown(table, _PRICES)
    return found if usable else None


def _dotted_name(entry: Table, key: str) -> str:
    whole = dotted((*entry.path[:-1], f"{entry.path[-1]}.{key}"))
    return f"is no setting of a model. A name with a dot is written in quotes: [{whole}]"


def _complain_of_unknown(table: Table, known: Collection[str]) -> None:
    for name, _ in table.unknown(known):
        table.complain(name, not_known(name, known))


def not_known(name: str, known: Collection[str]) -> str:
    """What to say of a key that is not known, which may be a secret in the wrong place."""
    if looks_secret(name):
        return USEVARIABLE
    return f"is no known key{meant(name, known)}; known here: {', '.join(known)}"
