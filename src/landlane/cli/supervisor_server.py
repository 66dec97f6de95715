"""The helper of a run: a program of its own that forks keepers, and whoever runs the landing queue."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys

from landlane.app.open import open_repository
from landlane.errors import LandlaneError
from landlane.landing.wait import run_until
from landlane.processes.fork_server import serve_reporting
from landlane.workers.agents import find_agent
from landlane.workers.attempt_resources import Halt
from landlane.workers.submit_abandoned import land_approved, submit_proved
from landlane.workers.supervisor import Keeper
from landlane.workers.work_order import WorkOrder, Workplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Tell = Callable[[dict[str, Any]], None]


_LOADED = ("landlane.tasks.git_evidence", "landlane.patterns.glob")


def main() -> None:
    """Serve orders; what a keeper needs is loaded once."""
    for name in _LOADED:
        __import__(name)  # here, so that no child has to
    gc.freeze()  # what is loaded stays: no child looks through it again, and its pages stay shared
    serve_reporting(_work)


def _work(order: dict[str, Any], tell: Tell) -> None:
    try:
        place = _open_place(order["folder"], is_json=order["is_json"])
        _do(place, order, tell)
    except LandlaneError as error:  # such as settings that cannot be read any more
        _note(f"{error.message} [{error.code}]", is_json=order["is_json"])
        why = f"{error.message}. {error.hint}"
        tell({"event": "ended", "outcome": "waits", "why": why, "code": error.code})


def _do(place: Workplace, order: dict[str, Any], tell: Tell) -> None:
    if order["kind"] == "land":
        signal.signal(signal.SIGTERM, _leave)
        for step in (land_approved, submit_proved):
            for line in step(place.repo):
                place.repo.report(line)
        run_until(place.repo, "run", is_drained=True)
        return
    halt = Halt()

    def stop(_: int, __: object) -> None:
        halt.why = halt.why or "the run was stopped"

    signal.signal(signal.SIGTERM, stop)
    wanted = WorkOrder(
        task=order["task"],
        agent=find_agent(place.repo.settings, order["agent"]),
        role=order["role"],
        orchestrator=order["orchestrator"],
        is_offline=order["is_offline"],
    )
    Keeper(place, wanted, tell, halt).run()


def _leave(_: int, __: object) -> None:
    """End at once, and end the tests that run on the way out."""
    raise SystemExit(0)


def _open_place(folder: str, *, is_json: bool) -> Workplace:
    os.chdir(folder)
    repo = open_repository(folder, is_short_lived=False)
    repo = repo.require_git(lambda text: _note(text, is_json=is_json))
    return Workplace(repo=repo, state=repo.state_folder)


def _note(text: str, *, is_json: bool) -> None:
    if is_json or sys.stderr is None:
        return
    with contextlib.suppress(OSError):  # who looked is gone: the work goes on
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
