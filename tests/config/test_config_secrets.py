"""Secrets of the environment: found by name, gone from the process, in no text."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentd.config.secrets import Secrets, clean, looks_secret

CANARY = "sk-CANARY-0123456789"


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "openai_api_key", "KEY", "API_KEY_2", "LOCAL_APIKEY", "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GITHUBTOKEN", "GH_PAT", "apiKey",
        "npm_config__authToken", "CLIENT_SECRET", "DB_PASSWORD", "PGPASSWORD", "PASSWD", "SSH_PASSPHRASE",
        "DB_PASS", "MYSQL_PWD", "GOOGLE_CREDENTIALS", "SSH_PRIVATE_KEY", "SECRETS",
    ],
)  # fmt: skip
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "PWD", "OLDPWD", "KEYBOARD", "MONKEY", "HOTKEYS_ON", "SSH_AUTH_SOCK", "MAX_TOKENS",
        "MAX_OUTPUT_TOKENS", "TOKEN_LIMIT", "SSL_KEY_FILE", "SECRETS_DIR", "COMPASS", "LC_ALL", "_", "",
        "TOKENIZERS_PARALLELISM",
    ],
)  # fmt: skip
def test_names_of_other_things_are_left_alone(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize(
    "raw",
    [CANARY, f" {CANARY}\n", f"\ufeff{CANARY}", f'"{CANARY}"', f"' {CANARY} '\r\n", f"\ufeff '{CANARY}' "],
)
def test_what_clings_to_a_key_is_taken_off(raw: str) -> None:
    assert clean(raw) == CANARY
    assert Secrets.take_from({"A_KEY": raw}).get("A_KEY") == CANARY


def test_an_empty_key_counts_as_not_set() -> None:
    environ = {"A_KEY": "", "B_KEY": " \n", "C_KEY": '""'}
    secrets = Secrets.take_from(environ)
    assert [secrets.get(name) for name in ("A_KEY", "B_KEY", "C_KEY", "D_KEY")] == [None] * 4
    assert environ == {}


def test_a_name_that_does_not_look_secret_is_taken_when_the_configuration_names_it() -> None:
    environ = {"MODEL_LOGIN": CANARY, "OTHER": "x"}
    secrets = Secrets.take_from(environ)
    assert environ == {"MODEL_LOGIN": CANARY, "OTHER": "x"}
    assert secrets.take("MODEL_LOGIN", environ) == CANARY
    assert environ == {"OTHER": "x"}
    assert secrets.take("MODEL_LOGIN", environ) == secrets.get("MODEL_LOGIN") == CANARY
    assert secrets.take("ABSENT", environ) is None


def test_no_text_and_no_repr_shows_a_secret() -> None:
    quoted = 'p"w\\é-CANARY'
    secrets = Secrets.take_from(
        {"A_KEY": CANARY, "B_KEY": CANARY + "-longer", "C_PASSWORD": quoted, "D_KEY": "short"}
    )
    secrets.learn("learned-CANARY")
    text = f"{CANARY}-longer {CANARY} {json.dumps(quoted)} {json.dumps(quoted, ensure_ascii=False)} {quoted}"
    assert secrets.redact(text) == '*** *** "***" "***" ***'
    assert secrets.redact("a learned-CANARY, shortly") == "a ***, shortly"
    assert "CANARY" not in repr(secrets) + str(secrets)
    assert "A_KEY" in repr(secrets)


# --- a real process -------------------------------------------------------------------------------

VARIABLES = {
    "PATH": os.environ["PATH"],
    "FIRST": "stays",
    "A_API_KEY": CANARY,
    "EMPTY_KEY": "",
    "WITH_EQUALS_TOKEN": f"a=b={CANARY}",
    "LOGIN": f"named-{CANARY}",
    "LAST": "stays too",
}


@contextmanager
def process(source: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that was started with the variables, ran the source and waits for the end of its stdin."""
    lines = [
        "import os, sys",
        "from agentd.config.secrets import Secrets",
        source,
        "print('done', flush=True)",
    ]
    running = subprocess.Popen(
        [sys.executable, "-c", "\n".join([*lines, "sys.stdin.read()"])],
        env=VARIABLES, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def environment_of(running: "subprocess.Popen[str]") -> bytes:
    assert running.stdout is not None
    assert running.stdout.readline() == "done\n"
    return Path(f"/proc/{running.pid}/environ").read_bytes()


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="reads /proc of a closed process as root"
)
def test_the_environment_seen_from_outside_holds_no_secret() -> None:
    with process("") as running:
        assert CANARY.encode() in environment_of(running)
    with process("secrets = Secrets.take_from(os.environ)\nsecrets.take('LOGIN', os.environ)") as running:
        seen = environment_of(running)
    assert b"CANARY" not in seen
    assert b"FIRST=stays\0" in seen
    assert b"LAST=stays too\0" in seen
    assert b"A_API_KEY=\0" in seen


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
def test_another_process_of_the_user_can_look_into_it_no_more() -> None:
    other = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    become = "import ctypes\n" + ("os.setgid(65534); os.setuid(65534)\n" if other else "")
    become += "ctypes.CDLL(None).prctl(4, 1)\n"  # PR_SET_DUMPABLE, which setuid takes away

    def readable(source: str) -> list[bool]:
        with process(become + source) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "done\n"
            readers = [["cat", f"/proc/{running.pid}/{name}"] for name in ("environ", "maps")]
            return [
                subprocess.run(reader, capture_output=True, check=False, **other).returncode == 0
                for reader in readers
            ]

    if readable("") != [True, True]:
        pytest.skip("the system closes processes to each other by itself")
    assert readable("Secrets.take_from(os.environ)") == [False, False]


def test_children_inherit_everything_but_the_secrets() -> None:
    source = """
        import subprocess
        secrets = Secrets.take_from(os.environ)
        child = "import os, json; print(json.dumps(dict(os.environ)))"
        print(subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.strip())
        print(secrets.get("A_API_KEY"), flush=True)
    """
    with process(textwrap.dedent(source)) as running:
        assert running.stdout is not None
        inherited = json.loads(running.stdout.readline())
        assert running.stdout.readline() == f"{CANARY}\n"
    assert inherited["FIRST"] == "stays"
    assert inherited["LAST"] == "stays too"
    assert inherited["LOGIN"] == VARIABLES["LOGIN"]
    assert not {"A_API_KEY", "EMPTY_KEY", "WITH_EQUALS_TOKEN"} & set(inherited)


def test_the_module_needs_the_standard_library_alone_and_loads_ctypes_only_to_wipe() -> None:
    source = "import sys, agentd.config.secrets; print('ctypes' in sys.modules, 'pydantic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    assert said == "False False\n"
