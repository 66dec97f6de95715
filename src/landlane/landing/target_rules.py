"""The rules for landing: settings, gates and roles as the target branch has them, not as the branch has them.

The role check compares the trees before and after a landing, so it does not depend on how the commits were
made. The role is the one of the session that submitted the branch.
"""

from __future__ import annotations

from landlane.errors import RepositoryError, SettingsError
from landlane.git import trial_merge as trials
from landlane.git.commits import merge_base, read_trailers
from landlane.git.run import try_git_output
from landlane.git.tree_diff import diff_trees, files_below, resolve_link
from landlane.landing.model import NEW_CHECKS, no_checks_error
from landlane.roles.enforce import check_verb, record_role_violation, refuse_paths
from landlane.roles.model import Scope, may_commit, role_or_read_only, roles_of, why_not_verb
from landlane.sessions.leases import find_session
from landlane.settings.detect_test_command import find_test_command
from landlane.settings.model import FILE_NAME, Settings
from landlane.text import printable
from landlane.units import exact_duration
from landlane.values import replace
from landlane.workspaces.committed_settings import read_commit, read_good

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch
    from landlane.git.tree_diff import TreeChange
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import LandingCheck
    from landlane.tasks.model import Task

    _Checks = tuple[tuple[LandingCheck, ...], int]  # and the time limit of those without their own


_GUARD = "landing"
_MAX_COMMITS = 500


def settings_at(repo: Repository, target: TargetBranch, tip: str) -> Settings:
    """Return the last settings of the target branch that can be used, or those that hold for the caller.

    Raises:
        RepositoryError: no settings of the target can be used.
        SettingsError: `[landing] checks` is missing.
    """
    try:
        committed = read_good(repo.home, tip)
    except SettingsError as error:
        raise RepositoryError(
            f"{FILE_NAME} on {target.branch} is invalid: {error.message}",
            code="SETTINGS_BROKEN",
            hint=f"fix it on {target.branch}; what is wrong: landlane doctor",
        ) from error
    settings = committed or repo.settings
    if settings.landing.checks is None:
        command, _ = find_test_command(repo.home.root)
        raise no_checks_error(target.branch, command)
    return settings


def broken_settings(home: Checkout, commit: str) -> str:
    """Return why the settings of a commit would block further landings; empty if they are usable."""
    try:
        settings = read_commit(home, commit)
    except SettingsError as error:
        return f"its {FILE_NAME} is invalid: {error.message}"
    if settings is not None and settings.landing.checks is None:
        return f"its {FILE_NAME} has no [landing] checks, so nothing could land after it"
    return ""


def find_gate(repo: Repository, settings: Settings, paths: Sequence[str]) -> str:
    """Return why a person must approve a change of these paths; empty if no approval is needed."""
    for glob in settings.landing.gate:
        for path in paths:
            if repo.git.find_glob((glob,), path):
                return f"waits for a person: it changes {path} ({glob})"
    return ""


def find_gate_of_branch(
    repo: Repository, settings: Settings, paths: Sequence[str], tip: str, head: str
) -> str:
    """Return why a person must approve a branch; `settings` are those of the target, whose tip is `tip`."""
    change = describe_new_checks(repo.home, settings, paths, tip, head)
    return f"{NEW_CHECKS}: {change}" if change else find_gate(repo, settings, paths)


def describe_new_checks(home: Checkout, settings: Settings, paths: Sequence[str], tip: str, head: str) -> str:
    """Return how a branch changes `[landing] checks` and their time limit; empty if it does not."""
    if FILE_NAME not in paths:
        return ""
    before = _read_checks(home, merge_base(home, tip, head)) or _checks_of(settings)
    after = _read_checks(home, head)
    if after is None or before == after:
        return ""
    has_same_commands = before is not None and before[0] == after[0]
    return f"{_checks_text(before, has_same_commands)} becomes {_checks_text(after, has_same_commands)}"


def with_own_checks(home: Checkout, settings: Settings, commit: str) -> Settings:
    """Return the settings of the target with the checks of a commit, which a person has approved."""
    own = read_commit(home, commit)
    if own is None or own.landing.checks is None:
        return settings
    limit_ms = own.landing.check_limit_ms
    landing = replace(settings.landing, checks=own.landing.checks, check_limit_ms=limit_ms)
    return replace(settings, landing=landing)


