"""Commits: `landlane commit` of one file in a large repository, against `git add` and `git commit` of it."""

from __future__ import annotations

import subprocess
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.fresh import install, make_repository, plain_environment
from bench.places import quickest_place, scratch
from bench.table import Row, Skipped, at_most
from bench.timing import cpu_of_child, medians

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes

_FOLDERS = 100
IDENTITY = {
    "GIT_AUTHOR_NAME": "Bench",
    "GIT_AUTHOR_EMAIL": "bench@example.invalid",
    "GIT_COMMITTER_NAME": "Bench",
    "GIT_COMMITTER_EMAIL": "bench@example.invalid",
    "GIT_CONFIG_COUNT": "1",  # no clean-up in the middle of a measurement
    "GIT_CONFIG_KEY_0": "gc.auto",
    "GIT_CONFIG_VALUE_0": "0",
}


def bench_commit(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The CPU time of a commit with all programs it starts, each side in a repository of its own."""
    place = quickest_place()
    with scratch(place) as folder:
        _, script = install(Path(folder, "environment"))
        environment = plain_environment() | IDENTITY
        ours, peer = (
            repository_with(Path(folder, name), sizes.commit_files, environment) for name in ("ours", "peer")
        )
        path = lots.choice(_paths(sizes.commit_files))
        cpu_of_child([script, "claim", path], environment, folder=ours)
        plain = f"git add {path} && git commit --quiet -m Work {path}"
        candidates = {
            "ours": one_more_commit(ours, path, [script, "commit", "-m", "Work", path], environment),
            "peer": one_more_commit(peer, path, ["/bin/sh", "-c", plain], environment),
        }
        found = medians(candidates, sizes.process_rounds, lots, warm=2)
    what = f"CPU of `landlane commit`, {sizes.commit_files:,} files, {place}, against `git add && git commit`"
    yield Row(what=what, unit="ms", ours=found["ours"], peer=found["peer"], aim=at_most(6))


def _paths(files: int) -> list[str]:
    return [f"d{number % _FOLDERS:02}/f{number}.txt" for number in range(files)]


def repository_with(folder: Path, files: int, environment: dict[str, str]) -> str:
    """A repository with so many files in one commit."""
    repository = make_repository(folder)
    for path in _paths(files):
        file = folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{path}\n" * 10, encoding="utf-8")
    for words in (["add", "--all"], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=repository, check=True, env=environment, timeout=300)
    return repository


def one_more_commit(
    repository: str, path: str, command: list[str], environment: dict[str, str]
) -> Callable[[], float]:
    """Return the CPU time of a command that commits a file, which is changed before each run."""
    numbers = count()

    def measure() -> float:
        Path(repository, path).write_text(f"change {next(numbers)}\n", encoding="utf-8")
        return cpu_of_child(command, environment, folder=repository)

    return measure
