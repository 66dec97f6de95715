"""The scripted person of the demo: reads the inbox and answers at a terminal of their own.

Only a person at a terminal can answer a gate, so this script uses a pseudo terminal and types the same
commands as a person would. Input and output are kept in a log.
"""

from __future__ import annotations

import json
import os
import pty
import select
import sys
import time
from collections import Counter

from landlane.demo.plain_agent import exit_on_sigterm
from landlane.demo.scratch import now_ms
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIMIT_SECONDS = 60.0
_POLL_SECONDS = 1.5  # between two checks of the inbox
_MOST_RETRIES = 2  # of one task
_ANSWERS = {
    "exchange-rates": "the rates moved: take rates/mirror-2.txt",
    "": "I have looked at it",
}
_NO_MORE_RETRIES = "another attempt would fail like those before"


def main(root: str, log: str, keys_file: str) -> None:
    """Check the inbox periodically and answer its items, until SIGTERM."""
    with open(keys_file, encoding="utf-8") as file:
        keys: dict[str, str] = json.load(file)
    person = Person(root, log)
    retries: Counter[str] = Counter()  # questions for another round of attempts, by task
    demo = os.getppid()
    while os.getppid() == demo:  # if the demo was killed, no SIGTERM comes
        for gate in person.inbox():
            key = keys.get(str(gate.get("title") or ""), "")
            person.type("gate", *answer_to(gate, _ANSWERS.get(key, _ANSWERS[""]), retries))
        time.sleep(_POLL_SECONDS)


def answer_to(gate: dict[str, Any], why: str, retries: Counter[str]) -> list[str]:
    """Return the words that answer a gate: approve it, but do not retry the same task for ever."""
    if gate["id"].startswith("L"):
        return ["approve", gate["id"]]
    about: dict[str, Any] = gate.get("about") or {}
    task = about.get("retries")
    if task:
        retries[task] += 1
        if retries[task] > _MOST_RETRIES:
            return ["reject", gate["id"], "--why", _NO_MORE_RETRIES]
    return ["approve", gate["id"], "--why", why]


class Person:
    """A person at a terminal in a folder."""

    def __init__(self, root: str, log: str, environment: dict[str, str] | None = None) -> None:
        self._root = root
        self._log = log
        self._environment = environment or {}

    def inbox(self) -> list[dict[str, Any]]:
        """Return the inbox items, each with the title of its task."""
        code, text = self._run("gate", "list", "--json")
        if code:
            return []
        try:
            gates = json.loads(text[text.index("{") :])["gates"]
        except ValueError:
            return []
        return [{**gate, "title": self._title(str(gate.get("task") or ""))} for gate in gates]

    def _title(self, task: str) -> str:
        code, text = self._run("task", "show", task, "--json") if task else (1, "")
        return "" if code else str(json.loads(text[text.index("{") :])["task"]["title"])

    def type(self, *words: str) -> int:
        """Type a command and log its output; return its exit code."""
        code, text = self._run(*words)
        with open(self._log, "a", encoding="utf-8") as file:
            file.write(f"{now_ms()} $ landlane {' '.join(words)}\n{text}exit {code}\n")
        return code

    def _run(self, *words: str) -> tuple[int, str]:
        leader, follower = pty.openpty()
        try:
            child = Child(
                [sys.executable, "-P", "-m", "landlane", *words],
                cwd=self._root,
                environment=self._environment,
                streams=(follower, follower, follower),
            )
            output = bytearray()
            result = child.wait(_LIMIT_SECONDS, on_tick=lambda: _read_terminal(leader, output))
            _read_terminal(leader, output)
        finally:
            os.close(follower)
            os.close(leader)
        return result.exit_code, output.decode("utf-8", "replace").replace("\r\n", "\n")


def _read_terminal(leader: int, output: bytearray) -> None:
    """Read the output on the terminal."""
    while select.select([leader], [], [], 0)[0]:
        data = os.read(leader, 65_536)
        if not data:
            return
        output += data


if __name__ == "__main__":
    exit_on_sigterm()
    main(*sys.argv[1:4])
