"""Opening workspaces beside `git worktree add`, and rescuing a large tree beside `git stash` and `cp`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from bench.places import DISK, places, scratch
from bench.table import Row, at_least, at_most
from bench.timing import medians

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

    from bench.sizes import Sizes
    from bench.table import Skipped

_LANDLANE = os.path.join(os.path.dirname(sys.executable), "landlane")
_LIMIT = 1.15
# Side by side some of git's own fail, and would count as quick: they are tried again, as a script would.
_ADD = 'until git worktree add --quiet --no-track -B "$0" "$1"; do :; done'
_NAMES = {
    f"GIT_{role}_{field}": text
    for role in ("AUTHOR", "COMMITTER")
    for field, text in (("NAME", "bench"), ("EMAIL", "bench@localhost"))
}


def bench_open(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """`workspace open` against `git worktree add`, many at once; wall time until the last is there."""
    for place in places():
        for crowd in sizes.crowds:
            # In memory there is no disk to wait for, so that only starting Python shows: it is not judged.
            aim = at_most(_LIMIT) if place == DISK else None
            with scratch(place) as folder:
                testbed = _Testbed(folder, sizes.opened_files, lots)
                candidates = {"ours": lambda: testbed.ours(crowd), "git": lambda: testbed.git(crowd)}  # noqa: B023
                found = medians(candidates, sizes.open_rounds, lots, warm=1)
            what = f"open a workspace of {sizes.opened_files:,} files, {crowd} at once ({place})"
            yield Row(what=what, unit="s", ours=found["ours"], peer=found["git"], aim=aim)


class _Testbed:
    """A repository of many files, and checkouts of it that are never reused: deleting slows a disk down."""

    def __init__(self, folder: str, files: int, lots: random.Random) -> None:
        self._root = os.path.join(folder, "repository")
        self._count = 0
        self._tasks: list[str] = []
        _write_tree(self._root, files, lots)
        for words in (
            ["init", "--quiet", "-b", "main"],
            ["add", "--all"],
            ["commit", "--quiet", "-m", "all"],
        ):
            _run(["git", *words], self._root)
        _run(["git", "repack", "-adq"], self._root)

    def ours(self, crowd: int) -> float:
        for _ in range(crowd):
            _run([_LANDLANE, "task", "add", "work", "--force", "--as", "bench"], self._root)
            self._tasks.append(f"T{len(self._tasks) + 1}")
        tasks = self._tasks[-crowd:]
        return _together(
            [[_LANDLANE, "workspace", "open", task, "--as", "bench"] for task in tasks], self._root
        )

    def git(self, crowd: int) -> float:
        commands: list[list[str]] = []
        for _ in range(crowd):
            self._count += 1
            place = os.path.join(os.path.dirname(self._root), f"git-{self._count}")
            commands.append(["sh", "-c", _ADD, f"b{self._count}", place])
        return _together(commands, self._root)


def bench_rescue(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """A rescue of a large dirty tree, in megabytes a second, beside what people do by hand."""
    with scratch(DISK) as folder:
        root = os.path.join(folder, "repository")
        _write_tree(root, 10, lots)
        for words in (
            ["init", "--quiet", "-b", "main"],
            ["add", "--all"],
            ["commit", "--quiet", "-m", "all"],
        ):
            _run(["git", *words], root)
        _run([_LANDLANE, "task", "list"], root)
        peers = {"git stash -u": _stash, "cp -a": _copy}
        candidates = {"ours": lambda: _rescue(root, sizes, lots)}
        candidates |= {name: (lambda work=work: work(root, sizes, lots)) for name, work in peers.items()}
        found = medians(candidates, sizes.rescue_rounds, lots, warm=0)
    megabytes = sizes.rescue_files * sizes.rescue_bytes / 1e6
    for name in peers:
        what = f"rescue a dirty tree of {megabytes:,.0f} MB, beside {name}"
        ours, peer = megabytes / found["ours"], megabytes / found[name]
        # A stash is the same work; a plain copy reads and writes, and nothing else.
        aim = at_least(1.0) if name.startswith("git") else None
        yield Row(what=what, unit="MB/s", ours=ours, peer=peer, aim=aim)


def _dirty(root: str, sizes: Sizes, lots: random.Random) -> None:
    """Fill a folder with new files, half of which can be packed and half of which cannot."""
    folder = os.path.join(root, "dirty")
    os.makedirs(folder, exist_ok=True)
    half = sizes.rescue_bytes // 2
    for number in range(sizes.rescue_files):
        with open(os.path.join(folder, f"file-{number}"), "wb") as file:
            file.write(lots.randbytes(half) + b"line of text\n" * (half // 13))
    os.sync()


def _rescue(root: str, sizes: Sizes, lots: random.Random) -> float:
    _dirty(root, sizes, lots)
    return _together([[_LANDLANE, "rescue", "take", "--as", "bench"]], root)


def _stash(root: str, sizes: Sizes, lots: random.Random) -> float:
    _dirty(root, sizes, lots)
    return _together([["git", "stash", "push", "--quiet", "-u"]], root)


def _copy(root: str, sizes: Sizes, lots: random.Random) -> float:
    _dirty(root, sizes, lots)
    target = os.path.join(os.path.dirname(root), "copy")
    took = _together([["cp", "-a", root, target]], root)
    shutil.rmtree(target)
    return took


def _write_tree(root: str, files: int, lots: random.Random) -> None:
    for number in range(files):
        folder = os.path.join(root, "src", f"part{number // 100:03d}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"file{number:05d}.py"), "w", encoding="ascii") as file:
            file.write(f"number = {number}\n" * lots.randint(5, 120))


def _together(commands: Sequence[Sequence[str]], folder: str) -> float:
    """Start all of them at once; how long it takes until the last has ended.

    Raises:
        RuntimeError: one of them failed.
    """
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **_NAMES},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for command in commands
    ]
    said = [process.communicate()[1] for process in running]
    took = time.perf_counter() - started
    failed = [text for process, text in zip(running, said, strict=True) if process.returncode]
    if failed:
        raise RuntimeError(failed[0].decode("utf-8", "replace")[:400])
    return took


def _run(command: Sequence[str], folder: str) -> None:
    _together([command], folder)
