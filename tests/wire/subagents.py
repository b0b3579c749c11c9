"""Sessions whose model hands work to sub-agents, and what is seen of the sub-agents on the wire."""

from typing import Any

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.order import assert_well_formed
from wire.rewinding import told
from wire.scripts import reply, tool


def job(name: str, **more: Any) -> Json:
    """A task for a sub-agent. Its prompt names it so that the script knows the sub-agent by it."""
    return {"description": f"job {name}", "prompt": f"Do job {name}.", **more}


def delegate(*jobs: Json, call_id: str = "task-1") -> Json:
    """A response that hands these tasks to sub-agents."""
    return reply(tool("task", {"tasks": list(jobs)}, call_id))


def of(name: str, *responses: Json) -> list[Json]:
    """What the sub-agent with this job answers."""
    return [{**response, "when": f"Do job {name}."} for response in responses]


class Parent(Chat):
    """A session whose model hands out these jobs and then says "all done"."""

    def __init__(
        self,
        daemon: Daemon,
        home: Home,
        jobs: list[Json],
        *parts: list[Json],
        mode: str = "full",
        **more: Any,
    ) -> None:
        """`parts` are what the sub-agents answer; see `of`."""
        self.home = home
        script = [delegate(*jobs), *(response for part in parts for response in part), reply("all done")]
        root = more.pop("root", None) or home.workspace()
        super().__init__(daemon, root, model=home.script(*script), mode=mode, **more)

    def children(self) -> list[str]:
        """The ids of the child sessions that were introduced so far, in that order."""
        return [
            message["params"]["sessionId"]
            for message in list(self.daemon.messages)
            if message.get("method") == "agentd/event"
            and message["params"]["event"]["type"] == "session_changed"
            and message["params"]["event"]["session"].get("parent", {}).get("sessionId") == self.id
        ]

    def events_of(self, session_id: str) -> list[Json]:
        """The params of every event of a session so far."""
        return [
            message["params"]
            for message in list(self.daemon.messages)
            if message.get("method") == "agentd/event" and message["params"]["sessionId"] == session_id
        ]

    def child(self, name: str) -> str:
        """The id of the sub-agent with this job, waited for."""

        def is_it(message: Json) -> bool:
            params = message.get("params", {})
            if message.get("method") != "agentd/event" or params["event"]["type"] != "session_changed":
                return False
            session = params["event"]["session"]
            parent = session.get("parent", {}).get("sessionId")
            return parent == self.id and session["title"] == f"job {name}"

        session_id: str = self.daemon.wait(is_it)["params"]["sessionId"]
        return session_id

    def child_event(self, name: str, kind: str) -> Json:
        """An event of this type of the sub-agent with this job, waited for."""
        session_id = self.child(name)
        event: Json = self.daemon.wait(
            lambda m: (
                m.get("method") == "agentd/event"
                and m["params"]["sessionId"] == session_id
                and m["params"]["event"]["type"] == kind
            )
        )["params"]["event"]
        return event

    def answer(self, call_id: str = "task-1") -> str:
        """What the call that ran the sub-agents came to, as the model is told."""
        return "".join(block["text"] for block in self.ended(call_id)["content"])

    def ended(self, call_id: str = "task-1") -> Json:
        """The result of the call that ran the sub-agents."""
        result: Json = self.event("tool_execution_end", toolCallId=call_id)["result"]
        return result

    def assert_all_well_formed(self) -> None:
        """The events of the session and of each child are in order, and each child's run is closed."""
        assert_well_formed(self.notifications())
        for session_id in self.children():
            events = self.events_of(session_id)
            assert_well_formed(events)
            kinds = [params["event"]["type"] for params in events]
            assert kinds.count("agent_start") == kinds.count("agent_end") == 1

    def assert_children_lie_inside_their_call(self) -> None:
        """Everything of the children comes between start and end of the call that runs them."""
        ids = {self.id, *self.children()}
        marks = [
            (params["sessionId"], params["event"]["type"])
            for message in list(self.daemon.messages)
            if message.get("method") == "agentd/event" and (params := message["params"])["sessionId"] in ids
        ]
        start = marks.index((self.id, "tool_execution_start"))
        end = marks.index((self.id, "tool_execution_end"))
        places = [number for number, (session_id, _) in enumerate(marks) if session_id != self.id]
        assert all(start < place < end for place in places)


class Writers(Parent):
    """A parent of sub-agents that work in files."""

    def ask(self, what: str, **params: object) -> Json:
        """A request `agentd/session/<what>` about the session."""
        answer: Json = self.daemon.call(f"agentd/session/{what}", {"sessionId": self.id, **params})
        return answer

    def files(self) -> dict[str, str]:
        """The files of the workspace, by name, with their content."""
        return {path.name: path.read_text() for path in sorted(self.root.iterdir()) if path.is_file()}

    def names_changed(self) -> dict[str, str]:
        """What `files_changed` of the parent tells, by name."""
        return told(self.event("files_changed"))


def steps(*calls: Json) -> list[Json]:
    """What a sub-agent answers that makes these calls, each in a turn of its own, and is done."""
    return [*(reply(call) for call in calls), reply("ok")]
