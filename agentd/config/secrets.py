"""The secrets that agentd was started with: taken out of its environment, kept from everything it starts.

Standard library only, as `boot.py` uses it before anything else is loaded.

A variable deleted from `os.environ` still stands where the kernel put it when the process started. There any
process of the user can read it, through `/proc/<pid>/environ`, and the model's commands are such processes.
So the values are overwritten there too, and the process is closed to its equals (no core dump, no ptrace).
"""

import json
import os
import re
import sys
from collections.abc import Iterable, MutableMapping

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WHOLE_WORDS = frozenset({"KEY", "KEYS", "PASS", "PAT"})
_WORD_ENDS = (
    "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD",
    "PASSWORDS", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
)  # fmt: skip
_WHOLE_NAMES = frozenset({"MYSQL_PWD"})
_NUMBERS = frozenset({"MAX", "MIN", "LIMIT", "COUNT", "BUDGET"})
_PLACES = frozenset({"FILE", "PATH", "DIR"})

_SHORTEST = 6
"""Shorter values are not looked for in texts: they would hit by chance."""

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def looks_secret(name: str) -> bool:
    """Whether a variable or key of that name holds a secret: `OPENAI_API_KEY`, `npmAuthToken`, `PGPASSWORD`.

    Numbers (`MAX_TOKENS`) and places (`SSL_KEY_FILE`) do not.
    """
    if name.upper() in _WHOLE_NAMES:
        return True
    words = [word.upper() for word in _WORD.findall(name)]
    if not words or words[-1] in _PLACES or not _NUMBERS.isdisjoint(words):
        return False
    return any(word in _WHOLE_WORDS or word.endswith(_WORD_ENDS) for word in words)


def clean(value: str) -> str:
    """A secret without what clings to it from files and shells: white space, a byte order mark, quotes."""
    value = value.strip().strip("\ufeff").strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1].strip()
    return value


class Secrets:
    """Secret values by the name of the variable they came from. Shows none of them by itself."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._known: set[str] = set()

    @classmethod
    def take_from(cls, environ: MutableMapping[str, str]) -> "Secrets":
        """Take every variable whose name looks secret out of an environment.

        Where it is the process's own (`os.environ`), the values are wiped from its first environment block
        and the process is closed to others (Linux; elsewhere they are only deleted).
        """
        secrets = cls()
        secrets._take_all([name for name in environ if looks_secret(name)], environ)
        if environ is os.environ:
            _close_process()
        return secrets

    def take(self, name: str, environ: MutableMapping[str, str]) -> str | None:
        """The secret of that name, taken out of the environment now if it was not before."""
        if name in environ:
            self._take_all([name], environ)
        return self.get(name)

    def get(self, name: str) -> str | None:
        """The secret of that name, clean. An empty one counts as not set."""
        return self._values.get(name)

    def learn(self, value: str) -> None:
        """Have a secret that came another way redacted as well."""
        if len(value) >= _SHORTEST:
            self._known.update((value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))

    def redact(self, text: str) -> str:
        """The text with every known secret of at least 6 characters replaced by `***`."""
        for value in self.texts:
            text = text.replace(value, "***")
        return text

    @property
    def texts(self) -> tuple[str, ...]:
        """The forms in which known secrets stand in texts, the longest first: one may begin with another."""
        return tuple(sorted(self._known, key=len, reverse=True))

    def __repr__(self) -> str:
        return f"Secrets({', '.join(sorted(self._values))})"

    def _take_all(self, names: Iterable[str], environ: MutableMapping[str, str]) -> None:
        taken = {name: environ.pop(name) for name in names}
        for name, value in taken.items():
            if cleaned := clean(value):
                self._values[name] = cleaned
                self.learn(cleaned)
        if taken and environ is os.environ:
            _wipe(frozenset(map(os.fsencode, taken)))


# --- the process ----------------------------------------------------------------------------------


def _wipe(names: frozenset[bytes]) -> None:
    """Overwrite the values of these variables where the kernel put them when the process started.

    `/proc/self/stat` holds the block's addresses in fields 50 and 51 (proc_pid_stat(5)). The C library keeps
    pointers into it for the other variables: those stay untouched.
    """
    if sys.platform != "linux":
        return
    import ctypes

    start, end = _environment_block()
    if not start < end:
        return
    position = start
    for entry in ctypes.string_at(start, end - start).split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name in names:
            ctypes.memset(position + len(name) + 1, 0, len(value))
        position += len(entry) + 1


def _environment_block() -> tuple[int, int]:
    """Where the first environment of this process begins and ends; (0, 0) where the kernel does not tell."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name in front may hold spaces
    except OSError:
        return 0, 0
    return int(fields[50 - 3]), int(fields[51 - 3])


def _close_process() -> None:
    """No core dumps of this process, and no other process of the user may read its memory (prctl(2))."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
