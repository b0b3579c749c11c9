"""How JSON-RPC is spoken in ACP."""

from agentd.daemon.door import Dialect

ACP = Dialect(
    cancel="$/cancel_request",
    cancelled_id="requestId",
    begin="initialize",
    codes={
        "notInitialized": -32600,  # -32002 is "resource not found" here
        "sessionNotFound": -32002,
        "authRequired": -32000,
    },
)
