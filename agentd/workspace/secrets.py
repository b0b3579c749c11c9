"""Names of files that hold secrets: the one list that reading, search and commands go by.

Names cannot tell everything; the list asks once too often rather than once too little.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
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

IN_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".password-store", ".netrc",
    ".git-credentials", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".vault-token", ".terraform.d",
    ".terraformrc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".gradle/gradle.properties", ".config/gh", ".config/hub", ".config/glab-cli", ".config/git/credentials",
    ".config/containers/auth.json", ".config/op", ".config/doctl", ".config/github-copilot",
    ".config/rclone", ".local/share/keyrings", ".local/share/kwalletd", ".mozilla", ".thunderbird",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
    ".node_repl_history", ".local/share/fish/fish_history",
)  # fmt: skip
"""Where a user's own secrets are, relative to the home folder: commands in a sandbox do not see these."""

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
    *(f"**/{above}/{folder}" for above, folder in sorted(_OWN_FOLDERS)),
)  # fmt: skip
"""All these names, and some that are harmless, as globs for programs that walk a tree themselves."""


def is_secret(parts: Sequence[str]) -> bool:
    """Whether a file with these path components, as far as names tell, holds secrets, in any case."""
    if not parts:
        return False
    name = parts[-1].casefold()
    is_within, directory = _directories(tuple(parts[:-1]))
    if is_within or (directory, name) in _IN_DIRECTORY:
        return True
    if name in _NAMES or name in _DIRECTORIES:
        return True
    return _PATTERNS.fullmatch(name) is not None and _HARMLESS.search(name) is None


@lru_cache(maxsize=1024)  # a search asks for each file, and files of one folder follow each other
def _directories(parts: tuple[str, ...]) -> tuple[bool, str]:
    """Whether all that is in these directories is secret, and the name of the innermost."""
    names = [part.casefold() for part in parts]
    is_secret = any(name in _DIRECTORIES for name in names) or not _OWN_FOLDERS.isdisjoint(pairwise(names))
    return is_secret, names[-1] if names else ""
