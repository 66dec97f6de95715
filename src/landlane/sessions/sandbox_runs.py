"""Records of commands that run in a sandbox.

A record is written before anything is created for the run, and ends when nothing of it is left.
"""

from __future__ import annotations

from landlane.platform.process_identity import Process
from landlane.processes.tree import ProcessTree
from landlane.store import records
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

RUNNING = "running"
ENDED = "ended"
_NOTHING: Mapping[str, Any] = {}
_NOUN = "run"


@value
class Run:
    """A started command: who started it, which processes are its own, and what it leaves on the disk."""

    id: str
    session: str
    agent: str
    role: str
    program: str
    machine: str
    home: str  # the git directory that its repository's checkouts share
    user: int
    scratch: str
    starter: Mapping[str, Any]  # the process that waits for it, and ends it
    tree: Mapping[str, Any]
    state: str = RUNNING
    task: str = ""
    workspace: str = ""
    worker: str = ""  # the session that the command acts as, where that is not the one that started it
    exit_code: int | None = None
    why: str = ""


def starter_of(run: Run) -> Process:
    """The process that started a run."""
    return Process(**run.starter)


def tree_of(run: Run) -> ProcessTree:
    """The processes of a run."""
    facts = dict(run.tree)
    return ProcessTree(id=facts["id"], root=Process(**facts["root"]), is_wrapped=facts["is_wrapped"])


def tree_facts(tree: ProcessTree) -> dict[str, Any]:
    """A tree as a record keeps it."""
    return {"id": tree.id, "root": as_dict(tree.root), "is_wrapped": tree.is_wrapped}


def begin_run(repo: Repository, session: Session, tree: ProcessTree, **facts: object) -> Run:
    """Enter a run that is about to be started, with the mark that all of it will bear."""

    def work(tx: Transaction) -> Run:
        run = Run(
            id=records.next_id(tx, _NOUN),
            session=session.id,
            agent=session.agent,
            role=session.role,
            machine=repo.processes.machine,
            starter=as_dict(repo.processes.current()),
            tree=tree_facts(tree),
            **facts,  # type: ignore[arg-type]
        )
        records.put(tx, _NOUN, as_dict(run), "begun", session)
        return run

    return repo.change(work)


def change_run(
    repo: Repository, run: Run, verb: str, session: Session | None = None, **changes: object
) -> Run:
    """Write down what became of a run; one that is over stays as it is."""

    def work(tx: Transaction) -> Run:
        found = records.lock(tx, _NOUN, run.id)
        now = Run(**found) if found else run
        if now.state == ENDED:
            return now
        now = replace(now, **changes)
        records.put(tx, _NOUN, as_dict(now), verb, session)
        return now

    return repo.change(work)


def list_running(repo: Repository) -> list[Run]:
    """The runs that are not over, or of which nobody has said so."""
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, _NOUN, [RUNNING]))
    return [Run(**document) for document in found]


def list_ended(repo: Repository) -> list[Run]:
    """The runs that are over."""
    found = repo.store.view(lambda snapshot: records.all_of(snapshot, _NOUN, [ENDED]))
    return [Run(**document) for document in found]


def is_at_hand(repo: Repository, run: Run, home: str, user: int) -> bool:
    """Whether a run was one of this machine and repository, and this user may clear up after it."""
    return run.machine == repo.processes.machine and run.home == home and user in (run.user, 0)


def is_forsaken(repo: Repository, run: Run, home: str, user: int) -> bool:
    """Whether the starter of a run is provably gone, and this user of this machine can clear up after it."""
    if not is_at_hand(repo, run, home, user):
        return False
    starter, here = starter_of(run), repo.processes.current()
    if starter.boot_id != here.boot_id:
        return True  # the machine was started anew, and nothing goes on from before
    return repo.processes.is_gone(starter)
