"""A target branch that fails its own checks: since when, by which commit, and what to report about it."""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git.run import try_git_output
from landlane.git.trial_merge import tree_of
from landlane.landing.failing_lines import failing_lines
from landlane.landing.model import LANDED, TargetFailure
from landlane.landing.records import (
    get_queue,
    list_landings,
    record_target_failure,
    record_target_passing,
)
from landlane.text import printable
from landlane.units import rough_duration
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.landing.model import CheckRun
    from landlane.landing.run_checks import CheckResult, CheckRunner
    from landlane.repository import Repository
    from landlane.sessions.runner_lease import RunnerLease

_MAX_SUSPECTS = 50
_JUST_NOW_MS = 60_000


@value
class TargetCommit:
    """A commit of the target: what it is about, its author, and the entry that landed it, if any."""

    commit: str
    subject: str
    author: str
    landing: str = ""

    def __str__(self) -> str:
        return f"{self.commit[:8]} {self.subject} ({self.author})"


def describe_commit(repo: Repository, commit: str) -> TargetCommit:
    """Return who made a commit of the target, and the entry that landed it."""
    for landing in list_landings(repo, (LANDED,)):
        if landing.commit == commit:
            return TargetCommit(
                commit=commit, subject=landing.subject, author=landing.agent, landing=landing.id
            )
    shown = try_git_output(repo.home, "show", "-s", "--format=%an%x00%s", commit)
    author, _, subject = printable(shown).partition("\0")
    return TargetCommit(commit=commit, subject=subject, author=author)


def describe_failure(repo: Repository, target: str, tip: str, result: CheckResult) -> TargetFailure:
    """Return why the target fails; a failure that is known already keeps its start and its culprit."""
    queue = get_queue(repo, target)
    known = queue.failure
    suspects = known.suspects if known is not None else _commits_between(repo, queue.passing, tip)
    culprit = known.culprit if known is not None else as_dict(describe_commit(repo, [*suspects, tip][0]))
    return TargetFailure(
        commit=tip,
        check=result.check,
        exit=result.exit,
        ms=result.ms,
        since=known.since if known is not None else repo.wall_ms(),
        reason=printable(result.reason),
        output=printable(result.output),
        lines=failing_lines(result.output),
        suspects=suspects,
        culprit=culprit,
    )


def check_target(
    repo: Repository,
    lease: RunnerLease | None,
    branch: str,
    tip: str,
    checks: CheckRunner,
    on_check: Callable[[str, Sequence[CheckRun]], None] = lambda _, __: None,
    *,
    rerun_failed: bool = False,
) -> CheckResult:
    """Run the checks on the target itself, and record whether it passes.

    A saved result counts; with `rerun_failed`, a saved failure does not: the machine may have caused it.
    """
    result = checks.check(tip, tree_of(repo.home, tip), {}, on_check, rerun_failed=rerun_failed)
    if result.is_green:
        record_target_passing(repo, lease, branch, tip)
    else:
        record_target_failure(repo, lease, branch, describe_failure(repo, branch, tip, result))
    return result


def _commits_between(repo: Repository, passing: str, tip: str) -> list[str]:
    """Return the commits after the last one that passed, oldest first; none if no such commit is known."""
    if not passing:
        return []
    words = ("rev-list", "--first-parent", f"--max-count={_MAX_SUSPECTS}", f"{passing}..{tip}")
    return try_git_output(repo.home, *words).splitlines()[::-1]


def target_failing_error(
    target: str, failure: TargetFailure, now: int, landing_id: str = ""
) -> RepositoryError:
    """Return the error for a target that fails its own checks."""
    age = now - failure.since
    since = f" (for {rough_duration(age)})" if age >= _JUST_NOW_MS else ""
    then = f"{landing_id} stays queued and is not charged" if landing_id else "only a fix lands"
    return RepositoryError(
        f"{target} itself fails {failure.check}{since}; {then}",
        code="TARGET_RED",
        hint="see why: landlane queue show",
        output=failure.output,
        lines=failure.lines,
    )
