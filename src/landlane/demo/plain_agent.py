"""An agent of the demo without Landlane: does its assigned tasks one after the other, and commits each.

In the naive mode, all agents share one checkout and commit whatever is there. With worktrees, each agent has
a checkout and does every task on a separate branch.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from landlane.demo.sample_project import TARGET
from landlane.demo.task_actions import DemoWorker, TaskFailed, do_task
from landlane.git.run import run_git
from landlane.processes.child import Child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAIVE, WORKTREES = "naive", "worktrees"
READY, GO = ".ready", "go"
_START_POLL_SECONDS = 0.005
_GIT_TRIES = 100
_GIT_PAUSE_SECONDS = 0.05
_TASK_TRIES = 3  # a failed attempt may succeed the next time
_LIMIT_SECONDS = 60.0


def main(order_file: str) -> None:
    """Do the assigned tasks."""
    with open(order_file, encoding="utf-8") as file:
        order: dict[str, Any] = json.load(file)
    _wait_for_others(order_file)
    for task in order["tasks"]:
        if order["way"] == WORKTREES:
            _git(order["folder"], "switch", "--quiet", "--create", f"task/{task['id']}", TARGET)
        if not _do(order, task):
            continue
        _commit(order["folder"], f"{task['title']} ({task['id']})")
        _finish(order, task)


def _wait_for_others(order_file: str) -> None:
    """Wait for the common start, so that all agents begin at once."""
    with open(f"{order_file}{READY}", "w", encoding="utf-8"):
        pass
    go = os.path.join(os.path.dirname(order_file), GO)
    deadline = time.monotonic() + _LIMIT_SECONDS
    while not os.path.exists(go) and time.monotonic() < deadline:
        time.sleep(_START_POLL_SECONDS)


def _do(order: dict[str, Any], task: dict[str, Any]) -> bool:
    """Do one task; return whether it was done."""
    if task["agent"] == "shell":
        words = ["sh", "tools/notes.sh", "do", task["key"], str(task["think"])]
        return Child(words, cwd=order["folder"]).wait(_LIMIT_SECONDS).exit_code == 0
    for _ in range(_TASK_TRIES):
        try:
            do_task(task["key"], task["paths"], DemoWorker(order["folder"], task["think"]))
        except TaskFailed:
            continue
        return True
    return False


def _commit(folder: str, message: str) -> None:
    """Commit everything in the checkout, including unfinished work of others."""
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "-m", message, "--allow-empty")


def _git(folder: str, *words: str) -> None:
    """Run git; retry while another process locks the index."""
    for _ in range(_GIT_TRIES):
        if not run_git(*words, cwd=folder).exit_code:
            return
        time.sleep(_GIT_PAUSE_SECONDS)
    raise SystemExit(f"git {words[0]} did not work")


def _finish(order: dict[str, Any], task: dict[str, Any]) -> None:
    with open(order["log"], "a", encoding="utf-8") as file:
        file.write(f"{time.time_ns() // 1_000_000} {task['id']} {order['name']}\n")


def exit_on_sigterm() -> None:
    """Raise an exception on SIGTERM, so that child processes are ended."""

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, stop)


if __name__ == "__main__":
    exit_on_sigterm()
    main(sys.argv[1])
