"""`agentd doctor`: what is in force here, where it comes from, and what is wrong."""

import argparse
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from agentd import __version__

if TYPE_CHECKING:
    from agentd.agent.commands import Catalogue
    from agentd.config.settings import ProviderSettings, Settings
    from agentd.protocol.methods import Problem
    from agentd.workspace.process import Processes
    from agentd.workspace.sandbox import Sandbox
    from agentd.workspace.skills import Skills

PACKAGES = ("anyio", "httpx", "jsonschema-rs", "lsprotocol", "pathspec", "pydantic", "pygls")
PROBE_SECONDS = 5.0
Lines = Iterator[tuple[str, str]]


def main(argv: list[str]) -> int:
    """Print the report. Exit code 1 where something is wrong that keeps agentd from working."""
    parser = argparse.ArgumentParser(
        prog="agentd doctor",
        description="Show versions, the configuration in force with the origin of each setting, and what is "
        "wrong with it. No key or other secret is shown. Exit code 1 where there are errors.",
    )
    parser.add_argument(
        "--probe", action="store_true", help="also ask each provider listed whether it answers"
    )
    said = parser.parse_args(argv)

    from agentd.config.settings import load
    from agentd.config.trust import Trust
    from agentd.permissions.store import RuleStore

    settings = load(os.environ)
    trust = Trust.of_user(os.environ, settings.trusted)
    skills = _skills(os.environ)
    is_trusted = trust.trusts(Path.cwd())
    commands = _commands(os.environ, is_trusted)
    problems = [
        *settings.problems,
        *trust.problems(),
        *RuleStore.of_user(os.environ).problems([Path(os.path.realpath(Path.cwd()))]),
        *skills.problems(trusted=is_trusted),
        *commands.problems,
        *_workspace_problems(settings, trusted=is_trusted),
        *_model_problems(settings, os.environ),
        *_data_problems(os.environ),
    ]
    _section("agentd", _versions())
    _section("configuration", _configuration(settings, os.environ))
    _section("sessions", _data(os.environ))
    _section("skills", _listed((skill.name, skill.folder) for skill in skills.loadable(trusted=is_trusted)))
    _section("commands", _listed((f"/{each.name}", each.description) for each in commands.commands))
    _section("programs", _programs())
    import anyio

    sandbox, wanting = anyio.run(_sandbox, settings)
    _section("sandbox", iter(sandbox))
    problems += wanting
    if said.probe:
        answers = anyio.run(_probe, _concerned(settings, os.environ))
        _section("providers", _listed(answers.items()))
        problems += [problem for problem in map(_unreachable, answers.items()) if problem is not None]
    _section("problems", _told(problems))
    return 1 if any(problem.severity == "error" for problem in problems) else 0


def _section(title: str, lines: Lines) -> None:
    from agentd.cli.terminal import one_line

    print(title)
    for name, value in lines:
        print(f"  {one_line(name):<14} {one_line(value)}".rstrip())


def _versions() -> Lines:
    yield "version", __version__
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    yield "packages", ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES)


def _configuration(settings: "Settings", environ: Mapping[str, str]) -> Lines:
    from agentd.config.folders import config_file

    origins = settings.origins
    yield "file", str(settings.path) if settings.path else f"none (it would be {config_file(environ)})"
    yield "model", f"{settings.model or 'none'} ({origins['model']})"
    yield "mode", f"{settings.mode} ({origins['mode']})"
    yield "allow_full", f"{'true' if settings.allow_full else 'false'} ({origins['allow_full']})"
    if settings.passed:
        yield "to commands", f"{', '.join(settings.passed)} ({origins['environment.pass']})"
    rules = settings.permissions
    yield "rules", f"{len(rules.deny)} deny, {len(rules.ask)} ask, {len(rules.allow)} allow"
    yield "trusted", ", ".join(map(str, settings.trusted)) or "no folder; `agentd trust` lists the others"
    automatic = (
        f"at {settings.compaction.at:.0%} of the context window" if settings.compaction.auto else "off"
    )
    yield "compaction", f"{automatic} ({origins.get('compaction', 'default')})"
    children = settings.subagents
    budget = f"{children.max_turns} turns, {children.max_tokens:,} tokens each"
    model = children.model or "their parent's model"
    yield "sub-agents", f"{budget}, {model} ({origins.get('subagents', 'default')})"
    for name, provider in _concerned(settings, environ).items():
        origin = next((at for key, at in origins.items() if key == f"providers.{name}"), "built in")
        yield "provider", f"{name}: {provider.api} at {provider.base_url} ({origin})"
        yield "", f"models: {', '.join(provider.models) or 'none described'}; {_key(provider, environ)}"


