"""Record which run of `once` waits for which key, and refuse a wait that would never end."""

from __future__ import annotations

import contextlib

from landlane.claims.model import find_cycle
from landlane.errors import Held
from landlane.ids import short_id
from landlane.platform.process import Process
from landlane.sessions.leases import current_process, find_live_session, process_from_row
from landlane.text import shell_quote
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.values import Row

# Only one call at a time may begin to wait: two could each close half of a cycle without seeing it.
_AREAS = {"": False, "//once-waits": True}


@contextlib.contextmanager
def announced_wait(repo: Repository, session: Session, key: str, holder: str) -> Generator[None]:
    """Record that this call waits for the run of a key, if it is itself a part of runs of other keys.

    Raises:
        Held: that run waits, directly or not, for one of those.
    """
    wait = short_id("o")
    ancestry = repo.processes.ancestry()

    def begin(tx: Transaction) -> bool:
        running = {row["key"]: row for row in tx.all("once_running")}
        inside = [name for name, row in running.items() if _is_part_of(row, ancestry)]
        if not inside:
            return False
        waits: dict[str, set[str]] = {}
        for row in tx.all("once_waits"):
            if _is_waiting(repo, tx, row):
                waits.setdefault(row["inside"], set()).add(row["key"])
            else:
                tx.run("once_wait_drop", wait=row["wait"])
        for name in inside:
            waits.setdefault(name, set()).add(key)
        cycle = find_cycle(key, lambda name: sorted(waits.get(name, set()) & running.keys()))
        if cycle:
            raise _never_ends(key, holder, cycle)
        me = current_process(repo)
        for name in inside:
            tx.run("once_wait_add", wait=wait, inside=name, key=key, session=session.id, **as_dict(me))
        return True

    is_recorded = repo.change(begin, areas=_AREAS)
    try:
        yield
    finally:
        if is_recorded:
            repo.store.change(lambda tx: tx.run("once_wait_drop", wait=wait), is_durable=False)


def _is_part_of(row: Row, ancestry: list[Process]) -> bool:
    """Return whether one of these processes carries out a run, or is its command."""
    runner = process_from_row(row)
    command = replace(runner, pid=row["child_pid"], started=row["child_started"])
    return runner in ancestry or (bool(command.pid) and command in ancestry)


def _is_waiting(repo: Repository, snapshot: Snapshot, row: Row) -> bool:
    """Return whether the call that recorded a wait may still be there; if it was killed, its record stays."""
    if repo.processes.is_gone(process_from_row(row)):
        return False
    return find_live_session(snapshot, row["session"]) is not None


def _never_ends(key: str, holder: str, cycle: tuple[str, ...]) -> Held:
    ring = " → ".join(cycle)
    return Held(
        f"waiting for {key} would never end: its run waits for what runs this command ({ring})",
        code="ONCE_CYCLE",
        hint=f"run {key} before {cycle[-2]} begins: landlane once {shell_quote(key)} -- COMMAND",
        holder=holder,
        cycle=list(cycle),
    )
