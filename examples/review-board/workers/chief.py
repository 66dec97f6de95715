"""Decides when the board disagrees: what two have found for themselves weighs more than praise."""

from __future__ import annotations

import json
import subprocess

from landlane.worker import Work, WorkComplete, serve


def decide(work: Work) -> WorkComplete:
    """Read what all have said, and give the verdict that counts."""
    name = (work.assignment.body or "").split("landlane review give ")[1].split()[0]
    shown = json.loads(subprocess.check_output(["landlane", "review", "show", name, "--json"]))
    grave = [one for one in shown["review"]["findings"] if one["severity"] in ("blocker", "major")]
    found_twice = [one for one in grave if len(one["by"]) > 1]
    verdict = "reject" if found_twice else "approve"
    return work.complete(f"{len(found_twice)} found by more than one of you", verdict=verdict)


if __name__ == "__main__":
    serve(decide)
