"""Proves what the README says: one draft for each day, whatever happened to the job."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def said(*words: str) -> str:
    """What a command says."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def asked(*words: str) -> dict[str, Any]:
    """What Landlane answers."""
    return json.loads(said("landlane", *words, "--json"))


for task in asked("task", "list", "--all")["tasks"]:
    assert task["state"] == "done", task
    (path,) = task["paths"]
    commits = said("git", "log", "--no-merges", "--format=%h", "main", "--", path).split()
    assert len(commits) == 1, commits
    text = said("git", "show", f"main:{path}")
    assert text.endswith("-- the harbour master"), text
    print(f"{path}: {len(commits)} commit, attempt {task['attempt']}")
collected = [one["data"]["key"] for one in asked("log")["entries"] if one["kind"] == "once.started"]
assert len(collected) == len(set(collected)), collected
assert asked("claims")["claims"] == []
print(f"collected {len(collected)} times, once for each day; nothing is held any more")
