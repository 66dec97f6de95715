"""The landing queue: landings a minute beside bare plumbing and a serial queue, and test runs per landing."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from bench.places import DISK, scratch
from bench.table import Row, Skipped, at_least, at_most
from landlane.app.open import open_repository
from landlane.claims.take import make_request, take
from landlane.landing.model import BOUNCED, LANDED
from landlane.landing.queue import QueueRunner, drain_queue, start_runner
from landlane.landing.records import get_queue, list_landings
from landlane.landing.submit import submit_branch
from landlane.sessions.join import join

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from bench.sizes import Sizes
    from landlane.repository import Repository

_ONE_IN = 10
_AUTHOR = "bench <bench@localhost> 1700000000 +0000"


def bench_landings(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """How quickly branches land whose check says nothing, and how often checks run that do."""
    branches, files = sizes.branches, sizes.tree_files
    rates: dict[str, float] = {}
    for name in lots.sample(["ours", "serial", "bare"], 3):
        with scratch(DISK) as folder:
            root = make_repository(folder, files, branches, culprits=[])
            if name == "bare":
                rates[name] = branches / _bare_merges(root, branches) * 60
            else:
                rates[name] = _land_all(root, branches, batch=8 if name == "ours" else 1, check="true")[0]
    yield Row(
        what=f"landings, empty check, {branches} branches, {files:,} files: against bare git plumbing",
        unit="/min",
        ours=rates["ours"],
        peer=rates["bare"],
        aim=at_least(0.6),
    )
    yield Row(what="the same against a serial queue", unit="/min", ours=rates["ours"], peer=rates["serial"])
    for words, every, aim in (
        ("all green", 0, at_most(0.3)),
        (f"one culprit in {_ONE_IN}", _ONE_IN, at_most(0.8)),
    ):
        culprits = lots.sample(range(branches), max(branches // every, 1) if every else 0)
        per_branch: dict[int, float] = {}
        for batch in lots.sample([8, 1], 2):
            with scratch(DISK) as folder:
                root = make_repository(folder, min(files, 500), branches, culprits)
                _, runs, landed = _land_all(root, branches, batch=batch, check="! ls bad-* >/dev/null 2>&1")
                per_branch[batch] = runs / max(landed, 1)
        yield Row(
            what=f"test runs per landed branch, {words}", unit="", ours=per_branch[8], peer=1.0, aim=aim
        )
        yield Row(what="  a serial queue, the same", unit="", ours=per_branch[1], peer=1.0)


def make_repository(folder: str, files: int, branches: int, culprits: Sequence[int]) -> str:
    """A repository with so many files, and branches that each change one of them; culprits add a bad file."""
    root = os.path.join(folder, "repository")
    subprocess.run(["git", "init", "--quiet", "-b", "main", root], check=True)
    lines = ["blob", "mark :1", "data 5", "text", "", "commit refs/heads/main", "mark :2"]
    lines += [f"committer {_AUTHOR}", "data 5", "first"]
    lines += [f"M 100644 :1 src/{number % 100}/file{number}.txt" for number in range(files)]
    lines += ["", "commit refs/heads/warm", f"committer {_AUTHOR}", "data 4", "warm", "from :2"]
    lines += ["M 100644 inline warm.txt", "data 4", "warm"]
    for number in range(branches):
        name = f"bad-{number}" if number in culprits else f"src/{number % 100}/file{number}.txt"
        lines += ["", f"commit refs/heads/topic-{number}", f"committer {_AUTHOR}", "data 6", "change"]
        lines += ["from :2", f"M 100644 inline {name}", "data 6", f"{number:06}"]
    script = "\n".join(lines) + "\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=root, input=script.encode(), check=True)
    subprocess.run(["git", "reset", "--quiet", "--hard"], cwd=root, check=True)
    return root


def _land_all(root: str, branches: int, *, batch: int, check: str) -> tuple[float, int, int]:
    """Landings a minute, test runs, and how many landed."""
    with open(os.path.join(root, "landlane.toml"), "w", encoding="utf-8") as file:
        file.write(f"[landing]\nchecks = ['{check}']\nbatch = {batch}\nresident = false\n")
    subprocess.run(["git", "add", "landlane.toml"], cwd=root, check=True)
    command = [
        "git",
        "-c",
        "user.name=b",
        "-c",
        "user.email=b@localhost",
        "commit",
        "--quiet",
        "-m",
        "settings",
    ]
    subprocess.run(command, cwd=root, check=True)
    repo = open_repository(root)
    try:
        runner = start_runner(repo.require_git(), "bench")
        assert isinstance(runner, QueueRunner)
        # The queue keeps its checkout: making it, once for all time, is not part of a landing.
        _submit(repo, ["warm"])
        drain_queue(runner)
        tests_before = get_queue(repo, "main").tests
        _submit(repo, [f"topic-{number}" for number in range(branches)])
        started = time.monotonic()
        stop = drain_queue(runner)
        took = time.monotonic() - started
        runner.close()
        ended = list_landings(repo, (LANDED, BOUNCED))
        if stop is not None or len(ended) <= branches:
            raise RuntimeError(f"{len(ended) - 1} of {branches} ended: {stop}")
        landed = sum(one.state == LANDED for one in ended) - 1
        return landed / took * 60, get_queue(repo, "main").tests - tests_before, landed
    finally:
        repo.store.close()


def _submit(repo: Repository, branches: Sequence[str]) -> None:
    session = join(repo, "ann").session
    pattern = repo.git.pattern_of("**", "glob")
    take(repo, session, make_request(repo, (pattern,), ttl_ms=3_600_000))
    prepared = repo.require_git()
    for branch in branches:
        submit_branch(prepared, session, branch, "")


def _bare_merges(root: str, branches: int) -> float:
    """The seconds that the same merges take with nothing but git's plumbing."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    started = time.monotonic()
    tip = git("rev-parse", "main")
    for number in range(branches):
        head = git("rev-parse", f"topic-{number}")
        tree = git("merge-tree", "--write-tree", tip, head).splitlines()[0]
        commit = git("commit-tree", tree, "-p", tip, "-p", head, "-m", "land")
        git("update-ref", "refs/heads/main", commit, tip)
        tip = commit
    return time.monotonic() - started
