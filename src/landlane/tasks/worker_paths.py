"""What a worker of `landlane run` may change: the paths of its task, and those it was granted besides.

A task without paths is bound by claims only. The name of a worker's session tells its task: no other session
can join under such a name.
"""

from __future__ import annotations

from landlane.claims.take import live_claims_of
from landlane.errors import NotAllowed, PatternError
from landlane.patterns.pattern import covers_all
from landlane.sessions.leases import find_ancestors
from landlane.sessions.model import worker_task
from landlane.tasks.records import find_task, task_patterns
from landlane.text import list_some, printable, shell_path
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task

_MOST_NAMED = 5


def bound_task(repo: Repository, session: Session) -> Task | None:
    """Return the task whose paths bind a session: that of a worker, if it names paths."""
    task_id = worker_task(session.agent)
    task = repo.store.view(lambda snapshot: find_task(snapshot, task_id)) if task_id else None
    return task if task is not None and task_patterns(repo, task) else None


def paths_outside_task(
    repo: Repository, session: Session, patterns: Sequence[Pattern]
) -> tuple[Task | None, list[Pattern]]:
    """Return the task of a worker, and which of these paths it was not given and has not been granted."""
    task = bound_task(repo, session)
    if task is None:
        return None, []

    def look(snapshot: Snapshot) -> list[Claim]:
        family = (session.id, *find_ancestors(snapshot, session.id))
        return [claim for one in family for claim in live_claims_of(snapshot, one)]

    allowed = [part for pattern in task_patterns(repo, task) for part in pattern.alternatives]
    allowed += [part for claim in repo.store.view(look) for part in claim.alternatives]
    return task, [pattern for pattern in patterns if not covers_all(allowed, pattern)]


def why_outside_task(repo: Repository, session: Session, path: str) -> str:
    """Return why a worker may not change a path; empty if it may, or is no worker."""
    if not worker_task(session.agent):
        return ""
    try:
        pattern = repo.git.pattern_of(path, "literal")
    except PatternError:
        return ""
    task, outside = paths_outside_task(repo, session, (pattern,))
    return f"{printable(path)} is not among the paths of {task.id}" if task is not None and outside else ""


@value
class PathRequest:
    """What a worker asks for, besides the paths of its task."""

    task: str
    paths: str


def find_request(
    repo: Repository, session: Session, patterns: Sequence[Pattern], why: str
) -> PathRequest | None:
    """Return what a person has to allow before a worker may claim this; None if nothing.

    Raises:
        NotAllowed: it is outside of the task, and there is no reason, or the settings grant no other paths.
    """
    task, outside = paths_outside_task(repo, session, patterns)
    if task is None or not outside:
        return None
    paths = [pattern.text for pattern in outside]
    named = list_some(paths, _MOST_NAMED)
    is_refused = repo.settings.run.more_paths == "refuse"
    if why and not is_refused:
        is_gated = repo.settings.run.more_paths == "gate"
        return PathRequest(task=task.id, paths=", ".join(sorted(paths))) if is_gated else None
    words = f"{named} {'is' if len(paths) == 1 else 'are'} not among the paths of {task.id}"
    typed = " ".join(map(shell_path, paths[:_MOST_NAMED]))
    hint = (
        "change only what the task names; what else is needed, another task must name"
        if is_refused
        else f"if you cannot do without: landlane claim {typed} --note 'why'"
    )
    raise NotAllowed(words, code="OUTSIDE_TASK", hint=hint, paths=paths, task=task.id)
