"""The fork server of a run: a separate program that forks supervisors and runs of the landing queue."""

from __future__ import annotations

import gc
import os
import signal

from landlane.app.open import open_repository
from landlane.errors import LandlaneError
from landlane.landing.queue import serve_queue
from landlane.processes.fork_server import serve_reporting
from landlane.tasks.model import AttemptOutcome
from landlane.workers.agents import find_agent, with_command
from landlane.workers.attempt_resources import AttemptResources
from landlane.workers.model import StopRequest, WorkOrder
from landlane.workers.recover import submit_approved, submit_verified
from landlane.workers.supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository

    Report = Callable[[dict[str, Any]], None]


_LOADED = ("landlane.tasks.git_evidence", "landlane.patterns.glob")


def main() -> None:
    """Serve orders. The modules that a supervisor needs are loaded once, before forking."""
    for name in _LOADED:
        __import__(name)
    gc.freeze()  # children do not scan the loaded modules, so their memory pages stay shared
    serve_reporting(_work)


def _work(order: dict[str, Any], report: Report) -> None:
    try:
        os.chdir(order["folder"])
        repo = open_repository(order["folder"], is_short_lived=False)
        if order["kind"] == "land":
            _land(repo.require_git(lambda text: report({"event": "note", "text": text})))
        else:
            _supervise(repo, order, report)
    except LandlaneError as error:  # such as settings that became invalid
        why = f"{error.message}. {error.hint}"
        report({"event": "ended", "outcome": AttemptOutcome.NOT_STARTED, "why": why, "code": error.code})


def _land(repo: Repository) -> None:
    signal.signal(signal.SIGTERM, _exit)
    for step in (submit_approved, submit_verified):
        for line in step(repo):
            repo.report(line)
    serve_queue(repo, "run", is_drained=True)


def _supervise(repo: Repository, order: dict[str, Any], report: Report) -> None:
    stop = StopRequest()

    def on_signal(_: int, __: object) -> None:
        stop.why = stop.why or "the run was stopped"

    signal.signal(signal.SIGTERM, on_signal)
    command = order.get("command")
    settings = with_command(repo.settings, command)[0] if command else repo.settings
    work_order = WorkOrder(
        task=order["task"],
        agent=find_agent(settings, order["agent"]),
        role=order["role"],
        orchestrator=order["orchestrator"],
        is_offline=order["is_offline"],
    )
    attempt = AttemptResources(
        repo.require_git(lambda text: attempt.write_log("note", text)), work_order, report, stop
    )
    Supervisor(attempt).run()


def _exit(_: int, __: object) -> None:
    """Exit at once; checks that are running end on the way out."""
    raise SystemExit(0)


if __name__ == "__main__":
    main()
