"""Headers that a provider's configuration adds to its requests.

`headers` holds those that anybody may see, `headers_env` names the variables that hold the others, as
`api_key_env` does for the key: a credential has no place in a file that is copied, shown and shared.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from agentd.config.secrets import looks_secret
from agentd.config.toml_table import Table

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")  # a token of RFC 9110
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "te",
    "trailer", "upgrade", "expect", "content-type", "content-encoding", "accept", "accept-encoding",
})  # fmt: skip
"""What a request is framed, routed or read by: another value could only break it."""
_CREDENTIALS = re.compile(r"(?:.*-)?(?:authorization|auth|cookie)", re.IGNORECASE)
_CREDENTIAL = re.compile(
    r"(?:bearer|basic|token|apikey)\s|eyJ[\w-]{8,}\.|-----BEGIN|\w+://[^/\s@]+@"
    r"|(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs]|AKIA|ASIA|AIza)[-_]?[A-Za-z0-9_-]{12,}",
    re.IGNORECASE,
)
"""How values begin that let somebody in: the schemes of RFC 9110, JSON web tokens, keys of known vendors."""


@dataclass(frozen=True)
class HeaderSettings:
    """Headers by name: `plain` ones with their values, and `variables` that hold the values of the others."""

    plain: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def headers_in(provider: Table) -> tuple[HeaderSettings, bool]:
    """The headers that a table sets, without wrong ones; and whether it is free of secrets."""
    plain, is_safe = _plain(provider.table("headers"))
    variables = _variables(provider.table("headers_env"), plain)
    return HeaderSettings(plain, variables), is_safe


def _plain(table: Table | None) -> tuple[dict[str, str], bool]:
    found: dict[str, str] = {}
    is_safe = True
    for name in table or ():
        assert table is not None
        value = table.text(name)
        if value is None or not _is_free(table, name, found):
            continue
        if _lets_in(name, value):
            is_safe = False
            table.complain(name, _way_out(name))
        elif not value.isascii() or not value.isprintable():
            table.complain(name, "holds characters that no header can have; write plain ASCII on one line")
        else:
            found[name] = value.strip()
    return found, is_safe


def _variables(table: Table | None, plain: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in table or ():
        assert table is not None
        variable = table.text(name)
        if variable is None or not _is_free(table, name, {**plain, **found}):
            continue
        if _VARIABLE.fullmatch(variable):
            found[name] = variable
        else:
            table.complain(name, "has to be the name of an environment variable, not a value itself")
    return found


def _is_free(table: Table, name: str, taken: Mapping[str, str]) -> bool:
    """Whether a header of that name can be set; it is complained of where not."""
    if not _NAME.fullmatch(name):
        table.complain(name, "cannot be the name of a header; use letters, digits and -")
    elif name.lower() in _OURS:
        table.complain(name, "is a header that agentd sets itself; remove it")
    elif name.lower() in map(str.lower, taken):
        table.complain(name, "is set twice; remove one")
    else:
        return True
    return False


def _lets_in(name: str, value: str) -> bool:
    return (
        _CREDENTIALS.fullmatch(name) is not None
        or looks_secret(name)
        or _CREDENTIAL.match(value.strip()) is not None
    )


def _way_out(name: str) -> str:
    variable = re.sub(r"\W|-", "_", name).upper()
    return (
        "looks like a credential, and those do not belong into this file. Put the whole value into an "
        f'environment variable and name that variable under headers_env: "{name}" = "{variable}"; for the '
        "provider's key use api_key_env"
    )
