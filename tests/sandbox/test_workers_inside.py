"""Workers in a sandbox: the protocol works, they cannot write elsewhere, and their whole tree ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.processes.tree import find_members
from landlane.protocol.worker.messages import WorkAssignment, WorkComplete, WorkerLimits, WorkFailed
from landlane.sandbox.start import SandboxedChild
from landlane.workers.run_worker import WorkerEnd, run_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.sandbox.model import Backend, Sandbox
    from landlane.sandbox.start import SandboxedChild

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

DONE = '{"type":"WorkComplete","version":1,"assignment":"T7-1","summary":"done"}'


def run(
    script: str, sandbox: Sandbox, backend: Backend, limits: WorkerLimits
) -> tuple[WorkerEnd, SandboxedChild]:
    started: list[SandboxedChild] = []

    def start(streams: tuple[int, int, int]) -> SandboxedChild:
        words = ["sh", "-c", script]
        child = SandboxedChild(words, sandbox, cwd=sandbox.writable[0], backend=backend, streams=streams)
        started.append(child)
        return child

    asked = WorkAssignment(
        assignment="T7-1",
        task="T7",
        attempt=1,
        title="Tidy",
        folder=sandbox.writable[0],
        heartbeat_seconds=60,
    )
    return run_worker(start, asked, limits=limits, grace_seconds=0.3), started[0]


def test_all_messages_of_a_sandboxed_worker_are_read(
    backend: Backend, make_sandbox: Callable[..., Sandbox]
) -> None:
    sandbox = make_sandbox()

    end, child = run(
        f"read line; echo x > ../outside; echo y > inside; echo '{DONE}'", sandbox, backend, WorkerLimits()
    )

    assert end.outcome == WorkComplete(assignment="T7-1", summary="done")
    assert not end.was_killed
    assert find_members(child.tree) == []


def test_a_silent_sandboxed_worker_is_ended_with_its_tree(
    backend: Backend, make_sandbox: Callable[..., Sandbox]
) -> None:
    script = "trap '' TERM; setsid sleep 300 & sleep 300"

    end, child = run(script, make_sandbox(), backend, WorkerLimits(silence_ms=500))

    assert isinstance(end.outcome, WorkFailed)
    assert end.outcome.code == "silent"
    assert find_members(child.tree) == []
