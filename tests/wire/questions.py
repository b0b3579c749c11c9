"""Sessions whose model makes one tool call, and what becomes of the question about it."""

from pathlib import Path

from wire.chat import Chat
from wire.harness import Daemon, Json
from wire.home import Home
from wire.scripts import reply, tool

ASK = "agentd/permission/request"

WRITE = tool("write_file", {"file_path": "new.txt", "content": "new\n"}, "call-1")
COMMAND = tool("bash", {"command": "echo ran > ran.txt"}, "call-1")
READ = tool("read_file", {"file_path": "note.txt"}, "call-1")
READ_SECRET = tool("read_file", {"file_path": ".env"}, "call-1")


def workspace(home: Home) -> Path:
    root = home.workspace(note_txt="a note\n")
    (root / ".env").write_text("TOKEN=hidden-in-env\n")
    return root


def asking(daemon: Daemon, home: Home, call: Json, mode: str = "ask", *more: Json) -> tuple[Chat, int]:
    """A session whose model makes this call, and the id of the prompt that is under way."""
    chat = Chat(daemon, workspace(home), model=home.script(reply(call), *more, reply("done")), mode=mode)
    return chat, chat.start()


def question(chat: Chat, method: str = ASK) -> Json:
    """The daemon's question about this session."""
    return chat.daemon.wait(
        lambda m: m.get("method") == method and "id" in m and m["params"].get("sessionId", chat.id) == chat.id
    )


def option(asked: Json, kind: str) -> str:
    """The id of the option of this kind."""
    found: list[str] = [o["optionId"] for o in asked["params"]["options"] if o["kind"] == kind]
    return found[0]


def tool_result(chat: Chat) -> Json:
    (ended,) = [p["event"] for p in chat.notifications() if p["event"]["type"] == "tool_execution_end"]
    result: Json = ended["result"]
    return result


def said(chat: Chat) -> str:
    return "".join(block["text"] for block in tool_result(chat)["content"])


def resolved(chat: Chat) -> Json:
    (event,) = [p["event"] for p in chat.notifications() if p["event"]["type"] == "permission_resolved"]
    return event


def asked_nothing(chat: Chat) -> bool:
    return not any(p["event"]["type"] == "permission_requested" for p in chat.notifications())


def withdrawn(daemon: Daemon, asked: Json) -> bool:
    """Whether our question was taken back."""
    return any(
        message.get("method") == "$/cancelRequest" and message["params"]["id"] == asked["id"]
        for message in list(daemon.messages)
    )
