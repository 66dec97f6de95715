"""Writes the draft of a day from what was collected for it; `--check` verifies that drafts are complete."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from landlane.worker import Work, WorkComplete, serve

LAST_LINE = "-- the harbour master"


def draft(work: Work) -> WorkComplete:
    """Hand the draft back; it is committed and landed for us."""
    asked = work.assignment
    path = asked.paths[0]
    day = Path(path).stem
    if asked.attempt == 1 and state("thinks-long-about") == day:
        time.sleep(600)  # time enough to pull the plug
    lines = [f"# Letter of {day}", "", *str(state(f"material/{day}")).splitlines(), "", LAST_LINE]
    target = Path(asked.scratch or "", path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return work.complete(f"a draft of {len(lines)} lines", files=[path])


def state(key: str) -> object:
    """What stands under a key of the shared state; nothing when there is no such key."""
    done = subprocess.run(["landlane", "state", "get", key, "--json"], stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout).get("value")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        broken = [path for path in Path("drafts").glob("*.md") if LAST_LINE not in path.read_text("utf-8")]
        sys.exit(f"incomplete: {broken}" if broken else 0)
    serve(draft)
