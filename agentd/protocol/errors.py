"""Errors as the wire knows them: section 8 of the protocol. Clients switch on `data.kind`."""

from typing import Any

_CODES = {
    "parse": -32700,
    "request": -32600,
    "methodNotFound": -32601,
    "invalidParams": -32602,
    "internal": -32603,
    "notInitialized": -32002,
    "cancelled": -32800,
}
_FAILED = -32803
"""LSP's RequestFailed: the code of every kind without one of its own."""

KINDS = (
    *_CODES, "sessionNotFound", "promptNotFound", "sessionBusy", "sessionLocked", "queueFull", "noModel",
    "authRequired", "overloaded", "outsideWorkspace", "permissionClosed", "storage", "unsupported",
)  # fmt: skip


class RpcError(Exception):
    """A request that is answered with an error.

    `kind` is one of `KINDS`; `message` names the thing, says why and what to do, and holds no secret, no
    traceback and no path of ours; `details` go into `data` beside kind, retryable and hint.
    """

    def __init__(
        self, kind: str, message: str, *, retryable: bool = False, hint: str | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        assert kind in KINDS, kind
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.hint = hint
        self.details = details

    @property
    def code(self) -> int:
        """The JSON-RPC code of this kind."""
        return _CODES.get(self.kind, _FAILED)

    def to_wire(self) -> dict[str, Any]:
        """The `error` member of a response."""
        data: dict[str, Any] = {"kind": self.kind, "retryable": self.retryable, **self.details}
        if self.hint is not None:
            data["hint"] = self.hint
        return {"code": self.code, "message": self.message, "data": data}

    @classmethod
    def from_wire(cls, error: Any) -> "RpcError":
        """The error that the `error` member of a response tells of, for clients.

        A missing kind, or one of a later protocol, is read from the code; what is no error object at all is
        `internal`.
        """
        fields = error if isinstance(error, dict) else {}
        data = fields.get("data")
        details = dict(data) if isinstance(data, dict) else {}
        kind, hint, retryable = (details.pop(key, None) for key in ("kind", "hint", "retryable"))
        if kind not in KINDS:
            kind = next((name for name, code in _CODES.items() if code == fields.get("code")), "internal")
        told = cls(kind, str(fields.get("message", error)), retryable=retryable is True)
        told.hint = hint if isinstance(hint, str) else None
        told.details = details
        return told
