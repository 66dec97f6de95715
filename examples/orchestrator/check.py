"""Proves what the README says, from git and from the journal."""

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


tasks = {one["title"]: one for one in asked("task", "list", "--all")["tasks"]}
assert {one["state"] for one in tasks.values()} == {"done"}, tasks

# Each landing is one merge. What it brought stays within the role of its agent.
for merge in said("git", "rev-list", "--reverse", "--merges", "--first-parent", "main").split():
    branch = said("git", "show", "-s", "--format=%s", merge).split()[1].rstrip(":")
    role = next(one["role"] for one in tasks.values() if one["branch"] == branch)
    paths = said("git", "diff", "--name-only", f"{merge}^1", merge).split()
    assert all(path.startswith("tests/") == (role == "test") for path in paths), paths
    print(f"{role} changed {', '.join(paths)}")

# The coder's first attempt was refused, and nothing of it is in any commit.
(refused,) = [one for one in asked("log")["entries"] if one["kind"] == "task.failed"]
assert "ROLE_FORBIDS" in json.dumps(refused), refused
assert "obviously right" not in said("git", "log", "--all", "--patch", "--", "tests")
print("refused once: the role code may not change tests")

# The verdict is about exactly what is on main.
verdict = tasks["Verify what has landed"]["result"]
assert verdict.startswith(f"approved at {said('git', 'rev-parse', 'main')[:12]}"), verdict
print(f"verify {verdict}")
