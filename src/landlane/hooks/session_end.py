"""List what a session would leave behind if it ended now: uncommitted work, tasks, handoffs, claims.

Each item is reported once. A client that ends anyway has decided so; holding it again would never let it end.
"""

from __future__ import annotations

import os
import shlex

from landlane.claims.take import live_claims_of
from landlane.errors import LandlaneError, PatternError
from landlane.git.discovery import checkout_at
from landlane.handoffs.records import handed_to
from landlane.hooks.briefing.checkout import changed_paths
from landlane.ids import digest
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.notices import take_undelivered
from landlane.tasks.model import ACTIVE, ANYBODY, Task
from landlane.tasks.records import tasks_of
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


_MOST_NAMED = 10
_MOST_CHECKOUTS = 4
_LINE = "- "


def leftovers(repo: Repository, session: Session) -> str:
    """Return the unfinished work, one line per item with its command; empty when there is none."""

    def read_held(snapshot: Snapshot) -> tuple[list[Claim], list[Task]]:
        return live_claims_of(snapshot, session.id), tasks_of(snapshot, session.id)

    claims, owned = repo.store.view(read_held)
    tasks = [task for task in owned if task.state == ACTIVE]
    handed = [handoff for handoff in handed_to(repo, session) if handoff.to != ANYBODY]
    if not claims and not tasks and not handed:
        return ""
    uncommitted = _uncommitted(repo, session, claims)
    parts: list[str] = []
    for root, paths in uncommitted:
        where = "" if root == repo.checkout.root else f" in {root}"
        parts += [f"{_LINE}not committed{where}: {path}" for path in paths[:_MOST_NAMED]]
        parts += _more(paths)
        words = ["landlane", "commit", "-m", "What and why", *(f":/{path}" for path in paths[:_MOST_NAMED])]
        there = "" if root == repo.checkout.root else f"cd {shlex.quote(root)} && "
        parts.append(f"  commit it: {there}{shlex.join(words)}")
    for task in tasks[:_MOST_NAMED]:
        parts.append(f"{_LINE}not reported: {task.id} {task.title[:100]}")
        parts.append(f"  if it is done: landlane done {task.id}; if not: landlane fail {task.id} --why WHY")
    for handoff in handed[:_MOST_NAMED]:
        parts.append(f"{_LINE}handed to you by {handoff.sender}: {handoff.task} ({handoff.id})")
        parts.append(
            f"  take it: landlane handoff accept {handoff.task}; "
            f"or: landlane handoff decline {handoff.task} --why WHY"
        )
    patterns = list(dict.fromkeys(claim.pattern for claim in claims))
    if patterns:
        parts += [f"{_LINE}still held: {pattern}" for pattern in patterns[:_MOST_NAMED]]
        parts += _more(patterns)
        parts.append("  what you need no more: landlane release PATH, or landlane release --all")
    return "Before you end, Landlane sees this left. Finish it, or end again to leave it so.\n" + "\n".join(
        parts
    )


def _more(names: Sequence[str]) -> list[str]:
    return [f"  and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []


def _uncommitted(repo: Repository, session: Session, claims: Sequence[Claim]) -> list[tuple[str, list[str]]]:
    """Return the uncommitted paths that the session holds, grouped by checkout."""
    pattern_of = repo.git.pattern_of
    held = [name for claim in claims for name in pattern_of(claim.pattern, claim.kind).alternatives]
    if not held:
        return []
    found: list[tuple[str, list[str]]] = []
    for checkout in _checkouts(repo, session):
        try:
            changed = changed_paths(checkout, with_new_files=True)
        except (LandlaneError, OSError):
            continue  # a checkout that cannot be read in time must not keep the session from ending
        own: list[str] = []
        for path in changed:
            try:
                (name,) = pattern_of(path.rstrip("/"), "literal").alternatives
            except PatternError:
                continue
            if any(covers_alternative(claimed, name) for claimed in held):
                own.append(path)
        if own:
            found.append((checkout.root, own))
    return found


def _checkouts(repo: Repository, session: Session) -> list[Checkout]:
    """Return the checkouts of the session: this one and its own workspaces."""
    checkouts = {os.path.realpath(repo.checkout.root): repo.checkout}
    for workspace in list_open(repo):
        root = os.path.realpath(workspace.path)
        if workspace.session != session.id or root in checkouts or len(checkouts) >= _MOST_CHECKOUTS:
            continue
        try:
            checkout = checkout_at(root)
        except LandlaneError:
            continue
        if checkout is not None:
            checkouts[root] = checkout
    return list(checkouts.values())


def should_point_out(repo: Repository, session: Session, text: str) -> bool:
    """Return whether the text has items not yet reported to the session, and mark them as reported."""
    items = [digest(line)[:16] for line in text.split("\n") if line.startswith(_LINE)]
    return bool(take_undelivered(repo, session.id, f"parting/{session.id}", items)) if items else False
