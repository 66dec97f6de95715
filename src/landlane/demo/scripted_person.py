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

from landlane.demo.plain_agent import exit_on_sigterm
from landlane.demo.scratch import now_ms
from landlane.processes.child import Child

_LIMIT_SECONDS = 60.0
_POLL_SECONDS = 1.5  # between two checks of the inbox
_ANSWERS = {
    "exchange-rates": "the rates moved: take rates/mirror-2.txt",
    "": "I have looked at it",
}


def main(root: str, log: str, keys_file: str) -> None:
    """Check the inbox periodically and answer its items, until SIGTERM."""
    with open(keys_file, encoding="utf-8") as file:
        keys: dict[str, str] = json.load(file)
    person = Person(root, log)
    demo = os.getppid()
    while os.getppid() == demo:  # if the demo was killed, no SIGTERM comes
        for gate in person.inbox():
            key = keys.get(str(gate.get("title") or ""), "")
            why = _ANSWERS.get(key, _ANSWERS[""])
            words = ["gate", "approve", str(gate["id"])]
            person.type(*words, *([] if str(gate["id"]).startswith("L") else ["--why", why]))
        time.sleep(_POLL_SECONDS)


class Person:
    """A person at a terminal in a folder."""

    def __init__(self, root: str, log: str, environment: dict[str, str] | None = None) -> None:
        self._root = root
        self._log = log
        self._environment = environment or {}

    def inbox(self) -> list[dict[str, object]]:
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
