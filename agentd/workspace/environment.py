"""What commands see of the daemon's environment.

An allow list, since no pattern knows every secret (`PGPASSWORD`, a token in `MY_SETTING`): a variable that is
not named here does not reach commands. What is allowed by name is still refused when its name speaks of a
secret, or its value is an address with a password in it. On top come settings without which commands wait for
someone to answer, open an editor or page their output.

The user can pass more variables by name, whatever their names say: that is the user's own decision. Keys of
model providers never pass.
"""

import re
from collections.abc import Mapping

_ALLOWED_NAMES = """
PATH HOME USER LOGNAME SHELL HOSTNAME LANG LANGUAGE TZ TMPDIR TEMP TMP
XDG_CACHE_HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS XDG_DATA_HOME XDG_DATA_DIRS XDG_STATE_HOME
HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS NIX_SSL_CERT_FILE

VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_EXE PYENV_ROOT PYENV_VERSION PYTHONPATH POETRY_HOME
PIP_CACHE_DIR PIP_INDEX_URL UV_CACHE_DIR UV_INDEX_URL UV_PYTHON PIPX_HOME PIPX_BIN_DIR
NVM_DIR NVM_BIN NODE_ENV NODE_PATH VOLTA_HOME FNM_DIR FNM_MULTISHELL_PATH COREPACK_HOME PNPM_HOME
npm_config_cache npm_config_registry YARN_CACHE_FOLDER BUN_INSTALL DENO_DIR DENO_INSTALL
CARGO_HOME CARGO_TARGET_DIR RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE
GOPATH GOROOT GOBIN GOCACHE GOMODCACHE GOFLAGS GOTOOLCHAIN GOPROXY GOPRIVATE GONOPROXY GONOSUMDB GOSUMDB
JAVA_HOME JDK_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME KOTLIN_HOME SCALA_HOME SDKMAN_DIR
ANDROID_HOME ANDROID_SDK_ROOT ANDROID_NDK_HOME FLUTTER_ROOT DOTNET_ROOT NUGET_PACKAGES
RBENV_ROOT RBENV_VERSION RVM_PATH GEM_HOME GEM_PATH BUNDLE_PATH COMPOSER_HOME PERL5LIB
ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR MISE_SHIMS_DIR NIX_PATH NIX_PROFILES
GHCUP_INSTALL_BASE_PREFIX STACK_ROOT OPAMROOT OPAM_SWITCH_PREFIX MIX_HOME HEX_HOME JULIA_DEPOT_PATH
HOMEBREW_PREFIX HOMEBREW_CELLAR HOMEBREW_REPOSITORY SDKROOT DEVELOPER_DIR MACOSX_DEPLOYMENT_TARGET
CC CXX AR LD CFLAGS CXXFLAGS CPPFLAGS LDFLAGS PKG_CONFIG_PATH CMAKE_PREFIX_PATH CCACHE_DIR CUDA_HOME CUDA_PATH
"""
_ALLOWED = frozenset(_ALLOWED_NAMES.split())
_ALLOWED_PREFIX = "LC_"

_REFUSED = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|AUTH|COOKIE"
    # These make programs run or load code.
    r"|^(?:LD_|DYLD_|GIT_|BASH_FUNC_)|^(?:BASH_ENV|ENV|PROMPT_COMMAND|PYTHONSTARTUP|NODE_OPTIONS)$"
    r"|^(?:PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS)$",
    re.IGNORECASE,
)
_CREDENTIALS_IN_URL = re.compile(r"://[^/?#\s]*@")

_FIXED = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "CI": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    # Vim without a terminal waits for ever. This comes after its -c commands: scripted edits still work.
    "VIMINIT": "autocmd VimEnter * if !has('ttyin') | cquit | endif",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "npm_config_yes": "true",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
}
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(base: Mapping[str, str], passed: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for commands, out of the daemon's own (`os.environ`) and what the user passes on."""
    inherited = {name: value for name, value in base.items() if _may_pass(name, value)}
    return {"PATH": _DEFAULT_PATH} | inherited | dict(passed or {}) | _FIXED


def _may_pass(name: str, value: str) -> bool:
    if name not in _ALLOWED and not name.startswith(_ALLOWED_PREFIX):
        return False
    if name.lower().endswith("_proxy") and "@" in value:  # a proxy's user:password@host needs no scheme
        return False
    return not _REFUSED.search(name) and not _CREDENTIALS_IN_URL.search(value)