def _concerned(settings: "Settings", environ: Mapping[str, str]) -> "dict[str, ProviderSettings]":
    """The providers of the file, and those built in that are used, moved or have a key."""
    used = (settings.model or "").partition("/")[0]
    return {
        name: provider
        for name, provider in settings.all_providers.items()
        if name in settings.providers
        or name == used
        or f"providers.{name}" in settings.origins
        or _set_key(provider, environ) is not None
    }


def _key(provider: "ProviderSettings", environ: Mapping[str, str]) -> str:
    """Whether there is a key; never the key."""
    if not provider.key_variables:
        return "no key"
    name = _set_key(provider, environ)
    return f"key from {name or ' or '.join(provider.key_variables)}, which is {'set' if name else 'not set'}"


def _set_key(provider: "ProviderSettings", environ: Mapping[str, str]) -> str | None:
    """The variable that the key comes from."""
    return next((name for name in provider.key_variables if environ.get(name, "").strip()), None)


def _workspace_problems(settings: "Settings", *, trusted: bool) -> tuple["Problem", ...]:
    """What is wrong with the file of the folder, which is read only where that is trusted."""
    from agentd.config.workspace_settings import WorkspaceFile

    return (
        WorkspaceFile(Path(os.path.realpath(Path.cwd()))).settings(settings.mode).problems if trusted else ()
    )


def _model_problems(settings: "Settings", environ: Mapping[str, str]) -> Iterator["Problem"]:
    """Without a model that can be asked every prompt has to name one, or the client has to bring the key."""
    from agentd.protocol.errors import RpcError
    from agentd.protocol.methods import Problem
    from agentd.sessions.engines import ConfiguredEngines

    if settings.model is None:
        message = "No model is configured; name one as model in the file, in AGENTD_MODEL or with --model."
        yield Problem(severity="warning", message=message)
        return
    if any(problem.severity == "error" for problem in settings.problems):
        return  # it would be told twice
    try:
        ConfiguredEngines(settings, lambda name: environ.get(name, "").strip() or None).engine(
            settings.model, None
        )
    except RpcError as error:
        yield Problem(severity="warning", message=error.message)


def _data(environ: Mapping[str, str]) -> Lines:
    from agentd.config.folders import data_dir

    folder = data_dir(environ)
    yield "folder", f"{folder}{'' if folder.is_dir() else ' (not there yet)'}"


def _data_problems(environ: Mapping[str, str]) -> Iterator["Problem"]:
    """Where sessions could not be kept."""
    from agentd.config.folders import data_dir
    from agentd.protocol.methods import Problem

    folder = data_dir(environ)
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        message = f"Sessions cannot be kept in {folder}: {there} is no folder that can be written to."
        yield Problem(severity="error", message=message)


async def _sandbox(settings: "Settings") -> "tuple[list[tuple[str, str]], list[Problem]]":
    """What commands in mode `auto` run in, tried out, and what git tells of this folder inside it."""
    from agentd.config.folders import home_dir, own_places
    from agentd.protocol.methods import Problem
    from agentd.workspace.process import Processes
    from agentd.workspace.sandbox import Sandbox

    async with Processes() as processes:
        sandbox = Sandbox(processes, settings.sandbox, own_places(os.environ), home_dir())
        status = await sandbox.status()
        lines = [("commands", f"{status.backend} ({status.program or status.reason or 'of the kernel'})")]
        lines += [("", f"leaves open: {gap}") for gap in status.gaps]
        opened = settings.sandbox
        lines += [("network", "on" if opened.network else "off")]
        lines += [("writable", f"{path} beside the workspace") for path in opened.writable]
        lines += [("git", await _git_says(processes, sandbox))]
        sandbox.close()
    if settings.mode != "auto" or status.works:
        return lines, []
    message = f"Mode auto acts as ask, as there is no sandbox for commands: {status.reason}"
    return lines, [Problem(severity="warning", message=message)]


