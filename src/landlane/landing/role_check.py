"""The landing check: what a branch changes, judged by its trees against the role of its author.

Nothing that happened on the way counts, neither how a commit was made nor what hooks were asked. The role is
the one that was written down when the branch was submitted, and what it may do is what the target says.
"""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git import trial_merge as trials
from landlane.git.run import try_git_output
from landlane.git.trailers import read_trailers
from landlane.git.tree_diff import diff_trees, files_below, resolve_link
from landlane.roles.built_in import bound_by, roles_of
from landlane.roles.enforce import check_verb, record_role_violation, refuse_paths
from landlane.roles.model import Scope, may_commit, why_not_verb
from landlane.sessions.read import find_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.tree_diff import TreeChange
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.tasks.model import Task


GUARD = "landing"
_MOST_COMMITS = 500
_MOST_SHOWN = 5


def check_author(repo: Repository, session: Session, settings: Settings, before: str, after: str) -> None:
    """Refuse a branch that the role of its author may not land; `settings` are the target's.

    Raises:
        NotAllowed: it does not land, or may not change some of the paths.
    """
    if not session.role:
        return
    check_verb(repo, session, "land", guard=GUARD, settings=settings)
    found = judge_trees(repo.home, settings, session.role, before, after)
    if found:
        refuse_paths(repo, session, session.role, found, guard=GUARD)


def judge_trees(home: Checkout, settings: Settings, role: str, before: str, after: str) -> dict[str, str]:
    """Each path between two trees that a role may not change, with the reason; without a role, none."""
    bound = bound_by(settings, role)
    changes = diff_trees(home, before, after) if bound is not None else []
    if bound is None or not changes:
        return {}
    reason = why_not_verb(bound, "land")
    if reason:
        return dict.fromkeys((as_name(change.path) for change in changes), reason)
    scope = Scope(bound, settings)
    found = {as_name(change.path): why_not_change(home, scope, after, change) for change in changes}
    return {path: reason for path, reason in found.items() if reason}


def why_not_change(home: Checkout, scope: Scope, tree: str, change: TreeChange) -> str:
    """Why a role may not make a change that gives this tree; empty when it may. Links count as their ends."""
    name = as_name(change.path)
    reason = scope.why_not(name)
    if reason:
        return reason
    role = scope.role
    if change.is_submodule and not role.may_change_protected:
        return f"{name} is a submodule, which the role {role.name} may not change"
    if not change.is_link:
        return ""
    end = resolve_link(home, tree, change.path, change.new_oid)
    if end is None:
        return f"{name} is a link that leads out of the repository"
    for path in [end or ".", *files_below(home, tree, end)]:
        if scope.why_not(as_name(path)):
            return f"{name} is a link to {as_name(path)}, which the role {role.name} may not change"
    return ""


def as_name(path: str) -> str:
    """A path as text; bytes that are none are replaced."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def in_words(found: Mapping[str, str]) -> tuple[str, str]:
    """A sentence on what is forbidden, and a list of all of it."""
    named = ", ".join(list(found)[:_MOST_SHOWN])
    named += f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    first = next(iter(found.values()))
    listed = "\n".join(f"{path}: {reason}" for path, reason in found.items())
    return f"{first} ({named})", listed


def note_caught(repo: Repository, landing: Landing, found: Mapping[str, str]) -> None:
    """Write down, under its author's name, that an entry was stopped."""
    author = repo.store.view(lambda snapshot: find_session(snapshot, landing.session))
    what = f"{landing.id}: {next(iter(found.values()))}"
    record_role_violation(repo, author, guard=GUARD, what=what, paths=tuple(found))


def unidentified_commits(repo: Repository, tip: str, head: str) -> list[str]:
    """The commits of a branch of which nobody can tell which session made them, newest first.

    A merge that git would make of itself adds nothing, and is left out.
    """
    words = ("log", "-z", f"--max-count={_MOST_COMMITS}", "--format=%H%n%P%n%B", f"{tip}..{head}")
    found = try_git_output(repo.home, *words)
    known: dict[tuple[str, str], bool] = {}
    nameless: list[str] = []
    for entry in found.split("\0"):
        commit, _, rest = entry.partition("\n")
        parents, _, message = rest.partition("\n")
        if not commit or _is_plain_merge(repo.home, commit, parents.split()):
            continue
        said = read_trailers(message)
        who = (said.agent, said.session)
        if who not in known:
            known[who] = _is_session(repo, *who)
        if not known[who]:
            nameless.append(commit)
    return nameless


def _is_session(repo: Repository, agent: str, session: str) -> bool:
    if not agent or not session:
        return False
    found = repo.store.view(lambda snapshot: find_session(snapshot, session))
    return found is not None and found.agent == agent


def _is_plain_merge(home: Checkout, commit: str, parents: Sequence[str]) -> bool:
    if len(parents) != 2:
        return False
    try:
        tried = trials.try_merge(home, parents[0], parents[1])
    except RepositoryError:
        return False  # the two have nothing in common
    return isinstance(tried, trials.MergedTree) and tried.tree == trials.tree_of(home, commit)


def lander_role(settings: Settings, task: Task) -> str:
    """The role in which the change of a task is landed for it; none where its worker handed it back.

    What was handed back was judged by the role then, and committed by whoever looked after the worker.
    """
    role = roles_of(settings).get(task.role)
    return task.role if role is None or may_commit(role) else ""
