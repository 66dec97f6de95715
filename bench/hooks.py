"""Hooks of a coding client: the edit of a file that the session holds, and the first edit, which takes it."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.filling import fill
from bench.fresh import install, make_repository, plain_environment
from bench.places import quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_child, medians
from landlane.app.open import open_repository

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped

_BEFORE, _AFTER = "PreToolUse", "PostToolUse"
_CONTENT = "x = 1\n" * 40


class _World:
    """A repository with live claims of many others, and one session of a client in it."""

    def __init__(self, folder: str, claims: int) -> None:
        self.python, _ = install(Path(folder, "environment"))
        places = {"base": f"{folder}/environment", "platbase": f"{folder}/environment"}
        site_packages = sysconfig.get_path("purelib", "venv", vars=places)
        self.bare = [self.python, "-I", "-S"]
        self.hook = [
            *self.bare,
            str(Path(site_packages, "landlane", "hook_entry", "client_hook.py")),
            "claude",
        ]
        self.root = make_repository(Path(folder, "repository"))
        self.environment = {key: text for key, text in plain_environment().items() if key != "LANDLANE_AGENT"}
        self._payloads = Path(folder)
        self._numbers = count()
        repo = open_repository(self.root)
        fill(repo.store, claims)  # pyright: ignore[reportArgumentType] - SQLite, as nothing else was said
        repo.close()

    def file(self) -> str:
        """A new file of the repository."""
        path = Path(self.root, f"own/file{next(self._numbers)}.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(_CONTENT, encoding="utf-8")
        return str(path)

    def payload(self, event: str, tool: str, path: str) -> str:
        """Write a file with the input that the client sends to its hook."""
        given = {"file_path": path, "old_string": "x = 1", "new_string": "x = 2"}
        document = {"session_id": "0123abcd", "cwd": self.root, "hook_event_name": event, "tool_name": tool}
        target = self._payloads / f"payload{next(self._numbers)}.json"
        target.write_text(
            json.dumps({**document, "tool_input": given, "tool_use_id": "t1"}), encoding="utf-8"
        )
        return str(target)

    def call(self, payload: str) -> float:
        """The CPU time of one call of the hook."""
        return cpu_of_child(self.hook, self.environment, self.root, given=payload)

    def settle(self, path: str) -> None:
        """Let the session hold a file, and have seen it."""
        for event in (_BEFORE, _AFTER):
            self.call(self.payload(event, "Edit", path))

    def answer(self, payload: str) -> str:
        """Return the output of the hook, to check that it answered the intended request."""
        with open(payload, "rb") as given:
            done = subprocess.run(
                self.hook,
                stdin=given,
                capture_output=True,
                env=self.environment,
                cwd=self.root,
                timeout=60,
                check=False,
            )
        return done.stdout.decode() + done.stderr.decode()


def bench_lean(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of hooks that take the quick road, against a Python that does nothing."""
    with scratch(quickest_place()) as folder:
        world = _World(folder, sizes.lean_claims)
        path = world.file()
        world.settle(path)
        asked = {
            "before an edit of what it holds": world.payload(_BEFORE, "Edit", path),
            "after that edit": world.payload(_AFTER, "Edit", path),
            "before a read": world.payload(_BEFORE, "Read", path),
        }
        for payload in asked.values():
            if said := world.answer(payload):
                raise RuntimeError(f"the hook was not silent: {said}")
        candidates = {name: lambda payload=payload: world.call(payload) for name, payload in asked.items()}
        candidates["pass"] = lambda: cpu_of_child([*world.bare, "-c", "pass"], world.environment, world.root)
        found = medians(candidates, sizes.process_rounds, lots, warm=3)
    for name in asked:
        what = f"CPU of a hook {name}, against `python -I -S -c pass`"
        yield Row(what=what, unit="ms", ours=found[name], peer=found["pass"], aim=at_most(1.3))


def bench_first_edit(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of the hook before the first edit of a file, against `landlane claim` of such a file."""
    with scratch(quickest_place()) as folder:
        world = _World(folder, sizes.lean_claims)
        world.settle(world.file())
        command = [world.python, "-m", "landlane", "claim"]
        candidates = {
            "hook": lambda: world.call(world.payload(_BEFORE, "Edit", world.file())),
            "claim": lambda: cpu_of_child([*command, world.file()], world.environment, world.root),
            "pass": lambda: cpu_of_child([*world.bare, "-c", "pass"], world.environment, world.root),
        }
        found = medians(candidates, sizes.process_rounds, lots, warm=3)
    first = "CPU of the hook before a first edit, which takes the claim, against"
    yield Row(what=f"{first} `python -I -S -c pass`", unit="ms", ours=found["hook"], peer=found["pass"])
    claim = found["claim"]
    yield Row(what=f"{first} `landlane claim`", unit="ms", ours=found["hook"], peer=claim, aim=at_most(1.5))
