"""A helper process of a run: forks supervisors and landing queue runners."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

from landlane.app.open import open_repository
from landlane.errors import LandlaneError
from landlane.landing.wait import serve_queue
from landlane.processes.fork_server import serve_reporting
from landlane.tasks.git_evidence import GitWitness
from landlane.workers.agents import find_agent
from landlane.workers.attempt_resources import Halt
from landlane.workers.submit_abandoned import land_approved, submit_proved
from landlane.workers.supervisor import Keeper
from landlane.workers.work_order import WorkOrder, Workplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Report = Callable[[dict[str, Any]], None]


_LOADED = ("landlane.tasks.git_evidence", "landlane.patterns.glob")


def main() -> None:
    """Serve orders; load the modules that supervisors need once."""
    for name in _LOADED:
        __import__(name)  # before forking, so that no child has to
    gc.freeze()  # children do not scan loaded objects, so their pages stay shared
    serve_reporting(_handle)


def _handle(order: dict[str, Any], report: Report) -> None:
    try:
        place = _open_place(order["folder"], is_json=order["is_json"])
        _run_order(place, order, report)
    except LandlaneError as error:  # such as settings that became unreadable
        _note(f"{error.message} [{error.code}]", is_json=order["is_json"])
        why = f"{error.message}. {error.hint}"
        report({"event": "ended", "outcome": "waits", "why": why, "code": error.code})


def _run_order(place: Workplace, order: dict[str, Any], report: Report) -> None:
    if order["kind"] == "land":
        signal.signal(signal.SIGTERM, _leave)
        for step in (land_approved, submit_proved):
            for line in step(place.repo, place.witness):
                place.repo.report(line)
        serve_queue(place.repo, "run", is_drained=True)
        return
    halt = Halt()

    def stop(_: int, __: object) -> None:
        halt.why = halt.why or "the run was stopped"

    signal.signal(signal.SIGTERM, stop)
    work_order = WorkOrder(
        task=order["task"],
        agent=find_agent(place.repo.settings, order["agent"]),
        role=order["role"],
        orchestrator=order["orchestrator"],
        is_offline=order["is_offline"],
    )
    Keeper(place, work_order, report, halt).run()


def _leave(_: int, __: object) -> None:
    """Exit at once; exit handlers end running tests."""
    raise SystemExit(0)


def _open_place(folder: str, *, is_json: bool) -> Workplace:
    os.chdir(folder)
    repo = open_repository(folder, is_short_lived=False)
    repo = repo.require_git(lambda text: _note(text, is_json=is_json))
    return Workplace(repo=repo, witness=GitWitness(repo), state=repo.state_folder)


def _note(text: str, *, is_json: bool) -> None:
    if is_json or sys.stderr is None:
        return
    with contextlib.suppress(OSError):  # the reader is gone; continue
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
