"""A stand-in for a coding client: a process of its own that calls the hook and types commands, as clients do.

Real clients are run in tests/clients. Here the hook's answers are looked at one by one, and under all
kinds of trouble, which would take real ones too long.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.clients.setup_files import hook_words

if TYPE_CHECKING:
    from collections.abc import Mapping

LANDLANE = str(Path(sys.executable).with_name("landlane"))
LIMIT_SECONDS = 60.0

_BODY = """
import json, subprocess, sys
for line in sys.stdin:
    order = json.loads(line)
    place = {"cwd": order["cwd"], "input": order["given"]}
    done = subprocess.run(order["words"], capture_output=True, text=True, **place)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class HookAnswer:
    """What a hook answered."""

    def __init__(self, exit_code: int, stdout: str, stderr: str) -> None:
        self.exit_code, self.stdout, self.stderr = exit_code, stdout, stderr
        self.answer: dict[str, Any] = json.loads(stdout) if stdout else {}

    @property
    def is_denied(self) -> bool:
        return self.exit_code == 2 or self.answer.get("decision") == "block"

    @property
    def reason(self) -> str:
        return str(self.answer.get("reason", self.stderr))

    @property
    def repo(self) -> str:
        return str(self.answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    @property
    def is_silent(self) -> bool:
        return self.exit_code == 0 and not self.stdout and not self.stderr


class ScriptedClient:
    """A client of Claude Code's kind with one session; `agent` names one of its subagents."""

    _ids = itertools.count(1)

    def __init__(
        self, root: Path | str, session: str = "", environment: Mapping[str, str] | None = None
    ) -> None:
        self.root = str(root)
        self.session = session or f"{next(self._ids):08x}-0000"
        self._calls = itertools.count(1)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BODY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> ScriptedClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the client's process, as a crash would: no hook is told."""
        self._process.kill()
        self._process.communicate()

    def do(self, words: list[str], given: str = "", cwd: str = "") -> tuple[int, str, str]:
        """Run a program as a child of the client."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"words": words, "given": given, "cwd": cwd or self.root}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        code, out, err = json.loads(self._process.stdout.readline())
        return code, out, err

    def type(self, *words: str) -> dict[str, Any]:
        """Type a `landlane` command in the client's shell; its JSON answer."""
        _, out, err = self.do([LANDLANE, *words, "--json"])
        assert out, err
        return json.loads(out)

    def hook(self, event: str, agent: str = "", **more: Any) -> HookAnswer:
        """Call the hook with an event."""
        payload = {"session_id": self.session, "cwd": self.root, "hook_event_name": event, **more}
        if agent:
            payload |= {"agent_id": agent, "agent_type": "general-purpose"}
        return HookAnswer(*self.do(hook_words("claude"), json.dumps(payload)))

    def before(self, tool: str, agent: str = "", **given: Any) -> HookAnswer:
        """The hook before a tool."""
        return self._tool("PreToolUse", tool, agent, given)

    def after(self, tool: str, agent: str = "", **given: Any) -> HookAnswer:
        """The hook after a tool."""
        return self._tool("PostToolUse", tool, agent, given)

    def _tool(self, event: str, tool: str, agent: str, given: dict[str, Any]) -> HookAnswer:
        call = f"call{next(self._calls) if event == 'PreToolUse' else 0}"
        return self.hook(event, agent, tool_name=tool, tool_input=given, tool_use_id=call)

    def edit(self, path: str, text: str | None = None, agent: str = "") -> HookAnswer:
        """Try to edit a file; it is changed only if the hook allows it."""
        full = os.path.join(self.root, path)
        shown = self.before("Edit", agent, file_path=full, old_string="a", new_string="b")
        if not shown.is_denied:
            if text is not None:
                Path(full).write_text(text, encoding="utf-8")
            self.after("Edit", agent, file_path=full)
        return shown

    def read(self, path: str, agent: str = "") -> HookAnswer:
        """Read a file with the client's own tool."""
        return self.before("Read", agent, file_path=os.path.join(self.root, path))


def holders(client: ScriptedClient) -> dict[str, str]:
    """Who holds each claimed pattern."""
    return {claim["pattern"]: claim["holder"] for claim in client.type("claims")["claims"]}


def change_store(root: Path, statement: str) -> None:
    """Change the database of a repository as another program would."""
    database = sqlite3.connect(root / ".git/landlane/store.db")
    with database:
        database.execute(statement)
    database.close()
