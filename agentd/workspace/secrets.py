"""Names of files that hold secrets: the one list that reading, search and commands go by.

Names cannot tell everything; the list asks once too often rather than once too little.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

_DIRECTORIES = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".password-store"})

# Files with ordinary names that hold secrets where they are: (directory, name).
_IN_DIRECTORY = frozenset(
    {(".git", "config"), (".docker", "config.json"), (".kube", "config"), (".cargo", "credentials")}
)

# Programs' own folders, where any file may matter: (directory, directory in it). Agentd's hold what the user
# allows and trusts; where the home folder is the workspace, they are in it.
_OWN_FOLDERS = frozenset({(".config", "gcloud"), (".config", "agentd"), ("share", "agentd")})

_NAMES = frozenset(
    {
        ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf",
        ".htpasswd", ".dockercfg", ".vault-token", ".terraformrc", "terraform.rc", "credentials",
        "credentials.json", "credentials.toml", "credentials.tfrc.json",
        "application_default_credentials.json",
        "service-account.json", "service_account.json", "secrets.json", "secrets.toml", "secrets.yml",
        "secrets.yaml", "terraform.tfstate", "master.key",
    }
)  # fmt: skip

_PATTERNS = re.compile(
    r"""
      \.env.*                              # .env, .env.local, .envrc
    | .+\.env                              # production.env
    | id_(rsa|dsa|ecdsa|ed25519)(_\w+)?    # private keys; id_rsa.pub is public
    | .+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfvars)
    """,
    re.VERBOSE,
)
_HARMLESS = re.compile(r"(^|[._-])(example|sample|template)([._-]|$)")

GLOBS: tuple[str, ...] = (
    *sorted(_NAMES | _DIRECTORIES), ".env*", "*.env", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    "*.pem", "*.key", "*.p12", "*.pfx",
    "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.tfvars", ".git", ".docker", ".kube",
)  # fmt: skip
"""All these names, and some that are harmless, as globs for programs that walk a tree themselves."""


def is_secret(parts: Sequence[str]) -> bool:
    """Whether a file with these path components, as far as names tell, holds secrets, in any case."""
    if not parts:
        return False
    *directories, name = (part.casefold() for part in parts)
    if any(directory in _DIRECTORIES for directory in directories):
        return True
    if not _OWN_FOLDERS.isdisjoint(pairwise(directories)) or (
        directories and (directories[-1], name) in _IN_DIRECTORY
    ):
        return True
    if name in _NAMES or name in _DIRECTORIES:
        return True
    return _PATTERNS.fullmatch(name) is not None and _HARMLESS.search(name) is None
