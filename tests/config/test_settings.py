"""The configuration file: what counts, what is complained of, and where."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.config.folders import config_file, data_dir
from agentd.config.settings import ModelSettings, ProviderSettings, Settings, load
from agentd.config.toml_lines import key_lines

WHOLE = """\
model = "local/qwen3-coder"
mode = "edit"
allow_full = true

[providers.local]
api = "openai-chat"
base_url = "http://127.0.0.1:11434/v1/"
api_key_env = "LOCAL_API_KEY"        # the name, not the key

[providers.local.models.qwen3-coder]
context_window = 131072
max_output = 8192

[providers.local.models]
"meta/llama-3.3" = { images = true, reasoning = true, efforts = ["low", "high"] }
"""

PROVIDER = 'api = "openai-chat"\nbase_url = "https://models.test/v1"\n'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agentd.toml"


def loaded(path: Path, text: str, **environ: str) -> Settings:
    path.write_text(text, encoding="utf-8")
    return load({"AGENTD_CONFIG": str(path), **environ})


def complaint(settings: Settings) -> str:
    """The one thing that is wrong."""
    (problem,) = settings.problems
    assert problem.severity == "error"
    return problem.message


def test_a_whole_configuration_counts_as_it_stands(path: Path) -> None:
    assert loaded(path, WHOLE) == Settings(
        model="local/qwen3-coder",
        mode="edit",
        allow_full=True,
        providers={
            "local": ProviderSettings(
                name="local",
                api="openai-chat",
                base_url="http://127.0.0.1:11434/v1",
                key_variables=("LOCAL_API_KEY",),
                models={
                    "qwen3-coder": ModelSettings("qwen3-coder", context_window=131072, max_output=8192),
                    "meta/llama-3.3": ModelSettings(
                        "meta/llama-3.3", images=True, reasoning=True, efforts=("low", "high")
                    ),
                },
            )
        },
        path=path,
        origins={
            "model": f"{path}:1",
            "mode": f"{path}:2",
            "allow_full": f"{path}:3",
            "providers.local": f"{path}:5",
        },
    )


def test_without_a_file_of_the_user_the_defaults_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load({}) == Settings(origins=dict.fromkeys(("model", "mode", "allow_full"), "default"))
    file = tmp_path / "agentd" / "config.toml"
    file.parent.mkdir()
    file.write_text('mode = "plan"')
    assert (load({}).mode, load({}).path) == ("plan", file)


def test_an_empty_file_and_the_null_device_are_configurations_that_say_nothing(path: Path) -> None:
    assert loaded(path, "").problems == ()
    assert load({"AGENTD_CONFIG": os.devnull}).problems == ()


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())
    settings = load({"AGENTD_CONFIG": str(path)})
    assert settings.problems == ()
    assert settings.origins["providers.local"] == f"{path}:5"


def test_the_environment_goes_before_the_file(path: Path) -> None:
    settings = loaded(path, WHOLE, AGENTD_MODEL=" other/model ")
    assert settings.model == "other/model"
    assert settings.origins["model"] == "environment AGENTD_MODEL"
    assert loaded(path, WHOLE, AGENTD_MODEL="").model == "local/qwen3-coder"


def test_a_wrong_variable_is_named_and_the_file_counts(path: Path) -> None:
    settings = loaded(path, WHOLE, AGENTD_MODEL="gpt")
    assert complaint(settings).startswith('AGENTD_MODEL: "gpt" has to be "provider/model"')
    assert settings.model == "local/qwen3-coder"


# --- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ('\nmodell = "a/b"', 2, "modell", 'is no known key (did you mean "model"?)'),
        ("model = 3", 1, "model", "has to be a string, not a whole number"),
        ('model = "gpt"', 1, "model", '"gpt" has to be "provider/model"'),
        ('model = "/gpt"', 1, "model", 'has to be "provider/model"'),
        ('model = ""', 1, "model", "is empty"),
        (
            '# x\nmode = "plann"',
            2,
            "mode",
            '"plann" is not known (did you mean "plan"?); use one of plan, ask',
        ),
        ("mode = true", 1, "mode", "has to be a string, not true or false"),
        ("allow_full = 1", 1, "allow_full", "has to be true or false, not a whole number"),
        ("retention_days = 0", 1, "retention_days", "it has to be above 0"),
        ("retention_days = true", 1, "retention_days", "has to be a whole number, not true or false"),
        ('mode = "full"\nallow_full = false', 1, "mode", "set allow_full = true"),
        ("providers = []", 1, "providers", "has to be a table, not an array"),
        ("[[providers]]", 1, "providers", "has to be a table, not an array"),
        ("[providers]\nlocal = 1979-05-27", 2, "providers.local", "has to be a table, not a date or time"),
        ('api_key = "CANARY"', 1, "api_key", "api_key_env"),
    ],
)
def test_a_wrong_key_is_named_with_file_line_and_way_out_and_does_not_count(
    path: Path, text: str, line: int, key: str, words: str
) -> None:
    settings = loaded(path, text)
    message = complaint(settings)
    assert message.startswith(f"{path}:{line}: {key}: ")
    assert words in message
    assert "CANARY" not in message
    assert (settings.problems[0].uri, settings.problems[0].line) == (path.as_uri(), line - 1)
    assert (settings.model, settings.mode, settings.allow_full, settings.providers) == (
        None,
        "ask",
        False,
        {},
    )


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ('api = "openai-chta"\nbase_url = "http://h"', 3, "api", 'did you mean "openai-chat"?'),
        ('base_url = "http://h"', 2, "api", 'is missing; write api = "openai-chat"'),
        ('api = "openai-chat"', 2, "base_url", "is missing; write for example base_url ="),
        ('api = "openai-chat"\nbase_url = "h/v1"', 4, "base_url", "has to begin with http:// or https://"),
        ('api = "openai-chat"\nbase_url = "file:///etc"', 4, "base_url", "has to begin with http://"),
        ('api = "openai-chat"\nbase_url = "http:///v1"', 4, "base_url", "is no valid address"),
        ('api = "openai-chat"\nbase_url = "http://h:99999"', 4, "base_url", "is no valid address"),
        ('api = "openai-chat"\nbase_url = "http://[::1"', 4, "base_url", "is no valid address"),
        ('api = "openai-chat"\nbase_url = "http://h/a b"', 4, "base_url", "is no valid address"),
        ('api = "openai-chat"\nbase_url = "http://u:CANARY@h"', 4, "base_url", "holds credentials"),
        ('api = "openai-chat"\nbase_url = "http://CANARY@h"', 4, "base_url", "holds credentials"),
        ('api = "openai-chat"\nbase_url = "http://h?api_key=CANARY"', 4, "base_url", "holds credentials"),
        (PROVIDER + 'api_key = "CANARY"', 5, "api_key", "name that variable here: api_key_env ="),
        (PROVIDER + 'token = "CANARY"', 5, "token", "name that variable here: api_key_env ="),
        (PROVIDER + 'api_key_env = "sk-CANARY"', 5, "api_key_env", "the name of an environment variable"),
        (PROVIDER + "models = 3", 5, "models", "has to be a table"),
    ],
)
def test_a_provider_that_would_not_work_or_not_be_safe_is_left_out(
    path: Path, text: str, line: int, key: str, words: str
) -> None:
    settings = loaded(path, 'mode = "plan"\n[providers.p]\n' + text + f"\n[providers.q]\n{PROVIDER}")
    message = complaint(settings)
    assert message.startswith(f"{path}:{line}: providers.p.{key}: ")
    assert words in message
    assert "CANARY" not in str(settings)
    assert settings.mode == "plan"
    assert list(settings.providers) == ["q"]


@pytest.mark.parametrize("name", ["scripted", '"a/b"', '" "'])
def test_a_providers_name_can_be_told_from_a_models(path: Path, name: str) -> None:
    settings = loaded(path, f"[providers.{name}]\n{PROVIDER}")
    assert "cannot be a provider's name" in complaint(settings)
    assert settings.providers == {}


def test_an_unknown_key_of_a_provider_costs_that_key_only(path: Path) -> None:
    settings = loaded(path, f"[providers.p]\n{PROVIDER}timeout = 3")
    assert complaint(settings).startswith(f"{path}:4: providers.p.timeout: is no known key")
    assert list(settings.providers) == ["p"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("context_window = 0", "is 0; it has to be above 0"),
        ("context_window = true", "has to be a whole number, not true or false"),
        ("max_output = 1.5", "has to be a whole number, not a number with a fraction"),
        ("images = 'yes'", "has to be true or false, not a string"),
        ("efforts = ['huge']", '"huge" is not known; use any of minimal, low'),
        ("efforts = [1]", "1 is not known"),
    ],
)
def test_a_wrong_model_is_left_out_of_its_provider(path: Path, entry: str, words: str) -> None:
    settings = loaded(
        path, f"[providers.p]\n{PROVIDER}[providers.p.models]\ngood = {{}}\nbad = {{ {entry} }}"
    )
    message = complaint(settings)
    assert message.startswith(f"{path}:6: providers.p.models.bad.{entry.split(' ')[0]}: ")
    assert words in message
    assert list(settings.providers["p"].models) == ["good"]


def test_a_models_name_that_lacks_its_quotes_is_recognised(path: Path) -> None:
    settings = loaded(path, f"[providers.p]\n{PROVIDER}[providers.p.models.gpt-4.1]\nimages = true")
    assert '[providers.p.models."gpt-4.1"]' in complaint(settings)
    assert settings.providers["p"].models == {}


def test_starting_in_full_allows_full(path: Path) -> None:
    settings = loaded(path, 'mode = "full"')
    assert (settings.mode, settings.allow_full, settings.problems) == ("full", True, ())
    assert settings.origins["allow_full"] == f"{path}:1"


def test_problems_come_in_the_order_of_the_file(path: Path) -> None:
    settings = loaded(path, 'mode = "x"\nmodel = 1\nfoo = 1\n[providers.p]\n', AGENTD_MODEL="x")
    assert [problem.line for problem in settings.problems] == [None, 0, 1, 2, 3, 3]


# --- files that cannot be used --------------------------------------------------------------------


def test_a_named_file_that_is_missing_is_an_error(path: Path) -> None:
    settings = load({"AGENTD_CONFIG": str(path)})
    assert complaint(settings) == f"{path}: does not exist; create it, or correct or unset AGENTD_CONFIG"
    assert (settings.problems[0].uri, settings.problems[0].line) == (path.as_uri(), None)
    assert settings.path is None


def test_what_is_no_readable_text_file_is_an_error_and_never_waited_for(tmp_path: Path, path: Path) -> None:
    assert "is no file" in complaint(load({"AGENTD_CONFIG": str(tmp_path)}))
    os.mkfifo(tmp_path / "fifo")
    assert "is no file" in complaint(load({"AGENTD_CONFIG": str(tmp_path / "fifo")}))
    path.write_bytes(b"mode = '\xff'")
    assert "is not UTF-8 text (byte 8)" in complaint(load({"AGENTD_CONFIG": str(path)}))
    path.write_bytes(b"#" * 1_100_000)
    assert "is larger than" in complaint(load({"AGENTD_CONFIG": str(path)}))
    assert "cannot be read: Not a directory" in complaint(load({"AGENTD_CONFIG": str(path / "below")}))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('mode = "ask"\nmodel = ', 2),
        ('mode = "ask"\nmode = "ask"\n', 2),
        ("[a\nb = 1", 1),
        ("a", 1),
        ("'\x0c\x850", 1),  # neither of which ends a line in TOML
    ],
)
def test_a_syntax_error_is_named_with_its_line(path: Path, text: str, line: int) -> None:
    settings = loaded(path, text)
    assert complaint(settings).startswith(f"{path}:{line}: is no valid TOML: ")
    assert settings.problems[0].line == line - 1
    assert (settings.mode, settings.path) == ("ask", path)


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('mode = "ask"\nmode = "edit"\n', 2, "mode"),
        ("[compaction]\nat = 0.5\n[compaction]\nat = 0.6\n", 3, "[compaction]"),
    ],
)
def test_what_stands_there_twice_is_named(path: Path, text: str, line: int, key: str) -> None:
    told = f'{path}:{line}: is no valid TOML: "{key}" stands there a second time; keep one of the two'
    assert complaint(loaded(path, text)).startswith(told)


def test_no_value_is_shown_of_what_stands_there_twice(path: Path) -> None:
    assert "sk-canary" not in complaint(loaded(path, 'pass = ["a"]\npass = [\n"sk-canary"]\n'))


def test_a_link_to_nothing_is_no_absent_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "config.toml"
    link.symlink_to(tmp_path / "moved.toml")
    monkeypatch.setattr("agentd.config.settings.config_file", lambda environ: link)
    settings = load({})
    assert "is a link to a file that does not exist; create it, or remove it" in complaint(settings)


@pytest.mark.parametrize(
    ("place", "are_unknown"),
    [("loop/config.toml", True), ("file/config.toml", True), ("n" * 300, True), ("no/config.toml", False)],
)
def test_rules_are_unknown_where_nobody_can_tell_whether_there_is_a_file(
    tmp_path: Path, place: str, are_unknown: bool
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    settings = load({"AGENTD_CONFIG": str(tmp_path / place)})
    assert settings.permissions.are_unknown is are_unknown
    assert ("every command is asked about" in complaint(settings)) is are_unknown


def test_deep_nesting_is_an_error_like_any_other(path: Path) -> None:
    assert "nested too deep" in complaint(loaded(path, "a = " + "[" * 5000 + "]" * 5000))


@given(st.text(max_size=60) | st.lists(st.sampled_from(WHOLE.splitlines()), max_size=12).map("\n".join))
def test_no_text_makes_loading_raise(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    settings = load({"AGENTD_CONFIG": str(path)})
    for problem in settings.problems:
        assert problem.line is None or 0 <= problem.line <= text.count("\n") + text.count("\r")


# --- lines and folders ----------------------------------------------------------------------------


def test_the_line_of_a_key_is_found_whatever_stands_around_it() -> None:
    text = '''\
# [not.a.table]
title = """
[nor.this]
x = 1 "" """
other = "a # b = [c]"
list = [ # comment
  "x = 1", [ 2 ],
  { deep = { deeper = 1 } , second = 2 },
]
a.b."c.d" = { e = 1, f = { g = [1,2] }, h = 3 }
"q\\u0041" = 'x'
[t]  # comment
3.5 = 1
  [ t . "u v" ]
w = 1979-05-27T07:32:00Z
[[array]]
n = 1
[[array]]
n = 2
'''
    assert key_lines(text) == {
        ("title",): 1,
        ("other",): 4,
        ("list",): 5,
        ("list", "deep"): 7,
        ("list", "deep", "deeper"): 7,
        ("list", "second"): 7,
        ("a",): 9,
        ("a", "b"): 9,
        ("a", "b", "c.d"): 9,
        ("a", "b", "c.d", "e"): 9,
        ("a", "b", "c.d", "f"): 9,
        ("a", "b", "c.d", "f", "g"): 9,
        ("a", "b", "c.d", "h"): 9,
        ("qA",): 10,
        ("t",): 11,
        ("t", "3"): 12,
        ("t", "3", "5"): 12,
        ("t", "u v"): 13,
        ("t", "u v", "w"): 14,
        ("array",): 15,
        ("array", "n"): 16,
    }


def test_variables_to_pass_on_are_named_by_the_user(path: Path) -> None:
    settings = loaded(path, '[environment]\npass = ["PGPASSWORD", "LD_LIBRARY_PATH", "_x1"]\n')
    assert (settings.passed, settings.problems) == (("PGPASSWORD", "LD_LIBRARY_PATH", "_x1"), ())
    assert loaded(path, "").passed == ()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('pass = "A"', ":2: environment.pass: has to be an array, not a string"),
        ("pass = [1]", ":2: environment.pass: has to be an array of strings, none of them empty"),
        ('pass = ["A=b"]', ':2: environment.pass: "A=b" is not the name of an environment variable'),
        ('set = ["A"]', ":2: environment.set: "),
        (
            'pass = ["OPENAI_API_KEY"]',
            ':2: environment.pass: OPENAI_API_KEY holds the key of provider "openai", which no command may '
            "see; give commands one of their own in another variable",
        ),
        (
            f'pass = ["MODEL_LOGIN"]\n[providers.own]\n{PROVIDER}api_key_env = "MODEL_LOGIN"',
            ':2: environment.pass: MODEL_LOGIN holds the key of provider "own"',
        ),
    ],
)
def test_what_commands_may_not_see_or_what_is_no_name_is_refused(
    path: Path, table: str, message: str
) -> None:
    settings = loaded(path, f"[environment]\n{table}\n")
    assert complaint(settings).startswith(f"{path}{message}")
    assert settings.passed == ()


def test_the_rest_of_the_names_counts_all_the_same(path: Path) -> None:
    settings = loaded(path, '[environment]\npass = ["A", "OPENAI_API_KEY", "b c", "D"]\n')
    assert settings.passed == ("A", "D")
    assert len(settings.problems) == 2


def test_folders_follow_the_variables_and_else_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert config_file({}) == config_file({"AGENTD_CONFIG": " "}) == tmp_path / "config/agentd/config.toml"
    assert data_dir({}) == data_dir({"AGENTD_DATA": ""}) == tmp_path / "data/agentd"
    assert config_file({"AGENTD_CONFIG": "x.toml"}) == tmp_path / "x.toml"
    assert data_dir({"AGENTD_DATA": "~/d"}) == tmp_path / "d"
    assert data_dir({"AGENTD_DATA": "~no-such-user/d"}) == tmp_path / "~no-such-user/d"


def test_sessions_are_kept_for_ninety_days_unless_said(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    assert load({"AGENTD_CONFIG": str(path)}).retention_days == 90
    path.write_text("retention_days = 7\n")
    settings = load({"AGENTD_CONFIG": str(path)})
    assert (settings.retention_days, settings.problems) == (7, ())
