"""Sync a checklist file with the queue: one process at a time, replaced atomically, never over a claim."""

from __future__ import annotations

import fcntl
import os

from landlane.claims.check import PathState, check, pattern_of
from landlane.clients.model import CLIENTS
from landlane.errors import Held, Malformed
from landlane.files import write_atomically
from landlane.sessions.join import live_sessions
from landlane.tasks.sync_checklist import Prefer, Synced, sync_checklist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_LOCK = "checklist.lock"
_LONGEST = 8_000_000
_TRIES = 5


def sync_file(
    repo: Repository, session: Session | None, path: str, prefer: Prefer = Prefer.NEITHER
) -> Synced:
    """Bring a checklist file and the queue together, and write the file if it changed.

    Raises:
        Malformed: the file cannot be read, is too long, or keeps changing.
        Held: another session has claimed it.
    """
    path = os.path.realpath(path)
    _check_not_claimed(repo, session, path)
    agents = {*repo.settings.agents, *CLIENTS, *(one.agent for one in live_sessions(repo))}
    with open(os.path.join(repo.state_folder, _LOCK), "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed, also after a crash
        for _ in range(_TRIES):
            before = _read(path)
            synced = sync_checklist(repo, session, path, before, agents=agents, prefer=prefer)
            if synced.text == before:
                return synced
            if _read(path) == before:  # else somebody saved it meanwhile: what was added is found again
                mode = os.stat(path).st_mode & 0o777
                write_atomically(path, synced.text.encode("utf-8", "surrogateescape"), mode=mode)
                sync_checklist(repo, session, path, synced.text, agents=agents)  # remember what it says
                return synced
    raise Malformed(
        f"{os.path.basename(path)} is being changed all the time",
        code="UNREADABLE_FILE",
        hint="save it in your editor, then run this again",
    )


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise Malformed(
            f"cannot read {os.path.basename(path)}: {error.strerror}",
            code="UNREADABLE_FILE",
            hint="landlane task list --markdown > TASKS.md",
        ) from error
    if len(content) > _LONGEST:
        raise Malformed("the checklist is too long", code="TOO_MANY", hint="split it")
    return content.decode("utf-8", "surrogateescape")


def _check_not_claimed(repo: Repository, session: Session | None, path: str) -> None:
    relative = os.path.relpath(path, repo.checkout.root)
    if relative.startswith(os.pardir):
        return
    found = check(repo, session, pattern_of(repo, relative))
    if found.state == PathState.OTHER and found.claim is not None:
        raise Held(
            f"{relative} is claimed by {found.claim.agent}",
            code="CLAIM_HELD",
            hint=f"wait for it: landlane claim {relative} --wait",
            holder=found.claim.agent,
        )
