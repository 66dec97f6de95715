"""Records of commands that run in a sandbox.

A record is written before anything is created for the run, and ends when nothing of it is left.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.platform.process import Process
from landlane.processes.tree import ProcessTree
from landlane.store import records
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

_NOUN = "run"


class RunState(StrEnum):
    """Whether a run still goes on; an ended run never changes again."""

    RUNNING = "running"
    ENDED = "ended"


@value
class Run:
    """A started command: who started it, its processes, and what it leaves on the disk."""

    id: str
    session: str
    agent: str
    role: str
    program: str
    machine: str
    home: str  # the git directory that its repository's checkouts share
    user: int
    scratch: str
    starter: Process  # the process that waits for it, and ends it
    tree: ProcessTree
    state: RunState = RunState.RUNNING
    task: str = ""
    workspace: str = ""
    worker: str = ""  # the session that the command acts as, if it is not the one that started it
    exit_code: int | None = None
    why: str = ""

    @classmethod
    def from_document(cls, document: records.Document) -> Run:
        tree = document["tree"]
        typed: dict[str, Any] = {
            "starter": Process(**document["starter"]),
            "tree": ProcessTree(id=tree["id"], root=Process(**tree["root"]), is_wrapped=tree["is_wrapped"]),
            "state": RunState(document["state"]),
        }
        return cls(**{**document, **typed})

    def as_document(self) -> records.Document:
        """Return the run as it is stored."""
        tree = {**as_dict(self.tree), "root": as_dict(self.tree.root)}
        return {**as_dict(self), "starter": as_dict(self.starter), "tree": tree}


def begin_run(repo: Repository, session: Session, tree: ProcessTree, **facts: object) -> Run:
    """Record a run that is about to be started; its processes will have the id of the tree."""

    def work(tx: Transaction) -> Run:
        run = Run(
            id=records.next_id(tx, _NOUN),
            session=session.id,
            agent=session.agent,
            role=session.role,
            machine=repo.processes.machine,
            starter=repo.processes.current(),
            tree=tree,
            **facts,  # type: ignore[arg-type]
        )
        records.put(tx, _NOUN, run.as_document(), "begun", session)
        return run

    return repo.change(work)


def change_run(
    repo: Repository, run: Run, verb: str, session: Session | None = None, **changes: object
) -> Run:
    """Change the record of a run, unless it has ended; return the run as it is now."""

    def work(tx: Transaction) -> Run:
        found = records.lock(tx, _NOUN, run.id)
        now = Run.from_document(found) if found else run
        if now.state == RunState.ENDED:
            return now
        now = replace(now, **changes)
        records.put(tx, _NOUN, now.as_document(), verb, session)
        return now

    return repo.change(work)


def list_runs(repo: Repository, state: RunState) -> list[Run]:
    """Return the runs in a state; a run whose starter was killed still counts as running."""
    documents = repo.store.view(lambda snapshot: records.find_all(snapshot, _NOUN, [state]))
    return [Run.from_document(document) for document in documents]


def can_clean_up(repo: Repository, run: Run, home: str, user: int) -> bool:
    """Return whether a run was on this machine in this repository, and this user may clean up after it."""
    return run.machine == repo.processes.machine and run.home == home and user in (run.user, 0)


def is_abandoned(repo: Repository, run: Run, home: str, user: int) -> bool:
    """Return whether the starter of a run is provably gone, and this user can clean up after it."""
    if not can_clean_up(repo, run, home, user):
        return False
    if run.starter.boot_id != repo.processes.current().boot_id:
        return True  # nothing survives a restart of the machine
    return repo.processes.is_gone(run.starter)
