"""Writes the log of a watch. On the machine `south`, the long watch takes very long."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from landlane.worker import Work, WorkComplete, serve


def watch(work: Work) -> WorkComplete:
    """Write down who kept the watch, and commit."""
    asked = work.assignment
    machine = os.environ["MACHINE"]
    if "long" in asked.title and machine == "south":
        work.progress("looking out for long")
        time.sleep(600)
    folder = Path(asked.folder)
    path = folder / asked.paths[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{asked.title}, kept by {machine}\n", encoding="utf-8")
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", asked.title], cwd=folder, check=True)
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    return work.complete(f"kept by {machine}", commit=head)


if __name__ == "__main__":
    serve(watch)
