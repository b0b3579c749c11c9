"""Whether what agentd sends is ACP: every message held against the models of the SDK, which are made from the
protocol's own schema. The SDK passes over what it cannot read, so what it read has to be all that there was.
"""

from typing import Any

from acp import schema
from pydantic import BaseModel, TypeAdapter

Json = dict[str, Any]

RESULTS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
    "session/prompt": schema.PromptResponse,
}
ASKED: dict[str, Any] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
    "$/cancel_request": schema.CancelRequestNotification,
}
OWN = ("_session/steering",)
"""Extensions, of which the schema knows nothing."""


def check(messages: list[Json], methods: dict[Any, str]) -> None:
    """Hold all that was sent against the schema. `methods` are those of the client's requests, by id."""
    for message in messages:
        assert message.pop("jsonrpc") == "2.0"
        if "method" in message:
            assert message.keys() <= {"id", "method", "params"}, message
            assert message["method"] in ASKED, message
            _check(ASKED[message["method"]], message["params"])
        elif "error" in message:
            assert message.keys() == {"id", "error"}, message
            _check(schema.Error, message["error"])
        else:
            assert message.keys() == {"id", "result"}, message
            method = methods[message["id"]]
            if method not in OWN:
                _check(RESULTS[method], message["result"])


def _check(model: Any, value: Any) -> None:
    read = TypeAdapter(model).validate_python(value)
    assert _said(read.model_dump(mode="json", by_alias=True, exclude_unset=True)) == _said(value), value


def _said(value: Any) -> Any:
    """A value without what is null: that is as if it were not there."""
    if isinstance(value, dict):
        return {key: _said(each) for key, each in value.items() if each is not None}
    return [_said(each) for each in value] if isinstance(value, list) else value
