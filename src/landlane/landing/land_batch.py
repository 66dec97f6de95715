"""Land one batch: merge its entries in order, check the last tree, and find the entry that fails.

If the check fails, the batch is bisected: its first half is tried alone, and so on, until the failing entry
is alone and is rejected while the others land. If the failing entry passes without the target's latest
commits, a second bisection names the commit that it fails together with.
"""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git import trial_merge as trials
from landlane.git.commits import merge_base
from landlane.git.run import try_git_output
from landlane.landing import records
from landlane.landing.after_landing import delete_entry_ref
from landlane.landing.combine import Candidate, merge_entry, merge_options, validators_for
from landlane.landing.model import (
    Landing,
    Rejection,
    conflict_rejection,
    first_half,
    role_rejection,
)
from landlane.landing.outcomes import LandedEntry, mark_landed, reject_entry
from landlane.landing.placeholders import find_placeholders, placeholder_rejection
from landlane.landing.records import record_target_failure, record_target_passing
from landlane.landing.run_checks import VALIDATOR
from landlane.landing.target_failure import describe_commit, describe_failure, target_failing_error
from landlane.landing.target_rules import (
    broken_settings,
    forbidden_changes,
    record_violation,
    with_own_checks,
)
from landlane.settings.model import FILE_NAME
from landlane.state.keys import check_states, moved_error
from landlane.tasks.model import FIXES_TARGET
from landlane.tasks.records import find_task
from landlane.text import printable
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.target import TargetBranch
    from landlane.landing.model import CheckRun
    from landlane.landing.move_target import TargetMover
    from landlane.landing.run_checks import CheckResult, CheckRunner
    from landlane.landing.target_failure import TargetCommit
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_MAX_OTHER_COMMITS = 5
_MAX_BISECTED = 256  # commits, so that a bisection takes at most eight tests