async def _git_says(processes: "Processes", sandbox: "Sandbox") -> str:
    """The version of git, and the repository and branch of the folder that we are in."""
    from agentd.workspace.git import Git, GitError

    try:
        git = Git(Path.cwd(), processes, sandbox)
        version, top = await git.version(), await git.top()
        if top is None:
            return f"{version}; this folder is in no repository"
        branch = await git.branch() or "no branch"
        commit = (await git.head() or "without a commit")[:16]
        return f"{version}; this folder is in {top} on {branch}, {commit}"
    except (GitError, OSError) as error:
        return str(error)


def _skills(environ: Mapping[str, str]) -> "Skills":
    """The skills for work in this folder."""
    from agentd.config.folders import skill_folders
    from agentd.workspace.skills import SkillFolders

    return SkillFolders(skill_folders(environ)).find(Path(os.path.realpath(Path.cwd())))


def _commands(environ: Mapping[str, str], is_trusted: bool) -> "Catalogue":
    """The commands of files that count in this folder."""
    from agentd.agent.commands import Commands
    from agentd.config.folders import config_file

    folder = Path(os.path.realpath(Path.cwd()))
    return Commands(folder, config_file(environ).parent, trusted=is_trusted).catalogue()


def _listed(named: Iterable[tuple[str, object]]) -> Lines:
    none = True
    for name, value in named:
        none = False
        yield name, str(value)
    if none:
        yield "none", ""


def _programs() -> Lines:
    """What is found on PATH, which says nothing about what uses it, and what searches file contents here."""
    for name in ("bash", "git"):
        yield name, shutil.which(name) or "not found"
    yield "search", _search_backend()
    yield "images", _image_backend()


def _image_backend() -> str:
    from agentd.workspace.shrinking import INSTALL, can_shrink

    return f"with pillow {metadata.version('pillow')}" if can_shrink() else f"without Pillow: {INSTALL}"


def _search_backend() -> str:
    from agentd.workspace.ripgrep import find_ripgrep

    found = find_ripgrep(Path.cwd(), os.environ.get("PATH", ""))
    if found is None:
        return "without ripgrep (one in the workspace does not count): pip install 'agentd-lsp[fast]'"
    return f"with ripgrep {found.version} ({found.path})"


async def _probe(providers: "Mapping[str, ProviderSettings]") -> dict[str, str]:
    """What each provider answers to a plain request without a key: any HTTP answer shows that it is there."""
    import httpx

    answers = {}
    own_machine = dict.fromkeys(("all://127.0.0.1", "all://localhost", "all://[::1]"))  # never by a proxy
    async with httpx.AsyncClient(timeout=PROBE_SECONDS, mounts=own_machine) as client:
        for name, provider in providers.items():
            if provider.base_url is None:
                answers[name] = f"{_NO_ANSWER}: set {' or '.join(provider.base_url_variables)}"
                continue
            try:
                response = await client.get(f"{provider.base_url}/models")
                answers[name] = f"answers (HTTP {response.status_code})"
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                answers[name] = f"{_NO_ANSWER}: {error or type(error).__name__}"
    return answers


_NO_ANSWER = "no answer"


def _unreachable(answer: tuple[str, str]) -> "Problem | None":
    from agentd.protocol.methods import Problem

    name, said = answer
    if not said.startswith(_NO_ANSWER):
        return None
    return Problem(severity="error", message=f"Provider {name!r} cannot be reached: {said}.")


def _told(problems: "list[Problem]") -> Lines:
    if not problems:
        yield "none", ""
    for problem in problems:
        yield problem.severity, problem.message
