"""One agent of the demo: changes shared files by reading, thinking and writing back."""

from __future__ import annotations

import json
import os
import random
import sys
import time

from interlock import Interlock
from interlock.domain.claims import Refused
from interlock.errors import InterlockError

_FILES = ("src/registry.txt", "src/routes.txt", "CHANGELOG.md")


def main(way: str, name: str, seed: str, rounds: str) -> dict[str, object]:
    """What this agent did, to be counted."""
    chance = random.Random(int(seed))  # noqa: S311 - a story, not a secret
    if way == "naive":
        for _ in range(int(rounds)):
            _change(chance.choice(_FILES), chance)
        return {"changes": int(rounds), "refusals": 0}
    with Interlock(agent=name) as interlock:
        if way == "sleep":
            return _sleep(interlock)
        return _work(interlock, chance, int(rounds))


def _change(path: str, chance: random.Random) -> None:
    """Read, think, write: what an edit is, and why two at once lose one."""
    with open(path, encoding="utf-8") as file:
        number = int(file.read() or "0")
    time.sleep(chance.uniform(0.001, 0.01))
    scratch = f"{path}.{os.getpid()}"
    with open(scratch, "w", encoding="utf-8") as file:
        file.write(f"{number + 1}\n")
    os.replace(scratch, path)


def _work(interlock: Interlock, chance: random.Random, rounds: int) -> dict[str, object]:
    refusals = 0
    for _ in range(rounds):
        path = chance.choice(_FILES)
        outcome = interlock.claim(path)
        if isinstance(outcome, Refused):
            refusals += 1
            outcome = interlock.claim(path, wait="60s")
        _change(path, chance)
        interlock.release(path)
    return {"changes": rounds, "refusals": refusals}


def _sleep(interlock: Interlock) -> dict[str, object]:
    taken = interlock.claim("src/routes.txt", ttl="2s")
    if isinstance(taken, Refused):
        return {"code": taken.code}
    # Busy until the claim was taken away: while it is stopped, nothing renews it.
    while time.sleep(0.05) is None and interlock.claims("src/routes.txt")[:1] == list(taken.granted)[:1]:
        pass
    try:
        interlock.release("src/routes.txt")
    except InterlockError as error:
        return {"code": error.code}
    return {"code": "WRITTEN"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*sys.argv[1:5])) + "\n")
