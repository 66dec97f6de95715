"""What tests of `landlane exec` share: backends of this machine, a repository, and its resident."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from landlane.resident.messages import AnswerLost, BadMessage, find_socket, pack_request, send_request
from landlane.sandbox.landlock import kernel_abi
from landlane.sandbox.model import BackendKind
from landlane.testing.repositories import make_repository
from tests.support.shell import CommandResult, Shell
from tests.support.tools import find_tool

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "/nowhere/bwrap"
LEAST_ABI = 3
AGENT = (Path(__file__).parent / "rogue_agent.py").read_text(encoding="utf-8")
FILES = {
    "src/app.py": "x = 1\n",
    "tests/test_app.py": "def test_it():\n    assert True\n",
    "docs/guide.md": "# Guide\n",
    "CHANGELOG.md": "# Changes\n",
    "AGENTS.md": "# Rules\n",
    "tools/rogue.py": AGENT,
    "landlane.toml": "[landing]\nchecks = []\nresident = false\n[claims]\nfree = []\n",
}


def program_for(backend: str) -> str:
    """What LANDLANE_BWRAP must name to have this backend, or the end of the test in a visible skip."""
    if backend == BackendKind.LANDLOCK:
        if kernel_abi() < LEAST_ABI:
            pytest.skip("no Landlock in this kernel")
        return NOWHERE
    found = find_tool("bubblewrap")
    if not found:
        pytest.skip("no bubblewrap: `scripts/tools.sh` unpacks it")
    tried = subprocess.run([found, "--ro-bind", "/", "/", "--unshare-user", "true"], check=False, timeout=30)
    if tried.returncode:
        pytest.skip("no user namespaces for bubblewrap")
    return found


class ExecTestbed:
    """A repository in which commands run in sandboxes, as `lead` starts them."""

    def __init__(self, root: Path, backend: str) -> None:
        self.repository = make_repository(root / "shop", files=FILES)
        self.backend = backend
        self.shell = Shell(
            self.repository, {"LANDLANE_BWRAP": program_for(backend), "LANDLANE_AGENT": "lead"}
        )

    @property
    def state(self) -> Path:
        return self.repository / ".git" / "landlane"

    def execute(
        self, role: str, *words: str, options: tuple[str, ...] = (), limit: float = 60.0
    ) -> CommandResult:
        """Run a command in its sandbox."""
        return self.shell.run("exec", "--role", role, *options, "--", *words, limit_seconds=limit)

    def script(self, role: str, text: str, *options: str) -> CommandResult:
        """Run lines of shell in a sandbox; the first that fails ends them."""
        return self.execute(role, "sh", "-ec", text, options=options)

    def answer(self, role: str, *words: str, options: tuple[str, ...] = ()) -> dict[str, Any]:
        """The JSON answer."""
        ended = self.shell.run("exec", "--json", "--role", role, *options, "--", *words)
        return {"stderr": ended.err, "code of exit": ended.exit, **json.loads(ended.out)}

    def git(self, *words: str) -> str:
        return self.shell.git(*words).strip()

    def resident(self) -> int:
        """The process that serves the state; 0 when none does."""
        try:
            found = send_request(find_socket(str(self.state)), pack_request(b"ping", b"", (), {}, b""), 10.0)
        except (AnswerLost, BadMessage):
            return 0
        return int(found[1]) if found else 0

    def close(self) -> None:
        if pid := self.resident():
            with contextlib.suppress(ProcessLookupError):  # it may have ended since it answered
                os.kill(pid, signal.SIGTERM)

    def left_over(self) -> list[str]:
        """What no run may leave: pins, live sessions other than the caller's, runs that are not over."""
        pins = self.git("for-each-ref", "--format=%(refname)", "refs/landlane/exec").split()
        sessions = [
            one["agent"] for one in self.shell.run_json("status")["sessions"] if one["agent"] != "lead"
        ]
        return [*pins, *sessions, *(run["id"] for run in self.runs() if run["state"] != "ended")]

    def runs(self) -> list[dict[str, Any]]:
        """Every run as the journal tells it last."""
        found: dict[str, dict[str, Any]] = {}
        for entry in self.shell.run_json("log")["entries"]:
            if entry["kind"].startswith("run."):
                found[entry["data"]["run"]["id"]] = entry["data"]["run"]
        return list(found.values())


def living(mark: str) -> list[int]:
    """The processes whose command line has this word."""
    found: list[int] = []
    # Not by Path.glob with two parts, which raises if a process ends meanwhile.
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark.encode() in words and state != "Z":
            found.append(int(entry.name))
    return found
