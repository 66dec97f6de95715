"""A shell call of a coding client in a large tree: both hooks around it, against `git status` there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fresh import install, make_repository, plain_environment
from bench.places import quickest_place, scratch
from bench.table import Row, at_most
from bench.timing import cpu_of_child, medians
from landlane.app.open import open_repository
from landlane.claims.take import make_request, take
from landlane.sessions.join import join

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from bench.sizes import Sizes
    from bench.table import Skipped

_FOLDERS = 100
_HELD = "d00/f0.txt"
_COMMAND = "make"
_HOLDER_LEASE_MS = 3_600_000


class _World:
    """A large repository in which another session holds a file, and a client's session with a shell."""

    def __init__(self, folder: str, files: int) -> None:
        python, _ = install(Path(folder, "environment"))
        places = {"base": f"{folder}/environment", "platbase": f"{folder}/environment"}
        site_packages = sysconfig.get_path("purelib", "venv", vars=places)
        self._hook = [
            python,
            "-I",
            "-S",
            str(Path(site_packages, "landlane", "hook_entry", "client_hook.py")),
            "claude",
        ]
        self._git = shutil.which("git") or "git"
        self.environment = {key: text for key, text in plain_environment().items() if key != "LANDLANE_AGENT"}
        self.root = self._fill(Path(folder, "repository"), files)
        self._payloads = Path(folder)
        self._numbers = count()
        self._wall: dict[str, float] = {}
        repo = open_repository(self.root)
        session = join(repo, "holder").session
        pattern = repo.git.pattern_of(_HELD, "literal")
        take(
            repo,
            session,
            make_request(repo, (pattern,), ttl_ms=min(_HOLDER_LEASE_MS, repo.settings.claims.max_ttl_ms)),
        )
        repo.close()

    def _fill(self, folder: Path, files: int) -> str:
        repository = make_repository(folder)
        for number in range(files):
            file = folder / f"d{number % _FOLDERS:02}" / f"f{number}.txt"
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{number}\n" * 10, encoding="utf-8")
        for words in (["add", "--all"], ["commit", "--quiet", "-m", "Begin"]):
            identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.invalid", "-c", "gc.auto=0"]
            subprocess.run(
                ["git", *identity, *words], cwd=repository, check=True, env=self.environment, timeout=600
            )
        return repository

    def _call(self, event: str, call: str) -> float:
        document = {
            "session_id": "0123abcd",
            "cwd": self.root,
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": _COMMAND},
            "tool_use_id": call,
        }
        target = self._payloads / "payload.json"
        target.write_text(json.dumps(document), encoding="utf-8")
        return cpu_of_child(self._hook, self.environment, self.root, given=str(target))

    def shell(self) -> tuple[float, float]:
        """CPU and wall time in milliseconds of both hooks around a command that changes one file."""
        number = next(self._numbers)
        started = time.perf_counter()
        cpu = self._call("PreToolUse", f"c{number}")
        wall = time.perf_counter() - started
        Path(self.root, "d01", "own.txt").write_text(f"{number}\n", encoding="utf-8")
        started = time.perf_counter()
        cpu += self._call("PostToolUse", f"c{number}")
        return cpu, (wall + time.perf_counter() - started) * 1e3

    def status(self) -> tuple[float, float]:
        """CPU and wall time in milliseconds of `git status`."""
        started = time.perf_counter()
        cpu = cpu_of_child([self._git, "status", "--porcelain"], self.environment, self.root)
        return cpu, (time.perf_counter() - started) * 1e3


def bench_shell(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The hooks before and after one shell call together, with another session live in the same checkout."""
    place = quickest_place()
    walls: dict[str, list[float]] = {"ours": [], "peer": []}
    with scratch(place) as folder:
        world = _World(folder, sizes.shell_files)

        def ours() -> float:
            cpu, wall = world.shell()
            walls["ours"].append(wall)
            return cpu

        def peer() -> float:
            cpu, wall = world.status()
            walls["peer"].append(wall)
            return cpu

        rounds = sizes.shell_rounds
        found = medians({"ours": ours, "peer": peer}, rounds, lots, warm=2)
    what = f"of both hooks around a shell call, {sizes.shell_files:,} files, {place}, against `git status`"
    yield Row(what=f"CPU {what}", unit="ms", ours=found["ours"], peer=found["peer"], aim=at_most(4))
    yield Row(
        what=f"time {what}",
        unit="ms",
        ours=_median(walls["ours"][-rounds:]),
        peer=_median(walls["peer"][-rounds:]),
    )


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
