"""The plugin for opencode, run by a real JavaScript engine against hooks that fail in every way."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from landlane.clients.opencode.setup import plugin_text

NODE = shutil.which("node")

pytestmark = [pytest.mark.integration, pytest.mark.skipif(NODE is None, reason="no node on this machine")]

# Calls the plugin as opencode does: a tool before and after, in a session that works for another one.
DRIVER = """
import { Landlane } from "./plugin.mjs"
const sessions = { child: { parentID: "middle" }, middle: { parentID: "main" }, main: {} }
const client = { session: { get: async ({ path }) => ({ data: sessions[path.id] }) } }
const hooks = await Landlane({ client, directory: process.cwd() })
const [tool, session] = process.argv.slice(2)
const input = { tool, sessionID: session, callID: "call_1", args: { filePath: "/repo/a.py" } }
const output = { output: "done" }
let error = null
try {
  await hooks["tool.execute.before"](input, { args: input.args })
} catch (problem) {
  error = problem.message
}
await hooks["tool.execute.after"](input, output)
const system = { system: [] }
await hooks["experimental.chat.system.transform"]({ sessionID: session }, system)
const said = { parts: [{ id: "prt_1", type: "text", text: "go" }] }
await hooks["chat.message"]({ sessionID: session }, said)
console.log(JSON.stringify({ error, output: output.output, system: system.system, parts: said.parts.length }))
process.exit(0)
"""

# Writes down what it was told, and tells the name of the event.
ECHO = """
import json, sys
said = json.load(sys.stdin)
with open(sys.argv[1], "a") as log:
    log.write(json.dumps(said) + "\\n")
name = said["hook_event_name"]
is_refused = sys.argv[2] == "deny" and name.endswith("before")
print(json.dumps({"deny": "held by bob"} if is_refused else {"tell": name}))
"""


HANG = [sys.executable, "-c", "import time; time.sleep(30)"]


def drive(folder: Path, hook: list[str], tool: str = "edit", session: str = "main") -> dict[str, Any]:
    # One that hangs is given up however long it was waited for; any other needs time to start.
    text = plugin_text(hook).replace("30_000", "100" if hook is HANG else "1_000")
    (folder / "plugin.mjs").write_text(text)
    (folder / "drive.mjs").write_text(DRIVER)
    line = [str(NODE), "drive.mjs", tool, session]
    ended = subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    assert ended.stderr == ""
    return json.loads(ended.stdout)


def echo(folder: Path, verdict: str = "tell") -> list[str]:
    (folder / "echo.py").write_text(ECHO)
    return [sys.executable, str(folder / "echo.py"), str(folder / "log"), verdict]


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "hook",
    [
        ["/gone/python", "client_hook.py"],
        [sys.executable, "-c", "raise SystemExit(1)"],
        [sys.executable, "-c", "print('hello')"],
        [sys.executable, "-c", "print('[]')"],
        HANG,
        [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    ],
    ids=["gone", "crash", "babble", "list", "hang", "killed"],
)
@pytest.mark.parametrize("tool", ["edit", "bash"])
def test_a_hook_that_fails_refuses(tmp_path: Path, hook: list[str], tool: str) -> None:
    ended = drive(tmp_path, hook, tool)
    assert "Landlane's hook cannot run" in ended["error"]
    assert ended["output"] == "done"


def test_a_refusal_tells_why(tmp_path: Path) -> None:
    assert drive(tmp_path, echo(tmp_path, "deny"))["error"] == "held by bob"


def test_messages_reach_the_result_the_system_prompt_and_the_message(tmp_path: Path) -> None:
    ended = drive(tmp_path, echo(tmp_path))
    assert ended == {
        "error": None,
        "output": "done\n\ntool.execute.before\n\ntool.execute.after",
        "system": ["session.created"],
        "parts": 2,
    }


def test_reading_is_not_held_up(tmp_path: Path) -> None:
    drive(tmp_path, echo(tmp_path), tool="read")
    names = [said["hook_event_name"] for said in log(tmp_path)]
    assert names == ["tool.execute.before", "tool.execute.after", "session.created", "chat.message"]


def test_a_subagent_is_named_below_the_session_at_the_top(tmp_path: Path) -> None:
    drive(tmp_path, echo(tmp_path), session="child")
    assert {(said["session_id"], said["agent_id"]) for said in log(tmp_path)} == {("main", "child")}
