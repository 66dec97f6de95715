"""Check whether a target may be deployed to, and from which commit."""

from __future__ import annotations

from landlane.deploys.model import deploy_target
from landlane.deploys.records import live_at
from landlane.deploys.sync import behind_error, commits_in, dirty_error, find_position, list_changes, offline
from landlane.errors import Held, LandlaneError, PatternError, Stale
from landlane.git.run import run_in
from landlane.git.target import find_target
from landlane.landing.model import OPEN as UNLANDED
from landlane.patterns.pattern import covers_alternative
from landlane.store import records
from landlane.tasks.worker_pool import check_may_change
from landlane.units import count
from landlane.values import replace
from landlane.workspaces.committed_settings import committed_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.deploys.model import DeployTarget
    from landlane.deploys.sync import Position
    from landlane.repository import Repository
    from landlane.settings.model import Settings


def find_deployable_commit(repo: Repository, settings: Settings, target: DeployTarget) -> str:
    """Return the commit that may be deployed now.

    Raises:
        Stale: the checkout is behind, or older than what is live.
        Held: something must land first.
        WaitsForPerson: a person paused deploys.
        LandlaneError: the checkout has commits or changes that did not land, or cannot be compared.
    """
    repo.store.view(lambda snapshot: check_may_change(snapshot, "deploys"))
    if target.settings.branch:
        settings = replace(settings, landing=replace(settings.landing, target=target.settings.branch))
    position = find_position(repo, find_target(repo.home, settings), is_remote_only=True)
    if position.trouble:
        raise offline(position, f"check the connection: git fetch {position.remote}")
    if position.behind and not position.ahead:
        raise _behind(repo, target, position)
    if position.ahead:
        raise LandlaneError(
            f"{position.branch or position.head[:8]} has {count(position.ahead, 'commit')} "
            f"not yet on {position.place}; {target.name} gets only what has landed",
            code="NOT_LANDED",
            hint=f"land, then deploy from {position.place}: landlane land",
            behind=position.behind,
            ahead=position.ahead,
            head=position.head,
            tip=position.tip,
            commits=commits_in(repo.checkout, f"{position.tip}..{position.head}"),
        )
    if dirty := list_target_changes(repo, target, with_untracked=True):
        raise dirty_error(dirty, "commit and land it, or set it aside: landlane stash save")
    check_landed(repo, target, position.target)
    _check_not_older(repo, target, position.head)
    return position.head


def _behind(repo: Repository, target: DeployTarget, position: Position) -> Stale:
    error = behind_error(repo, position, "update, then deploy: landlane sync --update merge")
    error.message = (
        f"this checkout is {count(position.behind, 'commit')} behind {position.place}; "
        f"{target.name} would get an old version"
    )
    return error


def list_target_changes(repo: Repository, target: DeployTarget, *, with_untracked: bool) -> list[str]:
    """Return the uncommitted paths that belong to a target."""
    belongs = path_filter(repo, target.settings.paths)
    return [path for path in list_changes(repo.checkout, with_untracked=with_untracked) if belongs(path)]


def path_filter(repo: Repository, patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether a path matches one of the patterns; without any, all paths match.

    Raises:
        PatternError: a pattern in the settings is not valid.
    """
    known = [one for text in patterns for one in repo.git.pattern_of(text, "glob").alternatives]

    def matches(path: str) -> bool:
        if not known:
            return True
        try:
            wanted = repo.git.pattern_of(path, "literal").alternatives
        except PatternError:
            return True  # no pattern can match this name, and it is safer to include it
        return all(any(covers_alternative(one, path) for one in known) for path in wanted)

    return matches


def check_landed(repo: Repository, target: DeployTarget, branch: str) -> None:
    """Refuse while the landing queue of the branch has an entry that touches the target.

    Raises:
        Held: there is one.
    """
    belongs = path_filter(repo, target.settings.paths)
    for entry in repo.store.view(lambda snapshot: records.find_all(snapshot, "landing", UNLANDED)):
        if entry.get("target") not in (None, "", branch):
            continue
        paths = [str(path) for path in entry.get("paths") or ()]
        touched = [path for path in paths if belongs(path)]
        if touched or not paths:  # an entry without paths may change anything
            raise Held(
                f"{entry['id']} by {entry.get('agent') or 'unknown'} is {entry['state']} and changes "
                f"{touched[0] if touched else 'paths it does not name'}",
                code="UNLANDED_ENTRY",
                hint="land it first, then sync and deploy: landlane queue run --drain",
                holder=entry.get("agent") or None,
                landing=entry["id"],
                task=entry.get("task") or None,
                paths=touched[:20],
            )


def _check_not_older(repo: Repository, target: DeployTarget, head: str) -> None:
    live = live_at(repo, target.name)
    if live is None or live.commit == head:
        return
    if not run_in(repo.checkout, "merge-base", "--is-ancestor", live.commit, head).exit_code:
        return
    raise Stale(
        f"{head[:8]} does not contain {live.commit[:8]}, which {live.agent} deployed to {target.name}",
        code="OLDER_THAN_LIVE",
        hint="update, then deploy (to go back, land a revert): landlane sync --update merge",
        live=live.commit,
        head=head,
        holder=live.agent,
    )


def needs_approval(repo: Repository, target: DeployTarget, commit: str) -> bool:
    """Return whether the settings here, in the main checkout or in the commit have a gate for the target.

    Editing one copy of the settings must not be enough to remove the gate.
    """
    others = (repo.held.shared, committed_at(repo.checkout, commit))
    return target.settings.gate or any(
        deploy_target(target.name, one.deploy).settings.gate for one in others if one is not None
    )
