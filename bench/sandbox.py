"""Starting inside the sandbox: against a plain start, and against bubblewrap by itself."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.places import quickest_place, scratch
from bench.table import Row, Skipped, at_most
from bench.timing import medians
from landlane.processes.child import Child
from landlane.sandbox.bubblewrap import BWRAP_VARIABLE
from landlane.sandbox.model import Backend, BackendKind, Sandbox
from landlane.sandbox.start import SandboxedChild, choose_backend

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from bench.sizes import Sizes

_WHAT = "start and end of an empty program in the sandbox ({}), against {}"
_UNPACKED = Path(__file__).resolve().parents[1] / ".tools" / "bubblewrap" / "usr" / "bin" / "bwrap"
_BARE = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
)
_LIMIT_SECONDS = 30.0


def bench_sandbox(sizes: Sizes, lots: random.Random) -> Iterator[Row | Skipped]:
    """The wall time from start to end, in each backend that this machine has."""
    if shutil.which("bwrap") is None and os.access(_UNPACKED, os.X_OK):
        os.environ.setdefault(BWRAP_VARIABLE, str(_UNPACKED))
    best = choose_backend()
    if best.name == BackendKind.NONE:
        yield Skipped(what=_WHAT.format("any", "a plain start"), reason=" ".join(best.reasons))
        return
    landlock = Backend(name=BackendKind.LANDLOCK, landlock_abi=best.landlock_abi, has_filter=best.has_filter)
    program = shutil.which("true") or "/bin/true"
    with scratch(quickest_place()) as folder:
        sandbox = _make_sandbox(folder)
        candidates: dict[str, Callable[[], float]] = {
            "plain": _timed(lambda: Child([program], cwd=folder)),
            BackendKind.LANDLOCK: _timed(
                lambda: SandboxedChild([program], sandbox, cwd=folder, backend=landlock)
            ),
        }
        if best.bwrap:
            bare = [best.bwrap, *_BARE, program]
            candidates["bubblewrap"] = _timed(lambda: Child(bare, cwd=folder))
            candidates[best.name] = _timed(
                lambda: SandboxedChild([program], sandbox, cwd=folder, backend=best)
            )
        found = medians(candidates, sizes.process_rounds, lots, warm=3)
    yield Row(
        what=_WHAT.format(BackendKind.LANDLOCK, "a plain start"),
        unit="ms",
        ours=found[BackendKind.LANDLOCK],
        peer=found["plain"],
        aim=at_most(4),
    )
    if not best.bwrap:
        yield Skipped(what=_WHAT.format("bubblewrap", "others"), reason=" ".join(best.reasons))
        return
    yield Row(
        what=_WHAT.format(best.name, "a plain start"), unit="ms", ours=found[best.name], peer=found["plain"]
    )
    yield Row(
        what=_WHAT.format(best.name, "bubblewrap by itself"),
        unit="ms",
        ours=found[best.name],
        peer=found["bubblewrap"],
        aim=at_most(2),
    )


def _make_sandbox(folder: str) -> Sandbox:
    places = [os.path.join(folder, name) for name in ("workspace", "scratch")]
    for place in places:
        os.mkdir(place)
    return Sandbox(writable=(places[0],), scratch=places[1], readable=(folder,))


def _timed(start: Callable[[], Child]) -> Callable[[], float]:
    def once() -> float:
        started = time.perf_counter()
        ended = start().wait(_LIMIT_SECONDS)
        if ended.exit_code:
            raise RuntimeError(f"exit code {ended.exit_code}: {ended.stderr.strip()}")
        return (time.perf_counter() - started) * 1e3

    return once
