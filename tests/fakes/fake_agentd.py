"""A daemon that plays a part: frames on stdin and stdout, standard library only.

The text of a prompt says what happens: words separated by spaces, played in order; others mean nothing.

    say:TEXT      a text delta (`_` is a space)         call:NAME:CODE  a command with that exit code
    flood:N       N text deltas                         edit:PATH       a tool call that edits a file
    ask:TYPE      a permission question                 retract         a question that is taken back
    unknown       an event type nobody knows            hang            wait for a cancel
    reset         the message starts over               die:CODE        exit at once with last words
    gate          wait until the file FAKE_GATE exists
    garbage       a frame that is no JSON               mute            never answer, not even a cancel
    stop:REASON   the stop reason of the result         refuse:KIND     an error instead of a result

The environment: FAKE_GREETING=die|silent spoils the start, FAKE_STUBBORN=1 ignores shutdown, exit and
SIGTERM, FAKE_LOG names a file that receives each message from the client as a line of JSON.
"""

import json
import os
import queue
import signal
import sys
import threading
import time

TIME = "2026-01-01T00:00:00.000Z"
OUT = os.fdopen(os.dup(1), "wb", buffering=0)
LOG = open(os.environ["FAKE_LOG"], "a", buffering=1) if "FAKE_LOG" in os.environ else None  # noqa: SIM115
STUBBORN = "FAKE_STUBBORN" in os.environ
lock = threading.Lock()
answers: "dict[str, queue.Queue]" = {}
cancelled: "dict[object, threading.Event]" = {}


def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with lock:
        while frame:
            frame = frame[OUT.write(frame) :]


def receive():
    length = None
    while line := sys.stdin.buffer.readline():
        if not line.strip():
            break
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if length is None:
        return None
    return json.loads(sys.stdin.buffer.read(length))


def reply(request_id, result):
    send(id=request_id, result=result)