def _read_checks(home: Checkout, commit: str) -> _Checks | None:
    """Return the checks of a commit and their time limit; None if it has none that can be read."""
    try:
        settings = read_commit(home, commit)
    except SettingsError:
        return None
    return _checks_of(settings) if settings is not None else None


def _checks_of(settings: Settings) -> _Checks | None:
    checks = settings.landing.checks
    return None if checks is None else (tuple(checks), settings.landing.check_limit_ms)


def _checks_text(checks: _Checks | None, has_limit: bool) -> str:
    if checks is None or not checks[0]:
        return "no check"
    commands = [check.run if check.run == check.name else f"{check.name}: {check.run}" for check in checks[0]]
    limit = f" (limit {exact_duration(checks[1])})" if has_limit else ""
    return f"{', '.join(commands)}{limit}"


def check_author(repo: Repository, session: Session, settings: Settings, before: str, after: str) -> None:
    """Refuse a branch that the role of its author may not land; `settings` are those of the target.

    Raises:
        NotAllowed: the role may not land, or may not change some of the paths.
    """
    if not session.role:
        return
    check_verb(repo, session, "land", guard=_GUARD, settings=settings)
    forbidden = forbidden_changes(repo.home, settings, session.role, before, after)
    if forbidden:
        refuse_paths(repo, session, session.role, forbidden, guard=_GUARD)


def forbidden_changes(
    home: Checkout, settings: Settings, role: str, before: str, after: str
) -> dict[str, str]:
    """Return the changed paths between two trees that a role may not change, each with the reason."""
    bound = role_or_read_only(settings, role)
    changes = diff_trees(home, before, after) if bound is not None else []
    if bound is None or not changes:
        return {}
    reason = why_not_verb(bound, "land")
    if reason:
        return dict.fromkeys((printable(change.path) for change in changes), reason)
    scope = Scope(bound, settings)
    reasons = {printable(change.path): why_not_change(home, scope, after, change) for change in changes}
    return {path: reason for path, reason in reasons.items() if reason}


def why_not_change(home: Checkout, scope: Scope, tree: str, change: TreeChange) -> str:
    """Return why a role may not make a change; empty if it may. A link is judged by its destination, too."""
    name = printable(change.path)
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
        if scope.why_not(printable(path)):
            return f"{name} is a link to {printable(path)}, which the role {role.name} may not change"
    return ""


def record_violation(repo: Repository, landing: Landing, forbidden: Mapping[str, str]) -> None:
    """Record that an entry violates its author's role."""
    author = repo.store.view(lambda snapshot: find_session(snapshot, landing.session))
    what = f"{landing.id}: {next(iter(forbidden.values()))}"
    record_role_violation(repo, author, guard=_GUARD, what=what, paths=tuple(forbidden))


def unidentified_commits(repo: Repository, tip: str, head: str) -> list[str]:
    """Return the commits of a branch that no known session made, newest first.

    Merges whose tree is what git computes by itself are left out.
    """
    words = ("log", "-z", f"--max-count={_MAX_COMMITS}", "--format=%H%n%P%n%B", f"{tip}..{head}")
    log = try_git_output(repo.home, *words)
    known: dict[tuple[str, str], bool] = {}
    unidentified: list[str] = []
    for entry in log.split("\0"):
        commit, _, rest = entry.partition("\n")
        parents, _, message = rest.partition("\n")
        if not commit or _is_automatic_merge(repo.home, commit, parents.split()):
            continue
        trailers = read_trailers(message)
        author = (trailers.agent, trailers.session)
        if author not in known:
            known[author] = _is_known_session(repo, *author)
        if not known[author]:
            unidentified.append(commit)
    return unidentified


def _is_known_session(repo: Repository, agent: str, session: str) -> bool:
    if not agent or not session:
        return False
    known = repo.store.view(lambda snapshot: find_session(snapshot, session))
    return known is not None and known.agent == agent


def _is_automatic_merge(home: Checkout, commit: str, parents: Sequence[str]) -> bool:
    if len(parents) != 2:
        return False
    try:
        tried = trials.try_merge(home, parents[0], parents[1])
    except RepositoryError:
        return False  # no common ancestor
    return isinstance(tried, trials.MergedTree) and tried.tree == trials.tree_of(home, commit)


def lander_role(settings: Settings, task: Task) -> str:
    """Return the role in which a task's change is landed; empty if its worker handed the change back.

    A change that was handed back was checked against the role then, and the supervisor committed it.
    """
    role = roles_of(settings).get(task.role)
    return task.role if role is None or may_commit(role) else ""
