"""Puts what the task's description says at the end of a package's module, and commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

from landlane.worker import Work, WorkComplete, serve


def write(work: Work) -> WorkComplete:
    """Write and commit."""
    asked = work.assignment
    folder = Path(asked.folder)
    path = folder / asked.paths[0].replace("**", "main.py")
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\n{(asked.body or '').strip()}\n")
    return commit(work, folder)


def commit(work: Work, folder: Path) -> WorkComplete:
    """Commit all there is, and say so."""
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    subprocess.run(["git", "commit", "--quiet", "-m", work.assignment.title], cwd=folder, check=True)
    head = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=folder, text=True).strip()
    return work.complete(work.assignment.title, commit=head)


if __name__ == "__main__":
    serve(write)