class Run:
    """One prompt."""

    def __init__(self, request_id, params):
        self.request_id = request_id
        self.prompt_id = params["promptId"]
        self.session_id = params.get("sessionId") or "s1"
        prompt = params["prompt"]
        self.words = (prompt if isinstance(prompt, str) else prompt[0]["text"]).split()
        self.mode = params.get("mode") or "ask"
        self.seq = 0
        self.text = ""
        self.stop = "stop"
        self.calls = 0
        self.error = None
        self.cancelled = cancelled[request_id] = threading.Event()

    def event(self, type, durable=True, in_run=True, **fields):
        params = {"sessionId": self.session_id, "time": TIME, "event": {"type": type, **fields}}
        if in_run:
            params["promptId"] = self.prompt_id
        if durable:
            self.seq += 1
            params["seq"] = self.seq
        send(method="agentd/event", params=params)

    def play(self):
        self.event("session_changed", in_run=False, session=session(self.session_id))
        self.event("agent_start", prompt={"model": "fake/model", "mode": self.mode})
        self.event("turn_start", turn=1)
        self.event("message_start", message={"role": "assistant", "messageId": "m1", "model": "fake/model"})
        for word in self.words:
            name, *arguments = word.split(":")
            if getattr(self, "do_" + name, self.do_anything)(*arguments) is False:
                return
            if self.cancelled.is_set() and self.stop == "stop":
                self.stop = "aborted"
        message = {
            "role": "assistant",
            "messageId": "m1",
            "content": [{"type": "text", "text": self.text}],
            "provider": "fake",
            "model": "model",
            "stopReason": "stop",
            "timestamp": TIME,
        }
        self.event("message_end", message=message)
        self.event("turn_end", turn=1, messageId="m1", stopReason="stop", toolResultIds=[])
        usage = {
            "input": 1200,
            "output": 34,
            "cacheRead": 0,
            "cacheWrite": 0,
            "reasoning": 0,
            "total": 1234,
            "contextTokens": 1234,
        }
        error = {"error": self.error} if self.error else {}
        self.event(
            "agent_end",
            stopReason=self.stop,
            messageId="m1",
            messageIds=["m1"],
            turns=1,
            usage=usage,
            **error,
        )
        reply(
            self.request_id,
            {
                "sessionId": self.session_id,
                "promptId": self.prompt_id,
                "stopReason": self.stop,
                "text": self.text,
                "messageId": "m1",
                "usage": usage,
                "turns": 1,
                "seq": self.seq,
                **error,
            },
        )

    def do_anything(self, *arguments):
        pass

    def do_say(self, *text):
        self._say(":".join(text).replace("_", " ").replace("\\e", "\x1b"))

    def do_flood(self, count):
        for number in range(int(count)):
            self._say(f"{number} ")

    def _say(self, delta):
        update = {"kind": "text", "index": 0, "offset": len(self.text), "delta": delta}
        self.event("message_update", durable=False, messageId="m1", update=update)
        self.text += delta

    def do_call(self, name, code):
        details = {
            "type": "command",
            "exitCode": int(code),
            "durationMs": 5,
            "truncated": False,
            "totalBytes": 3,
        }
        self._tool(name, f"Run \x1b[31m{name}\x1b[m", "execute", details, code != "0")

    def do_edit(self, path):
        details = {
            "type": "edit",
            "files": [
                {"uri": f"file:///w/{path}", "action": "changed", "patch": "", "additions": 3, "deletions": 1}
            ],
        }
        self._tool("edit_file", f"Edit {path}", "edit", details, False)

    def _tool(self, name, title, kind, details, failed):
        self.calls += 1
        call = {"toolCallId": f"c{self.calls}", "toolName": name}
        self.event("tool_execution_start", **call, arguments={}, title=title, kind=kind, locations=[])
        self.event(
            "tool_execution_update",
            durable=False,
            toolCallId=call["toolCallId"],
            update={"channel": "stdout", "offset": 0, "delta": "\x1b]0;evil\x07"},
        )
        result = {
            "role": "tool_result",
            "messageId": f"t{self.calls}",
            **call,
            "isError": failed,
            "content": [{"type": "text", "text": "\x1b[2Jout"}],
            "details": details,
            "timestamp": TIME,
        }
        self.event("tool_execution_end", **call, result=result, durationMs=1234)

    def do_ask(self, kind):
        answer = self._question(kind).get()
        chosen = (answer.get("result") or {}).get("optionId", "none")
        self._say(f"[{chosen}]")
        if feedback := (answer.get("result") or {}).get("feedback"):
            self._say(f"[{feedback}]")
        if "error" in answer:
            self._say(f"[error {answer['error']['code']}]")

    def do_retract(self):
        waiting = self._question("command")
        send(method="$/cancelRequest", params={"id": f"ask-{self.prompt_id}"})
        self._say(f"[{waiting.get()['error']['code']}]")

    def _question(self, kind):
        subject = {
            "command": {"type": "command", "command": "rm -rf \x1b[8mall", "cwd": "/w"},
            "edit": {"type": "edit", "uri": "file:///w/a.py", "patch": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"},
            "fetch": {"type": "fetch", "url": "https://example.test/"},
        }[kind]
        options = [
            {"optionId": "yes", "label": "Allow once", "kind": "allow_once", "scope": "once"},
            {
                "optionId": "always",
                "label": "Always allow",
                "kind": "allow_always",
                "scope": "session",
                "rule": "all",
            },
            {"optionId": "no", "label": "Reject", "kind": "reject_once", "scope": "once"},
        ]
        request_id = f"ask-{self.prompt_id}"
        answers[request_id] = queue.Queue()
        send(
            id=request_id,
            method="agentd/permission/request",
            params={
                "sessionId": self.session_id,
                "promptId": self.prompt_id,
                "requestId": "q1",
                "toolCallId": "c1",
                "toolName": "bash",
                "title": "Run rm",
                "kind": "execute",
                "subject": subject,
                "options": options,
            },
        )
        return answers[request_id]

    def do_unknown(self):
        self.event("weather_changed", sky="blue")

    def do_reset(self):
        self.event("message_reset", messageId="m1")
        self.text = ""

    def do_gate(self):
        while not os.path.exists(os.environ["FAKE_GATE"]):
            time.sleep(0.02)

    def do_hang(self):
        self.cancelled.wait()

    def do_die(self, code):
        print("the fake daemon\nsays goodbye", file=sys.stderr, flush=True)
        os._exit(int(code))

    def do_garbage(self):
        with lock:
            OUT.write(b"Content-Length: 3\r\n\r\n{[}")

    def do_mute(self):
        return False

    def do_stop(self, reason):
        self.stop = reason
        if reason == "error":
            self.error = {"kind": "auth", "message": "The key was refused.", "retryable": False}

    def do_refuse(self, kind):
        error = {
            "code": -32803,
            "message": "It cannot begin.",
            "data": {"kind": kind, "retryable": False, "hint": "Do it otherwise."},
        }
        send(id=self.request_id, error=error)
        return False


def session(session_id):
    return {
        "sessionId": session_id,
        "workspaceUri": "file:///w",
        "title": "A \x1b[31mtitle",
        "model": "fake/model",
        "mode": "ask",
        "state": "idle",
        "createdAt": TIME,
        "updatedAt": TIME,
        "messageCount": 2,
        "seq": 1,
    }


MODEL = {
    "id": "fake/model",
    "provider": "fake",
    "name": "model",
    "contextWindow": 8192,
    "images": False,
    "reasoning": False,
    "efforts": [],
    "available": True,
}
TOOL = {
    "name": "bash",
    "description": "",
    "parameters": {},
    "kind": "execute",
    "source": "builtin",
    "available": True,
}
RULE = {
    "ruleId": "r1",
    "scope": "user",
    "tool": "bash",
    "pattern": "git log with reading options",
    "createdAt": TIME,
}
RESULTS = {
    "agentd/session/new": lambda p: {"session": session("s2")},
    "agentd/session/list": lambda p: {"sessions": [session("s1")]},
    "agentd/session/get": lambda p: {"session": session(p["sessionId"]), "messages": [], "hasMore": False,
                                     "pending": [], "queue": [], "todo": [], "seq": 1},
    "agentd/session/update": lambda p: {"session": {**session(p["sessionId"]), "title": p.get("title", "")}},
    "agentd/session/close": lambda p: {},
    "agentd/status": lambda p: {"version": "0", "uptimeMs": 1, "sessions": [], "problems": []},
    "agentd/models": lambda p: {
        "models": [MODEL, {**MODEL, "id": "fake/far", "available": False, "reason": "no key"}],
        "default": "fake/model"},
    "agentd/tools": lambda p: {"tools": [TOOL]},
    "agentd/schema": lambda p: {"$defs": {}},
    "agentd/credentials/set": lambda p: {},
    "agentd/permission/respond": lambda p: {},
    "agentd/permissions/rules": lambda p: {"rules": [RULE]},
    "agentd/permissions/revoke": lambda p: {},
}  # fmt: skip


def handle(message):  # noqa: PLR0912 - one branch for each method is what it is
    method, request_id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        if request_id in answers:
            answers[request_id].put(message)
    elif method == "initialize":
        if os.environ.get("FAKE_GREETING") == "die":
            print("no room", file=sys.stderr, flush=True)
            os._exit(7)
        reply(request_id, {"capabilities": {}, "serverInfo": {"name": "fake"}})
    elif method == "shutdown" and not STUBBORN:
        reply(request_id, None)
    elif method == "exit" and not STUBBORN:
        os._exit(0)
    elif method == "$/cancelRequest":
        if params["id"] in cancelled:
            cancelled[params["id"]].set()
    elif method == "agentd/cancel":
        for event in cancelled.values():
            event.set()
        reply(request_id, {"state": "cancelled", "quiescent": True})
    elif method == "agentd/prompt":
        run = Run(request_id, params)
        if params.get("wait") == "accepted":
            ids = {"sessionId": run.session_id, "promptId": run.prompt_id}
            reply(request_id, {**ids, "outcome": "started", "seq": 1})
        else:
            threading.Thread(target=run.play, daemon=True).start()
    elif method in RESULTS:
        reply(request_id, RESULTS[method](params))
    elif request_id is not None and not STUBBORN:
        send(
            id=request_id,
            error={"code": -32601, "message": f"No {method}.", "data": {"kind": "methodNotFound"}},
        )


if STUBBORN:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while (message := receive()) is not None or STUBBORN:
    if message is None:
        signal.pause()
    if LOG:
        LOG.write(json.dumps(message) + "\n")
    if os.environ.get("FAKE_GREETING") != "silent":
        handle(message)
