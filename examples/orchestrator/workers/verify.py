"""Reads the landed state, runs its tests and gives a verdict; its role lets it change nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

from landlane.worker import Failure, Work, WorkComplete, serve


def verify(work: Work) -> WorkComplete:
    """Verify that both parts are there and that the tests pass."""
    asked = work.assignment
    folder = Path(asked.folder)
    if "def median" not in (folder / "src" / "figures.py").read_text(encoding="utf-8"):
        raise Failure("there is no median()", retry=False)
    words = ["python", "-B", "-m", "unittest", "discover", "-s", "tests"]
    ran = subprocess.run(words, cwd=folder, check=False, capture_output=True, text=True)
    said = ran.stderr.strip().splitlines()
    if ran.returncode:
        raise Failure(f"rejected: {said[-1]}", retry=False)
    count = next(line for line in said if line.startswith("Ran "))
    return work.complete(
        f"approved at {(asked.base or '')[:12]}: {count.partition(' in ')[0].lower()}, all pass"
    )


if __name__ == "__main__":
    serve(verify)
