"""What commands see of the daemon's environment."""

import pytest

from agentd.workspace.environment import command_environment


def test_ordinary_names_pass_with_their_values():
    base = {
        "PATH": "/opt/bin:/usr/bin",
        "HOME": "/home/me",
        "LANG": "de_DE@euro",
        "LC_CTYPE": "C.UTF-8",
        "VIRTUAL_ENV": "/home/me/venv",
        "GOPATH": "/home/me/go",
        "JAVA_HOME": "/usr/lib/jvm",
        "no_proxy": "localhost",
    }
    assert command_environment(base).items() >= base.items()


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "PGPASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "MY_SETTING",
        "JWT",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "BASH_FUNC_ls%%",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_GLOBAL",
        "GIT_EXTERNAL_DIFF",
        "PROMPT_COMMAND",
        "AGENTD_CONFIG",
        "LC_SECRET",
        "LC_API_KEY",
        "DISPLAY",
    ],
)
def test_secrets_and_names_that_run_code_do_not_pass(name: str):
    assert "canary" not in command_environment({name: "canary"}).values()


@pytest.mark.parametrize(
    "value",
    ["http://me:canary@proxy:3128", "me:canary@proxy:3128", "http://canary@proxy", "socks5://a:canary@b/"],
)
def test_a_proxy_with_credentials_does_not_pass(value: str):
    for name in ("HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        assert name not in command_environment({name: value})


def test_a_proxy_without_credentials_passes():
    for value in ("http://proxy:3128", "proxy:3128", "http://proxy/?to=a@b".replace("@", "%40")):
        assert command_environment({"HTTPS_PROXY": value})["HTTPS_PROXY"] == value


def test_a_package_index_with_credentials_does_not_pass():
    assert "PIP_INDEX_URL" not in command_environment({"PIP_INDEX_URL": "https://me:canary@index/simple"})
    assert "GOPROXY" not in command_environment({"GOPROXY": "https://open,https://me:canary@closed"})
    assert command_environment({"PIP_INDEX_URL": "https://index/simple"})["PIP_INDEX_URL"]


def test_settings_against_waiting_win_over_the_users_own():
    environment = command_environment({"PAGER": "less", "EDITOR": "vi", "TERM": "xterm-256color", "CI": ""})
    assert (
        environment.items()
        >= {
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "MANPAGER": "cat",
            "EDITOR": "false",
            "VISUAL": "false",
            "GIT_EDITOR": "false",
            "GIT_TERMINAL_PROMPT": "0",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
            "DEBIAN_FRONTEND": "noninteractive",
            "PYTHONUNBUFFERED": "1",
        }.items()
    )


def test_there_is_always_a_path():
    assert "/usr/bin" in command_environment({})["PATH"].split(":")


def test_what_the_user_passes_on_passes_whatever_its_name_says():
    environment = command_environment({"LD_LIBRARY_PATH": "/daemon"}, {"PGPASSWORD": "pw", "PAGER": "less"})
    assert environment["PGPASSWORD"] == "pw"
    assert "LD_LIBRARY_PATH" not in environment
    assert environment["PAGER"] == "cat", "but nothing makes commands wait"
