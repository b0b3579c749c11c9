"""Requests for permissions: answers, and what was allowed for good."""

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import anyio.to_thread

from agentd.config.state_file import StateError
from agentd.daemon.door import Method, Request
from agentd.permissions.patterns import in_words
from agentd.protocol import methods as wire
from agentd.protocol.errors import RpcError
from agentd.server.connection import Connection
from agentd.sessions.house import House
from agentd.sessions.store import Sessions


@dataclass(frozen=True)
class PermissionRequests:
    """What clients ask of permissions."""

    connection: Connection
    house: House
    sessions: Sessions

    def requests(self) -> Mapping[str, Method]:
        """The requests that are served here."""
        return {
            "agentd/permission/respond": Method(wire.PermissionRespondParams, self.respond),
            "agentd/permissions/rules": Method(wire.PermissionRulesParams, self.rules),
            "agentd/permissions/revoke": Method(wire.PermissionRevokeParams, self.revoke),
        }

    async def respond(self, params: wire.PermissionRespondParams, request: Request) -> wire.Empty:
        """An answer to a question from another view than the one that was asked."""
        answer = wire.PermissionAnswer(option_id=params.option_id, feedback=params.feedback)
        if not any(session.respond(params.request_id, answer) for session in self.sessions.opened):
            raise RpcError("permissionClosed", f'The question "{params.request_id}" is not open (any more).')
        return wire.Empty()

    async def rules(self, params: wire.PermissionRulesParams, request: Request) -> wire.PermissionRulesResult:
        """What the user allowed for good in a folder: for its open sessions, in it, and everywhere."""
        root = self.connection.root(params.workspace_uri)
        rules = [
            rule
            for session in self.sessions.opened
            if session.root == root
            for rule in session.rules.of_session
        ]
        if self.house.rules is not None:
            rules += await anyio.to_thread.run_sync(self.house.rules.rules, root)
        return wire.PermissionRulesResult(
            rules=tuple(
                wire.PermissionRule(
                    rule_id=rule.rule_id,
                    scope=rule.scope,
                    tool=rule.tool,
                    pattern=in_words(rule.patterns, rule.tool, root),
                    created_at=rule.created_at,
                )
                for rule in rules
            )
        )

    async def revoke(self, params: wire.PermissionRevokeParams, request: Request) -> wire.Empty:
        """Take a rule back; it covers nothing from the next tool call on."""
        try:
            if any(session.rules.revoke(params.rule_id) for session in self.sessions.opened):
                return wire.Empty()
            store = self.house.rules
            if store is not None and await anyio.to_thread.run_sync(store.revoke, params.rule_id):
                return wire.Empty()
        except StateError as error:
            raise RpcError("storage", str(error)) from error
        raise RpcError(
            "invalidParams",
            f'/ruleId: there is no rule "{params.rule_id}"',
            hint="agentd/permissions/rules tells which there are.",
        )
