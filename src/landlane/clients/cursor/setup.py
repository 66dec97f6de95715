"""Set up Cursor, by its documentation: our hooks in the checkout, and what could stop them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from landlane.clients import setup_checks as checks
from landlane.clients.client_setup import ClientSetup, HookCommand, Run, our_hooks
from landlane.clients.cursor.hook import HOOKS
from landlane.clients.setup_files import ClientEnvironment, SetupProblem

# Every event that Cursor documents. It ignores the file if it does not know one name.
_KNOWN_EVENTS = frozenset(
    (
        *HOOKS.kinds,
        *("subagentStart", "subagentStop", "beforeShellExecution", "afterShellExecution"),
        *("beforeMCPExecution", "afterMCPExecution", "beforeReadFile", "afterFileEdit"),
        *("beforeTabFileRead", "afterTabFileEdit", "afterAgentResponse", "afterAgentThought", "preCompact"),
    )
)


class _CursorSetup(ClientSetup):
    hooks = HOOKS
    path = ".cursor/hooks.json"
    servers_path = ".cursor/mcp.json"

    def hook_table(self, command: HookCommand) -> dict[str, Any]:
        """Return our hooks; the guard is called for every tool, since releases name tools differently."""
        hooks: dict[str, list[dict[str, Any]]] = {}
        for event in HOOKS.kinds:
            is_guard = event == HOOKS.before_tool
            closed = {"failClosed": True} if is_guard else {}
            hooks[event] = [{"command": command(event, is_guard), "timeout": self.timeout, **closed}]
        return {"version": 1, "hooks": hooks}

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        return [env.path(self.path), env.path(f"~/{self.path}"), "/etc/cursor/hooks.json"]

    def more_problems(
        self, env: ClientEnvironment, run: Run, settings: Mapping[str, Any]
    ) -> list[SetupProblem]:
        del env, run
        problems: list[SetupProblem] = []
        if any(
            event == HOOKS.before_tool and hook.get("failClosed") is not True
            for event, _, hook in our_hooks(settings)
        ):
            what = f"{self.path} lets edits pass when our hook fails"
            problems.append(SetupProblem(what=what, hint=checks.RUN_INIT, is_open=False))
        problems += [
            SetupProblem(
                what=f"{self.path} names {name}, which {self.title} may not know and then drops the file",
                hint="take it out, unless your release of Cursor documents it",
            )
            for name in sorted(set(checks.table(settings.get("hooks"))) - _KNOWN_EVENTS)
        ]
        if settings and settings.get("version") != 1:
            problems.append(SetupProblem(what=f"{self.path} is not of version 1", hint='set "version" to 1'))
        return problems


SETUP = _CursorSetup()
