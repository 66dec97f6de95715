"""Runs: commands that were started inside a fence, each with all that must be found again when it ends."""

from __future__ import annotations

from landlane.domain.agents import Process
from landlane.domain.fences import Tree
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

RUNNING = "running"
ENDED = "ended"
_NOTHING: Mapping[str, Any] = {}


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


def tree_of(run: Run) -> Tree:
    """The processes of a run."""
    facts = dict(run.tree)
    return Tree(id=facts["id"], root=Process(**facts["root"]), is_wrapped=facts["is_wrapped"])


def tree_facts(tree: Tree) -> dict[str, Any]:
    """A tree as a record keeps it."""
    return {"id": tree.id, "root": as_dict(tree.root), "is_wrapped": tree.is_wrapped}
