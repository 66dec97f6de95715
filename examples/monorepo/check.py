"""Proves what the README says: the order of landing from git, and who had what in hand from the journal."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any


def said(*words: str) -> str:
    """What a command says."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def asked(*words: str) -> dict[str, Any]:
    """What Landlane answers."""
    return json.loads(said("landlane", *words, "--json"))


titles = said("git", "log", "--first-parent", "--merges", "--reverse", "--format=%s", "main").splitlines()
order = [line.split(": ", 1)[1] for line in titles]
assert len(order) == 6, order
assert order[0] == "Agree on the event of a paid order", order
print("the contract landed first, then", len(order) - 1, "others")

# One migration at a time: the second was not begun before the first had landed.
tasks = {one["title"]: one["id"] for one in asked("task", "list", "--all")["tasks"]}
first, second = (tasks[title] for title in order if title.startswith("Migrate"))
happened = [(one["kind"], one["data"].get("task")) for one in asked("log")["entries"]]
assert happened.index(("task.done", first)) < happened.index(("task.taken", second))
names = sorted(path.name for path in Path("migrations").iterdir())
assert [name[:4] for name in names] == ["0001", "0002", "0003"], names
print("migrations, one behind the other:", ", ".join(names))

# Each commit on the way was complete: contract, packages and migrations fit together.
for commit in said("git", "rev-list", "--first-parent", "main").split():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.check_call(["sh", "-c", f"git archive {commit} | tar -x -C {folder}"])
        subprocess.check_call(["python", "tools/verify.py"], cwd=folder)
print("every state of main applies its migrations and imports its packages")