class BatchLander:
    """Lands the batches of one round, all by the same settings of the target."""

    def __init__(
        self,
        repo: Repository,
        settings: Settings,
        target: TargetBranch,
        mover: TargetMover,
        checks: CheckRunner,
        on_step: Callable[[str], None],
        on_check: Callable[[Sequence[str], str], None] = lambda _, __: None,
    ) -> None:
        self._repo = repo
        self._settings = settings
        self._target = target
        self._mover = mover
        self._checks = checks
        self._on_step = on_step
        self._on_check = on_check
        self._merge = merge_options(repo, settings, checks.regenerate)
        self._is_rechecking = False  # a saved failure turned out to be wrong: run failed checks again
        self.has_bisected = False
        self.target_failure: RepositoryError | None = None  # the target itself fails its checks

    def land(self, tip: str, batch: Sequence[Landing], *, has_own_checks: bool = False) -> int:
        """Land a batch, bisecting it if it fails; return how many entries ended.

        With `has_own_checks` it is one entry that a person has approved and that is judged by its own checks.
        """
        if has_own_checks:
            return self._land_by_own_checks(tip, batch)
        chain, ended = self._merge_batch(tip, batch)
        if not chain:
            return ended
        result = self._check(chain)
        if result.is_green:
            return ended + self._mover.land(chain, result)
        return ended + self._bisect(chain)

    def _land_by_own_checks(self, tip: str, batch: Sequence[Landing]) -> int:
        """Land one entry if it passes its own checks: a wrong check must not keep its repair out."""
        chain, ended = self._merge_batch(tip, batch)
        if not chain:
            return ended
        (candidate,) = chain
        self._checks.use(with_own_checks(self._repo.home, self._settings, candidate.commit))
        try:
            result = self._check(chain)
        finally:
            self._checks.use(self._settings)
        if result.is_green:
            return ended + self._mover.land(chain, result)
        rejection = Rejection(
            code="CHECK_FAILED",
            reason=f"by its own checks, {result.reason}",
            hint="fix it, commit and land again",
            output=result.output,
            checks=result.runs,
        )
        self._reject(candidate.landing, rejection, candidate.before)
        return ended + 1

    def _merge_batch(self, tip: str, batch: Sequence[Landing]) -> tuple[list[Candidate], int]:
        """Merge the entries in order; those that do not merge with the target itself are rejected."""
        chain: list[Candidate] = []
        ended = 0
        for landing in batch:
            self._mover.renew_lease()  # many merges may take longer than the lease
            onto = chain[-1].commit if chain else tip
            outcome = self._merge_entry(onto, landing)
            if isinstance(outcome, Candidate) and not outcome.is_empty:
                chain.append(outcome)
                continue
            if chain and not isinstance(outcome, Rejection):
                # The entry ahead of it may never land: only the target itself counts.
                outcome = self._merge_entry(tip, landing)
                if isinstance(outcome, Candidate) and not outcome.is_empty:
                    self._requeue([landing], "it waits for the entry ahead of it")
                    continue
            if isinstance(outcome, Candidate):
                self._mark_contained(landing, tip)
            elif isinstance(outcome, Rejection):
                self._reject(landing, outcome, tip)
            else:
                self._reject_conflict(landing, outcome, tip)
            ended += 1
        sandbox = self._checks.confinement
        merges = {
            one.landing.id: records.EntryMerge(base=one.before, notes=one.notes, sandbox=sandbox)
            for one in chain
        }
        records.record_merges(self._repo, self._mover.lease, merges)
        self._on_step("merged")
        return chain, ended

    def _merge_entry(self, onto: str, landing: Landing) -> Candidate | trials.MergeConflict | Rejection:
        """Merge an entry onto a commit, or return its conflict or why it must not land."""
        home = self._repo.home
        if moved := check_states(self._repo, landing.expects):
            error = moved_error(moved)
            return Rejection(code=error.code, reason=error.message, hint=error.hint)
        try:
            merged = merge_entry(self._repo, self._merge, onto, landing)
        except RepositoryError as error:
            if error.code != "NO_COMMON_ANCESTOR":
                raise
            return Rejection(code=error.code, reason=error.message, hint=error.hint)
        if not isinstance(merged, Candidate):
            return merged
        trouble = broken_settings(home, merged.commit) if FILE_NAME in landing.paths else ""
        if trouble:
            return Rejection(code="SETTINGS_BROKEN", reason=trouble, hint=f"fix {FILE_NAME} and land again")
        forbidden = forbidden_changes(home, self._settings, landing.role, merged.before, merged.tree)
        if forbidden:
            record_violation(self._repo, landing, forbidden)
            return role_rejection(forbidden, landing.role)
        found = find_placeholders(home, self._settings, merged.before, merged.tree)
        return placeholder_rejection(found) if found else merged

    def _reject_conflict(self, landing: Landing, conflict: trials.MergeConflict, tip: str) -> None:
        others = self._list_other_changes(tip, landing, conflict.paths)
        rejection = conflict_rejection(self._target.branch, conflict.paths, conflict.reasons, others)
        self._reject(landing, rejection, tip)

    def _list_other_changes(self, tip: str, landing: Landing, paths: Sequence[str]) -> str:
        """Return the commits that changed these paths on the target since the branch was created."""
        base = merge_base(self._repo.home, tip, landing.head)
        form = "%h %s%n  by %an %(trailers:key=Landlane-Agent,unfold,separator=%x2C )"
        options = ("--no-merges", f"--max-count={_MAX_OTHER_COMMITS}", f"--format={form}")
        pathspecs = (f":(top,literal){path}" for path in paths[:50])
        log = try_git_output(self._repo.home, "log", *options, f"{base}..{tip}", "--", *pathspecs)
        return f"Commits that changed the same files:\n{log}" if log else ""

    def _check(self, chain: Sequence[Candidate]) -> CheckResult:
        """Run the checks on the last commit of a chain, and show the progress to those who wait."""
        ids = [candidate.landing.id for candidate in chain]
        paths = [path for candidate in chain for path in candidate.landing.paths]
        more = f" with {len(ids) - 1} more" if len(ids) > 1 else ""

        def on_check(name: str, done: Sequence[CheckRun]) -> None:
            records.set_stage(
                self._repo,
                self._mover.lease,
                ids,
                f"testing{more}: {name}",
                check=name,
                checks=[as_dict(run) for run in done],
                stage_at=self._repo.wall_ms(),
            )
            self._on_check(ids, name)
            self._on_step("checking")

        result = self._check_tree(chain[-1].commit, chain[-1].tree, paths, on_check)
        self._on_step("tested")
        return result

    def _check_tree(
        self,
        commit: str,
        tree: str,
        paths: Sequence[str],
        on_check: Callable[[str, Sequence[CheckRun]], None] = lambda _, __: None,
        *,
        rerun_failed: bool = False,
    ) -> CheckResult:
        validators = validators_for(self._repo, self._settings, paths)
        rerun_failed = rerun_failed or self._is_rechecking
        return self._checks.check(commit, tree, validators, on_check, rerun_failed=rerun_failed)

    def _passes(self, commit: str, landing: Landing) -> bool:
        tree = trials.tree_of(self._repo.home, commit)
        return self._check_tree(commit, tree, landing.paths).is_green

    def _bisect(self, chain: Sequence[Candidate]) -> int:
        """Find the entry that makes a chain fail, and land the others; return how many ended.

        The entries behind the failing one are tested together once it is gone: mostly they pass.
        """
        self.has_bisected = True
        ended = 0
        later: list[Landing] = []
        failing = chain
        while len(chain) > 1:
            size = first_half(len(chain))
            first, rest = chain[:size], chain[size:]
            behind = [*(candidate.landing for candidate in rest), *later]
            result = self._check(first)
            if not result.is_green:
                later = behind
                chain = failing = first
                continue
            landed = self._mover.land(first, result)
            if not landed:  # the target has moved: the rest is based on commits that did not land
                self._requeue(behind, "merged and tested again: the target has moved")
                return ended
            ended += landed
            chain = rest  # its last commit was tested before, and fails
        ended += self._reject_failing(chain[0], failing)
        return ended + (self.land(self._mover.find_tip(), later) if later else 0)

    def _reject_failing(self, candidate: Candidate, chain: Sequence[Candidate]) -> int:
        """Reject the entry that makes a chain fail, or requeue it if the target itself fails.

        A saved failure of the target is checked again, since it may have come from an outage; if the target
        passes now, the entry is checked again as well.
        """
        landing = candidate.landing
        result = self._check(chain)  # of the same chain as before: paths may have validators of their own
        tree = trials.tree_of(self._repo.home, candidate.before)
        target_result = self._check_tree(candidate.before, tree, ())
        if not target_result.is_green:
            target_result = self._check_tree(candidate.before, tree, (), rerun_failed=True)
            self._is_rechecking = self._is_rechecking or target_result.is_green
            result = self._check(chain)
        if result.is_green:
            return self._mover.land([candidate], result)
        is_fix = self._is_fix(landing)
        if not target_result.is_green:
            self._note_failing_target(candidate.before, target_result)
            if not is_fix and not _breaks_passing_check(result, target_result):
                self._requeue_for_failing_target(landing)
                return 0
        else:
            record_target_passing(self._repo, self._mover.lease, self._target.branch, candidate.before)
        rejection = Rejection(
            code="CHECK_FAILED",
            reason=result.reason,
            hint="fix it, commit and land again",
            output=result.output,
            checks=result.runs,
        )
        if not target_result.is_green:
            rejection = replace(
                rejection, reason=f"{self._target.branch} still fails with it: {result.reason}"
            )
            self._reject(landing, rejection, candidate.before)
            return 1
        other = self._find_incompatible(candidate)
        if other is not None:
            rejection = replace(
                rejection,
                reason=f"it breaks with {other}",
                hint=f"adapt to {other.commit[:8]} and land again: landlane sync --update rebase",
                output=f"{result.output}\n\nIt fails only together with {other}, which has landed.\n",
                pair=other.landing,
                pair_commit=other.commit,
            )
        self._reject(landing, rejection, candidate.before)
        return 1

    def _is_fix(self, landing: Landing) -> bool:
        """Return whether the task of an entry is to repair the target."""
        if not landing.task:
            return False
        task = self._repo.store.view(lambda snapshot: find_task(snapshot, landing.task))
        return task is not None and FIXES_TARGET in task.labels

    def _note_failing_target(self, tip: str, target_result: CheckResult) -> None:
        branch = self._target.branch
        failure = describe_failure(self._repo, branch, tip, target_result)
        record_target_failure(self._repo, self._mover.lease, branch, failure)
        self.target_failure = target_failing_error(branch, failure, self._repo.wall_ms())

    def _requeue_for_failing_target(self, landing: Landing) -> None:
        """Let an entry wait, uncharged, until another one repairs the target."""
        assert self.target_failure is not None
        self._requeue([landing], self.target_failure.message, self.target_failure.code)

    def _find_incompatible(self, candidate: Candidate) -> TargetCommit | None:
        """Bisect the target's commits since the branch was created for the one that the entry fails with."""
        home, landing = self._repo.home, candidate.landing
        base = merge_base(home, candidate.before, landing.head)
        command = ("rev-list", "--first-parent", "--reverse", f"{base}..{candidate.before}")
        commits = try_git_output(home, *command).splitlines()[-_MAX_BISECTED:]
        if not commits or not self._passes(landing.head, landing):
            return None
        low, high = 0, len(commits) - 1  # it passes before the first and fails after the last of them
        while low < high:
            middle = (low + high) // 2
            merged = self._merge_entry(commits[middle], landing)
            is_failing = not isinstance(merged, Candidate) or not self._passes(merged.commit, landing)
            low, high = (low, middle) if is_failing else (middle + 1, high)
        return describe_commit(self._repo, commits[low])

    def _requeue(self, landings: Sequence[Landing], reason: str, code: str = "") -> None:
        ids = [landing.id for landing in landings]
        records.requeue(self._repo, self._mover.lease, ids, reason, code)

    def _reject(self, landing: Landing, rejection: Rejection, base: str) -> None:
        rejection = replace(
            rejection,
            reason=printable(rejection.reason),
            hint=printable(rejection.hint),
            output=printable(rejection.output),
        )
        ended = reject_entry(self._repo, self._mover.lease, landing.id, rejection, base=base)
        delete_entry_ref(self._repo, self._target, ended)
        self._on_step("bounced")

    def _mark_contained(self, landing: Landing, tip: str) -> None:
        """Mark an entry as landed whose changes the target already contains."""
        notes = [f"{self._target.branch} already contained all of it"]
        entry = LandedEntry(id=landing.id, commit=tip, base=tip, notes=notes)
        branch = self._target.branch
        queue = records.get_queue(self._repo, branch)
        mark_landed(self._repo, self._mover.lease, branch, [entry], queue.tip)


def _breaks_passing_check(result: CheckResult, target_result: CheckResult) -> bool:
    """Return whether an entry fails a check that the failing target passes: that is its own fault."""
    passed = {run.name for run in target_result.runs if run.is_green}
    is_validator = result.check.startswith(VALIDATOR)
    return is_validator or result.check in passed
