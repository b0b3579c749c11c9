"""Commands in prompts over the wire: what the model is told, what the user sees, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.scripts import reply, text, tool


def command(name: str, arguments: str = "") -> Json:
    return {"type": "command", "name": name, "arguments": arguments}


def put(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def users(home: Home, name: str, content: str) -> Path:
    return put(home.config.parent / "commands", name, content)


def projects(root: Path, name: str, content: str) -> Path:
    return put(root / ".agentd" / "commands", name, content)


def said(home: Home, number: int = -1) -> list[str]:
    """The texts that the user says in a request to the model."""
    request = home.model_requests()[number]
    return [
        block["text"]
        for message in request["messages"]
        if message["role"] == "user"
        for block in message["content"]
    ]


def problems(daemon: Daemon) -> list[str]:
    return [each["message"] for each in daemon.call("agentd/status")["problems"]]


def listed(daemon: Daemon, root: Path) -> dict[str, Json]:
    found = daemon.call("agentd/commands", {"workspaceUri": root.as_uri()})["commands"]
    return {each["name"]: each for each in found}


def test_a_users_command_becomes_the_prompt_and_the_transcript_keeps_what_was_written(home: Home) -> None:
    users(
        home,
        "fix.md",
        "---\ndescription: Fix it\nargument-hint: [what] [where]\n---\nFix $1 in $2. All: $ARGUMENTS\n",
    )
    root = home.workspace()
    daemon = home.start(options={"permission": True})
    chat = Chat(daemon, root, model=home.script(reply("done"), reply("more")))
    assert chat.run([command("fix", "'the bug' a.py")])["text"] == "done"
    assert said(home) == ["Fix the bug in a.py. All: 'the bug' a.py"]
    assert chat.get()["messages"][0]["content"] == [command("fix", "'the bug' a.py")]
    assert chat.get()["session"]["title"] == "/fix 'the bug' a.py"
    assert "shown" not in json.dumps(chat.notifications()), "what the model is shown is never sent"
    chat.run("and now?")
    assert said(home) == ["Fix the bug in a.py. All: 'the bug' a.py", "and now?"]
    assert listed(daemon, root)["fix"] == {
        "name": "fix", "description": "Fix it", "argumentHint": "[what] [where]", "source": "user"
    }  # fmt: skip
    assert_well_formed(chat.notifications())


def test_a_request_stays_the_same_when_the_template_changes_or_goes(home: Home) -> None:
    path = users(home, "git/fix.md", "Fix it as of old.")
    root = home.workspace()
    daemon = home.start()
    model = home.script(reply("one"), reply("two"), reply("three"), reply("four"))
    chat = Chat(daemon, root, model=model)
    chat.run([command("git:fix")])
    path.write_text("Fix it anew.")
    chat.run("second")
    path.unlink()
    daemon.kill()
    chat.daemon = home.start()
    chat.run("third", promptId="after")
    fork = chat.daemon.call("agentd/session/fork", {"sessionId": chat.id})["session"]["sessionId"]
    chat.daemon.call("agentd/prompt", {"sessionId": fork, "prompt": "in the fork"})
    assert said(home) == ["Fix it as of old.", "second", "third", "in the fork"]
    bodies = [request["messages"] for request in home.model_requests()]
    assert [body[0] for body in bodies] == [bodies[0][0]] * 4


def test_the_same_command_under_the_same_id_is_the_same_prompt(home: Home) -> None:
    path = users(home, "fix.md", "Fix it.")
    chat = Chat(home.start(), home.workspace(), model=home.script(reply("done")))
    first = chat.run([command("fix", "a")], promptId="one")
    path.write_text("Something else.")
    assert chat.run([command("fix", "a")], promptId="one") == first
    refused = chat.daemon.refused("agentd/prompt", chat.prompt_params([command("fix", "b")], promptId="one"))
    assert refused["data"]["kind"] == "invalidParams"
    assert len(home.model_requests()) == 1


def test_a_projects_commands_count_once_the_workspace_is_trusted(home: Home) -> None:
    root = home.workspace()
    projects(root, "deploy.md", "Deploy $1.")
    daemon = home.start(options={"permission": True})
    chat = Chat(daemon, root, model=home.script(reply("one")))
    assert "deploy" not in listed(daemon, root)
    refused = daemon.refused("agentd/prompt", chat.prompt_params([command("deploy", "x")]))
    assert refused["data"]["kind"] == "invalidParams"
    assert "once you trust it" in refused["message"]
    assert any("not trusted" in each and "commands" in each for each in problems(daemon))
    daemon.notify("agentd/trust/didChange", {"trusted": True})
    assert listed(daemon, root)["deploy"]["source"] == "workspace"
    chat.run([command("deploy", "x")])
    assert said(home) == ["Deploy x."]
    daemon.notify("agentd/trust/didChange", {"trusted": False})
    assert "deploy" not in listed(daemon, root)
    assert daemon.refused("agentd/prompt", chat.prompt_params([command("deploy")]))


def test_the_users_goes_before_the_projects_and_nothing_before_a_built_in_one(home: Home) -> None:
    root = home.workspace()
    users(home, "fix.md", "Mine.")
    users(home, "help.md", "Never.")
    projects(root, "fix.md", "Theirs.")
    daemon = home.start(folders=[root])
    chat = Chat(daemon, root, model=home.script(reply("one")))
    chat.run([command("fix")])
    assert said(home) == ["Mine."]
    assert listed(daemon, root)["help"]["source"] == "built-in"
    told = problems(daemon)
    assert any("help.md: /help is a built-in command" in each for each in told)
    assert any(".agentd/commands/fix.md: your own /fix" in each for each in told)


def test_broken_files_are_problems_and_stand_in_nobodys_way(home: Home) -> None:
    root = home.workspace(secret_txt="x")
    (root / ".env").write_text("TOKEN=1")
    users(home, "good.md", "---\nallowed-tools: Bash\n---\n# Good one\nDo it.")
    users(home, "empty.md", "---\ndescription: x\n---\n\n")
    users(home, "open.md", "---\na: 1\n")
    users(home, "loose.md", "---\nmode: wild\n---\nx")
    users(home, "large.md", "x" * 70_000)
    users(home, "no name.md", "x")
    (home.config.parent / "commands" / "binary.md").write_bytes(b"\0\1\2\xff")
    (home.config.parent / "commands" / "out.md").symlink_to(root / "secret.txt")
    (home.config.parent / "commands" / "circle.md").symlink_to("circle.md")
    projects(root, "env.md", "x").unlink()
    (root / ".agentd" / "commands" / "env.md").symlink_to("../../.env")
    daemon = home.start(folders=[root])
    own = [name for name, each in listed(daemon, root).items() if each["source"] != "built-in"]
    assert own == ["good"]
    assert listed(daemon, root)["good"]["description"] == "Good one"
    told = "\n".join(problems(daemon))
    for name, why in (
        ("good", '"allowed-tools" is not known'), ("empty", "says nothing"), ("open", "not closed"),
        ("loose", "mode:"), ("large", "longer than 64 KB"), ("no name", "cannot be typed"),
        ("binary", "no text"), ("out", "outside"), ("env", "secrets"),
        ("circle", "a link that leads in a circle"),
    ):  # fmt: skip
        assert any(f"{name}.md" in line and why in line for line in told.splitlines()), (name, told)
    chat = Chat(daemon, root, model=home.script(reply("one")))
    refused = daemon.refused("agentd/prompt", chat.prompt_params([command("loose")]))
    assert "mode" in refused["message"]
    refused = daemon.refused("agentd/prompt", chat.prompt_params([command("env")]))
    assert "secrets" in refused["message"]
    refused = daemon.refused("agentd/prompt", chat.prompt_params([command("circle")]))
    assert "circle" in refused["message"]
    assert refused["data"]["kind"] == "invalidParams"
    assert home.model_requests() == []


@pytest.mark.parametrize("name", ["good", "../good", "", "a/b", "good.md", "goud"])
def test_a_command_that_there_is_not_is_refused_before_anything_happens(home: Home, name: str) -> None:
    users(home, "goods.md", "x")
    daemon, root = home.start(), home.workspace()
    refused = daemon.refused("agentd/prompt", {"workspaceUri": root.as_uri(), "prompt": [command(name)]})
    assert refused["data"]["kind"] == "invalidParams"
    assert refused["message"].startswith("/prompt/0/name: ")
    if name in ("good", "goud"):
        assert "Did you mean /goods?" in refused["message"]
    assert daemon.call("agentd/session/list")["sessions"] == [], "not even a session is made"


def test_no_more_than_five_hundred_commands_of_a_folder_count(home: Home) -> None:
    for number in range(502):
        users(home, f"c{number:03d}.md", "Go")
    root = home.workspace()
    daemon = home.start(folders=[root])
    names = [name for name in listed(daemon, root) if name.startswith("c") and name[1:].isdigit()]
    assert len(names) == 500
    assert any("holds more than 500 commands" in problem for problem in problems(daemon))


def test_text_that_looks_like_a_command_is_text(home: Home) -> None:
    users(home, "fix.md", "Never.")
    chat = Chat(home.start(), home.workspace(), model=home.script(reply("one")))
    chat.run("/fix it and /mode full")
    assert said(home) == ["/fix it and /mode full"]


def test_nothing_in_a_template_is_run(home: Home) -> None:
    root = home.workspace()
    users(home, "bad.md", "!`touch ran`\n!touch ran\n$(touch ran) $1")
    chat = Chat(home.start("--allow-full"), root, model=home.script(reply("one")), mode="full")
    chat.run([command("bad", "'$(touch ran)'")])
    assert said(home) == ["!`touch ran`\n!touch ran\n$(touch ran) $(touch ran)"]
    assert not (root / "ran").exists()


def test_a_template_refers_to_files_and_what_is_no_file_stays_text(home: Home) -> None:
    root = home.workspace(note_txt="one\ntwo\nthree\n")
    (root.parent / "outside.txt").write_text("not yours")
    users(home, "look.md", "Look at @$1, @missing.txt, @../outside.txt and ask @somebody.")
    chat = Chat(home.start(), root, model=home.script(reply("one")))
    chat.run([command("look", "note.txt:2-3")])
    first, second = said(home)
    assert first == "Look at @note.txt:2-3, @missing.txt, @../outside.txt and ask @somebody."
    assert "    2 | two\n    3 | three" in second
    assert "1 | one" not in second
    assert "not yours" not in json.dumps(home.model_requests())


def test_a_commands_model_and_mode_hold_for_its_run_and_a_mode_is_never_loosened(home: Home) -> None:
    other = home.script(reply("other"))
    users(home, "plan.md", f"---\nmodel: {other}\nmode: plan\n---\nPlan it.")
    users(home, "loose.md", "---\nmode: full\n---\nDo it.")
    daemon = home.start("--allow-full")
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one"), reply("two")), mode="ask")
    assert chat.run([command("plan")])["text"] == "other"
    chat.run([command("loose")])
    chat.run("plain")
    started = [p["event"]["prompt"] for p in chat.notifications() if p["event"]["type"] == "agent_start"]
    assert [each["mode"] for each in started] == ["plan", "ask", "ask"]
    assert [each["model"] == other for each in started] == [True, False, False]


def test_a_workspaces_command_chooses_no_script_as_its_model(home: Home) -> None:
    root = home.workspace()
    projects(root, "x.md", "---\nmodel: scripted/evil.json\n---\nx")
    daemon = home.start()
    chat = Chat(daemon, root, model=home.script(reply("one")))
    assert "script" in daemon.refused("agentd/prompt", chat.prompt_params([command("x")]))["message"]


def test_commands_wait_in_the_queue_and_are_looked_up_when_they_run(home: Home) -> None:
    path = users(home, "fix.md", "Old.")
    daemon = home.start()
    gate = reply(tool("write_file", {"file_path": "a.txt", "content": "x"}))
    chat = Chat(daemon, home.workspace(), model=home.script(gate, reply("one"), reply("two")), mode="ask")
    first = chat.start("first")
    asked = daemon.asked("agentd/permission/request")
    users(home, "gone.md", "Never.")
    gone = chat.start([command("gone")], whenBusy="queue")
    second = chat.start([command("fix")], whenBusy="queue")
    chat.daemon.wait(lambda m: len(m.get("params", {}).get("event", {}).get("queue", ())) == 2)
    path.write_text("New.")
    (path.parent / "gone.md").unlink()
    daemon.answer(asked, {"optionId": "allow_once"})
    chat.result(first)
    assert "no command" in daemon.response(gone)["error"]["message"]
    assert "could not begin" in chat.event("notice")["message"]
    chat.result(second)
    assert said(home) == ["first", "New."]


def test_a_command_steers_a_run(home: Home) -> None:
    users(home, "fix.md", "Fix $1.")
    daemon = home.start()
    write = reply(tool("write_file", {"file_path": "a.txt", "content": "x"}))
    chat = Chat(daemon, home.workspace(note_txt="x\n"), model=home.script(write, reply("one")), mode="ask")
    first = chat.start("first")
    asked = daemon.asked("agentd/permission/request")
    uri = (chat.root / "note.txt").as_uri()
    steer = chat.start([command("fix", "that"), {"type": "resource", "uri": uri}], whenBusy="steer")
    chat.event("queue_changed")
    daemon.answer(asked, {"optionId": "allow_once"})
    assert chat.result(first)["text"] == "one"
    assert chat.result(steer)["outcome"] == "steered"
    told = said(home)
    assert told[:2] == ["first", "Fix that."]
    assert "    1 | x" in told[2]
    assert_well_formed(chat.notifications())


def test_a_command_goes_with_a_rewind_and_comes_back_with_its_undoing(home: Home) -> None:
    path = users(home, "fix.md", "Fix it.")
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one"), reply("two"), reply("three")))
    chat.run([command("fix")], promptId="one")
    path.unlink()
    rewind = {"sessionId": chat.id, "promptId": "one", "scope": "conversation"}
    daemon.call("agentd/session/rewind", rewind)
    daemon.call("agentd/session/rewind", {"sessionId": chat.id, "undo": True})
    chat.run("more")
    assert said(home) == ["Fix it.", "more"]


# --- built-in commands ----------------------------------------------------------------------------


def ran(chat: Chat, name: str, arguments: str = "") -> Json:
    result = chat.run([command(name, arguments)])
    assert_well_formed(chat.notifications())
    return result


def test_built_in_commands_answer_without_a_model_and_spoil_no_request(home: Home) -> None:
    root = home.workspace(note_txt="x\n")
    users(home, "fix.md", "---\ndescription: Fix it\n---\nx")
    edit = reply(tool("write_file", {"file_path": "new.txt", "content": "new\n"}))
    model = home.script(edit, reply("one", usage={"input": 10, "output": 5, "total": 15}), reply("two"))
    daemon = home.start("--allow-full")
    chat = Chat(daemon, root, model=model, mode="full")
    assert "`/fix`: Fix it (user)" in ran(chat, "help")["text"]
    assert ran(chat, "cost")["text"] == "Nothing has been used yet."
    chat.run("first")
    asked = len(home.model_requests())
    assert "+new" in ran(chat, "diff")["text"]
    assert "15 tokens" in ran(chat, "cost")["text"]
    assert ran(chat, "mode")["text"].startswith("The mode is `full`")
    assert model in ran(chat, "model")["text"]
    exported = ran(chat, "export")["text"]
    assert "first" in exported
    assert "/cost" not in exported
    assert len(home.model_requests()) == asked
    assert chat.get()["session"]["title"] == "first", "a command of agentd's own names no session"
    before = home.model_requests()[-1]["messages"]
    chat.run("second")
    after = home.model_requests()[-1]["messages"]
    assert after[: len(before)] == before
    assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
    last = chat.get()["messages"][-4:-2]
    assert last[0]["content"] == [command("export")]
    assert (last[1]["provider"], last[1]["model"]) == ("agentd", "commands")


def test_mode_and_model_are_changed_for_good(home: Home) -> None:
    daemon = home.start()
    one, two = home.script(reply("one")), home.script(reply("two"))
    chat = Chat(daemon, home.workspace(), model=one, mode="ask")
    assert ran(chat, "mode", "plan")["stopReason"] == "stop"
    assert ran(chat, "model", two)["stopReason"] == "stop"
    session = chat.get()["session"]
    assert (session["mode"], session["model"]) == ("plan", two)
    assert chat.run("go")["text"] == "two"
    refused = ran(chat, "mode", "full")
    assert refused["stopReason"] == "error"
    assert "allow_full" in refused["error"]["message"]
    assert chat.get()["session"]["mode"] == "plan"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("mode", "wild", "invalidParams"),
        ("model", "nope", "noModel"),
        ("help", "me", "invalidParams"),
        ("undo", "all", "invalidParams"),
    ],
)
def test_arguments_that_a_built_in_command_does_not_take_are_refused(
    home: Home, name: str, arguments: str, kind: str
) -> None:
    chat = Chat(home.start(), home.workspace(), model=home.script())
    refused = chat.daemon.refused("agentd/prompt", chat.prompt_params([command(name, arguments)]))
    assert refused["data"]["kind"] == kind
    assert chat.get()["messages"] == []


def test_a_built_in_command_stands_alone_in_its_prompt(home: Home) -> None:
    chat = Chat(home.start(), home.workspace(), model=home.script())
    params = chat.prompt_params([text("please"), command("cost")])
    assert "prompt of its own" in chat.daemon.refused("agentd/prompt", params)["message"]


def test_help_and_model_work_where_no_model_is_chosen(home: Home) -> None:
    daemon, root = home.start(), home.workspace()
    result = daemon.call("agentd/prompt", {"workspaceUri": root.as_uri(), "prompt": [command("help")]})
    assert "/compact" in result["text"]
    said = daemon.call("agentd/prompt", {"sessionId": result["sessionId"], "prompt": [command("model")]})
    assert said["text"] == "No model is chosen."


def test_undo_brings_back_the_files_of_one_prompt_after_the_other_and_tells_the_model(home: Home) -> None:
    root = home.workspace(note_txt="old\n")
    write = [
        reply(tool("write_file", {"file_path": f"{name}.txt", "content": name})) for name in ("one", "two")
    ]
    write.append(reply(tool("write_file", {"file_path": "three.txt", "content": "three"})))
    responses = [write[0], reply("a"), write[1], reply("b"), write[2], reply("c"), reply("d")]
    chat = Chat(home.start("--allow-full"), root, model=home.script(*responses), mode="full")
    chat.run("first")
    chat.run("second")
    assert ran(chat, "undo")["text"] == "- `two.txt` is as it was before."
    assert [path.name for path in sorted(root.glob("*.txt"))] == ["note.txt", "one.txt"]
    chat.run("another way")
    assert ran(chat, "undo")["text"] == "- `three.txt` is as it was before."
    assert ran(chat, "undo")["text"] == "- `one.txt` is as it was before."
    assert ran(chat, "undo")["text"] == "There are no changes to undo."
    assert not (root / "one.txt").exists()
    chat.run("third")
    assert said(home)[-3:] == [
        "[The user has taken back what was changed. These files are as they were before: three.txt]",
        "[The user has taken back what was changed. These files are as they were before: one.txt]",
        "third",
    ]
    chat.daemon.call("agentd/session/rewind", {"sessionId": chat.id, "undo": True})
    assert (root / "one.txt").exists(), "an undo can be undone"


@pytest.mark.parametrize("killed", [False, True])
def test_going_back_to_before_an_undo_takes_it_back_as_well(home: Home, killed: bool) -> None:
    script = [reply(tool("write_file", {"file_path": "one.txt", "content": "one"})), reply("a"), reply("b")]
    daemon = home.start("--allow-full")
    chat = Chat(daemon, home.workspace(), model=home.script(*script), mode="full")
    chat.run("first")
    before = chat.get()["messages"]
    chat.run([command("undo")], promptId="undone")
    chat.run("later", promptId="later")
    if killed:
        daemon.kill()
        daemon = home.start("--allow-full")
    rewind = {"sessionId": chat.id, "scope": "both"}
    assert daemon.call("agentd/session/rewind", {**rewind, "promptId": "later"})["files"] == []
    back = daemon.call("agentd/session/rewind", {**rewind, "promptId": "undone"})
    assert [file["action"] for file in back["files"]] == ["created"]
    assert (chat.root / "one.txt").read_text() == "one"
    assert daemon.call("agentd/session/get", {"sessionId": chat.id})["messages"] == before


def test_compact_sums_up_inside_its_run_and_is_counted(home: Home) -> None:
    usage = {"input": 100, "output": 10, "total": 110}
    model = home.script(
        reply("one", usage=usage),
        reply("two", usage=usage),
        reply("## Goal\nTo go on.", usage=usage),
        reply("x"),
    )
    chat = Chat(home.start(), home.workspace(), model=model)
    chat.run("first " * 50)
    chat.run("second " * 50)
    result = ran(chat, "compact", "keep the names")
    assert result["text"].startswith("Summed up: ")
    assert result["usage"]["total"] == 110
    assert chat.get()["session"]["usage"]["total"] == 330
    assert "keep the names" in json.dumps(home.model_requests()[-1])
    kinds = [p["event"]["type"] for p in chat.notifications(result["promptId"])]
    assert kinds.index("agent_start") < kinds.index("compaction_start") < kinds.index("compaction_end")
    assert ran(chat, "compact")["text"] == "There is nothing that could be summed up."
    chat.run("third")
    assert "To go on." in said(home)[0]


def test_compact_can_be_cancelled(home: Home) -> None:
    model = home.script(reply("one"), reply("two"), {"content": [], "hang": True})
    chat = Chat(home.start(), home.workspace(), model=model)
    chat.run("first")
    chat.run("second")
    request = chat.start([command("compact")])
    chat.event("compaction_start")
    assert chat.cancel()["state"] == "cancelled"
    assert chat.result(request)["stopReason"] == "aborted"
    assert chat.event("compaction_end")["outcome"] == "aborted"
    assert_well_formed(chat.notifications())


def test_a_built_in_command_that_would_steer_runs_right_after_the_run(home: Home) -> None:
    daemon = home.start()
    write = reply(tool("write_file", {"file_path": "a.txt", "content": "x"}))
    model = home.script(write, reply("one"), reply("queued"))
    chat = Chat(daemon, home.workspace(), model=model, mode="ask")
    first = chat.start("first")
    asked = daemon.asked("agentd/permission/request")
    queued = chat.start("later", whenBusy="queue")
    cost = chat.start([command("mode", "plan")], whenBusy="steer")
    chat.daemon.wait(lambda m: len(m.get("params", {}).get("event", {}).get("queue", ())) == 2)
    daemon.answer(asked, {"optionId": "allow_once"})
    results = [chat.result(each) for each in (first, cost, queued)]
    assert [each["text"] for each in results] == ["one", "The mode is `plan` from now on.", "queued"]
    started = [
        p["event"]["prompt"]["mode"] for p in chat.notifications() if p["event"]["type"] == "agent_start"
    ]
    assert started == ["ask", "plan", "plan"]
    assert_well_formed(chat.notifications())


def test_going_on_looks_past_a_built_in_command(home: Home) -> None:
    failed: Any = {"content": [], "error": {"kind": "quota", "message": "no credit"}}
    chat = Chat(home.start(), home.workspace(), model=home.script(failed, reply("on")))
    assert chat.run("first")["stopReason"] == "error"
    ran(chat, "cost")
    assert chat.run([])["text"] == "on"
    assert said(home) == ["first"]


def test_a_built_in_command_is_kept_over_a_restart(home: Home) -> None:
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one"), reply("two")))
    chat.run("first")
    ran(chat, "cost")
    daemon.kill()
    chat.daemon = home.start()
    chat.run("second", promptId="after")
    assert said(home) == ["first", "second"]
    assert [m["role"] for m in home.model_requests()[-1]["messages"]] == ["user", "assistant", "user"]


def test_a_daemon_that_is_killed_in_a_built_in_command_leaves_nothing_of_it_to_the_model(home: Home) -> None:
    daemon = home.start()
    model = home.script(reply("one"), reply("two"), {"content": [], "hang": True})
    chat = Chat(daemon, home.workspace(), model=model)
    chat.run("first")
    chat.run("second")
    chat.start([command("compact")])
    chat.event("compaction_start")
    daemon.kill()
    chat.daemon = home.start()
    chat.run("third", promptId="after", model=home.script(reply("three")))
    assert said(home) == ["first", "second", "third"]


def test_the_users_folder_of_commands_may_lie_elsewhere_but_no_file_may_lead_out_of_it(home: Home) -> None:
    dotfiles = home.path / "dotfiles"
    put(dotfiles, "fix.md", "Fix it.")
    put(home.path, "outside.md", "Not a command.")
    (dotfiles / "out.md").symlink_to(home.path / "outside.md")
    (dotfiles / "loop").symlink_to(dotfiles)
    (home.config.parent / "commands").symlink_to(dotfiles)
    daemon, root = home.start(), home.workspace()
    assert [name for name, each in listed(daemon, root).items() if each["source"] == "user"] == ["fix"]


@pytest.mark.parametrize("argument", ["x" * 3_000_000, "x " * 1_500_000, "'x\" " * 700_000])
def test_arguments_as_long_as_a_log_file_hold_nobody_up(home: Home, argument: str) -> None:
    users(home, "first.md", "First: $1")
    daemon = home.start()
    chat = Chat(daemon, home.workspace(), model=home.script(reply("one")))
    prompt = chat.start([command("first", argument)])
    assert daemon.serves()
    assert chat.result(prompt)["text"] == "one"


def test_too_long_an_expansion_is_refused(home: Home) -> None:
    users(home, "bomb.md", "$ARGUMENTS" * 5000)
    chat = Chat(home.start(), home.workspace(), model=home.script())
    params = chat.prompt_params([command("bomb", "x" * 100_000)])
    refused = chat.daemon.refused("agentd/prompt", params)
    assert refused["message"].startswith("/prompt/0/arguments: ")
    assert chat.daemon.serves()


def test_words_that_nobody_sees_are_left_out_of_a_template(home: Home) -> None:
    users(home, "fix.md", "Fix\U000e0069\U000e0067\U000e006e it.")
    chat = Chat(home.start(), home.workspace(), model=home.script(reply("one")))
    chat.run([command("fix")])
    assert said(home) == ["Fix[3 invisible characters left out] it."]


def test_what_a_list_of_commands_shows_steers_no_terminal_and_hides_nothing(home: Home) -> None:
    users(home, "a.md", '---\ndescription: "\\e[31mred \\u202eback"\nargument-hint: "\\u202ex"\n---\nx')
    users(home, "b.md", "\u202e\n# \x1b[2JSay it")
    daemon, root = home.start(), home.workspace()
    found = listed(daemon, root)
    assert (found["a"]["description"], found["a"]["argumentHint"]) == ("[31mred back", "x")
    assert found["b"]["description"] == "[2JSay it"


def test_a_number_too_large_to_be_written_is_a_problem_and_no_end(home: Home) -> None:
    root = home.workspace()
    projects(root, "big.md", f"---\ndescription: 0x{'f' * 20_000}\n---\nx")
    users(home, "good.md", "Good.")
    daemon = home.start(folders=[root])
    assert "good" in listed(daemon, root)
    assert "big" not in listed(daemon, root)
    assert any("big.md:2: a number is too large" in each for each in problems(daemon))
    assert "/good" in ran(Chat(daemon, root, model=home.script()), "help")["text"]


def test_a_long_export_is_cut_and_says_where_all_of_it_is(home: Home) -> None:
    chat = Chat(home.start(), home.workspace(), model=home.script(reply("done")))
    chat.run("```\n" + "word " * 60_000)
    exported = ran(chat, "export")["text"]
    assert len(exported) < 201_000
    assert exported.endswith(f"`agentd sessions export {chat.id}` gives all of it.")
    assert exported.split("\n\n")[-2].endswith("\n```"), "an open code block does not swallow the last word"
    whole = chat.daemon.call("agentd/session/export", {"sessionId": chat.id})["text"]
    assert len(whole) > 300_000


def test_a_queued_command_whose_daemon_is_killed_as_it_begins_is_told_not_to_have_run(home: Home) -> None:
    users(home, "fix.md", "Fix it.")
    daemon = home.start()
    gate = reply(tool("write_file", {"file_path": "a.txt", "content": "x"}))
    chat = Chat(daemon, home.workspace(), model=home.script(gate, reply("one"), reply("two")), mode="ask")
    first = chat.start("first")
    asked = daemon.asked("agentd/permission/request")
    queued = chat.start([command("fix", "now")], whenBusy="queue", promptId="queued")
    chat.event("queue_changed")
    daemon.answer(asked, {"optionId": "allow_once"})
    chat.result(first)
    chat.result(queued)
    daemon.kill()
    (journal,) = home.data.rglob(f"{chat.id}.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    begun = next(n for n, line in enumerate(lines) if b'"agent_start"' in line and b'"queued"' in line)
    journal.write_bytes(b"".join(lines[: begun + 1]))
    chat.daemon = home.start()
    before = chat.run([command("fix", "now")], promptId="queued")
    assert before["stopReason"] == "interrupted"
    chat.run("go on", promptId="after", model=home.script(reply("x"), reply("y")))
    told = said(home)
    assert told[1:] == [
        "/fix now\n[This command was not run: the daemon stopped before it was read.]", "go on"
    ]  # fmt: skip
