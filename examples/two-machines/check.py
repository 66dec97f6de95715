"""Proves what the README says, from the remote and from the journal that both machines share."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def asked(machine: str, *words: str) -> dict[str, Any]:
    """What Landlane answers on a machine."""
    return json.loads(subprocess.check_output(["landlane", *words, "--json"], cwd=machine))


# Both see the same tasks, and all of them are done.
tasks = asked("north", "task", "list", "--all")["tasks"]
assert tasks == asked("south", "task", "list", "--all")["tasks"]
assert {one["state"] for one in tasks} == {"done"}, tasks

# Each watch is on the remote once.
for task in tasks:
    words = ["git", "log", "--no-merges", "--format=%h", "main", "--", task["paths"][0]]
    commits = subprocess.check_output(words, cwd="remote.git", text=True).split()
    assert len(commits) == 1, (task, commits)
print(f"{len(tasks)} tasks, {len(tasks)} commits on the remote")

# The long watch was the south's first; the north has kept it, and what the south still said came too late.
kept = subprocess.check_output(["git", "show", "main:log/long.txt"], cwd="remote.git", text=True).strip()
assert kept == "The long watch, kept by north", kept
entries = asked("north", "log")["entries"]
attempts = [one["data"]["attempt"] for one in entries if one["kind"] == "attempt.ended"]
lost = [one["attempt"] for one in attempts if one["task"] == "T5" and one["outcome"] == "lost"]
assert lost[:1] == [1], attempts
tokens = [
    one["data"]["token"]
    for one in entries
    if one["kind"] == "claim.taken" and one["data"]["pattern"] == "log/long.txt"
]
assert tokens == sorted(tokens), tokens
print(f"{kept}; what the south still wanted to say came too late")
for machine in ("north", "south"):
    assert asked(machine, "claims")["claims"] == []
    assert asked(machine, "workspace", "list")["workspaces"] == []
print("nothing is held, no workspace is left")
