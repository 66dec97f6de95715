"""The queue runner: merges entries onto the tip, checks the merged tree, and moves the target branch.

One process runs a queue at a time, under a lease that every write checks. A batch of entries is merged in
order and checked once. If the check fails, the batch is bisected: its first half is tried alone, and so on,
until the failing entry is alone and is rejected while the others land. If the failing entry passes without
the target's latest commits, a second bisection names the commit that it fails together with.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, RepositoryError, Stale
from landlane.git import temporary_refs
from landlane.git import trial_merge as trials
from landlane.git.ancestry import merge_base
from landlane.git.run import try_git_output
from landlane.git.target import TargetBranch, commit_at, fetch_target, find_target
from landlane.landing import records
from landlane.landing.after_landing import (
    clean_up_landed,
    delete_entry_ref,
    open_integration_task,
    repair_submitted_refs,
)
from landlane.landing.combine import Candidate, MergeOptions, merge_entry, merge_options, validators_for
from landlane.landing.model import (
    LANDED,
    QUEUE_LEASE_MS,
    QUEUED,
    TESTING,
    Landing,
    Rejection,
    conflict_rejection,
    first_half,
    queue_lease_name,
    role_rejection,
)
from landlane.landing.move_target import TargetMover, remote_gone
from landlane.landing.outcomes import LandedEntry, mark_landed, reject_entry
from landlane.landing.run_checks import CheckResult, CheckRunner
from landlane.landing.target_rules import (
    broken_settings,
    find_gate,
    forbidden_changes,
    record_violation,
    settings_at,
)
from landlane.sessions.runner_lease import RunnerBusy, RunnerLease, end_runner, take_runner
from landlane.settings.model import FILE_NAME
from landlane.text import printable
from landlane.values import replace, value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.landing.model import Queue
    from landlane.repository import Repository
    from landlane.sessions.model import Session

_MAX_GROWTH = 4
_MAX_IDLE_ROUNDS = 2  # rounds in which no entry ended: the rest waits for other machines or for a person
_MAX_OVERTAKEN_ROUNDS = 20  # rounds in a row in which the target moved during the test
_MAX_OTHER_COMMITS = 5
_MAX_BISECTED = 256  # commits, so that a bisection takes at most eight tests


@value
class RoundResult:
    """How many entries ended in a round, and why the queue stopped if it did."""

    ended: int = 0
    stop: LandlaneError | None = None
    is_overtaken: bool = False  # the target moved during the test: try the same again


@value
class IncompatibleCommit:
    """A commit of the target that an entry fails together with, and the entry that landed it, if any."""

    commit: str
    subject: str
    author: str
    landing: str = ""

    def __str__(self) -> str:
        author = f"{self.landing} of {self.author}" if self.landing else self.author
        return f"{self.commit[:12]} ({author}: {self.subject})"


class QueueRunner:
    """One process that runs the queue of one target branch."""

    _merge: MergeOptions  # of the current round

    def __init__(
        self,
        repo: Repository,
        lease: RunnerLease,
        target: TargetBranch,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._repo = repo
        self._target = target
        self._on_step = on_step
        self._settings = repo.settings
        self._mover = TargetMover(repo, lease, target, on_step)
        self._checks = CheckRunner(repo, self._settings, target.branch, self._mover.renew_lease)
        self._has_repaired_refs = False
        self._growth = 1
        self._passed_batches = 0
        self._target_failure: RepositoryError | None = None  # the target itself fails its checks
        self._has_bisected = False
        self._is_rechecking = False  # a saved failure turned out to be wrong: run failed checks again
        self.seen: set[str] = set()  # the ids of the entries that were queued at the last round

    def close(self) -> None:
        """Release the queue, so that another process can run it."""
        self._checks.close()
        self._mover.close()
        end_runner(self._repo, self._mover.lease)

    def run_round(self) -> RoundResult:
        """Land or reject one batch.

        Raises:
            Stale: another process runs the queue now.
        """
        try:
            self._recover()
            clean_up_landed(self._repo, self._target)
            tip = self._mover.find_tip()
            waiting = self._list_waiting()
            if not waiting:
                self._settings = read_at(self._repo, tip)
                # The entry that it waited for may have been ejected, or an earlier runner was killed.
                self._open_integration_task()
                return RoundResult()
            self._settings = settings_at(self._repo, self._target, tip)
            ended = self._land_next_batch(tip, waiting)
        except Stale:
            raise
        except LandlaneError as error:
            return self._stop(error)
        except OSError as error:
            refused = RepositoryError(
                f"the queue cannot go on: {error}",
                code="SYSTEM_REFUSED",
                hint="nothing is lost: check the disk and the permissions, then `landlane queue run`",
            )
            return self._stop(refused)
        finally:
            self._checks.close()
        clean_up_landed(self._repo, self._target)
        self._open_integration_task()
        self._on_step("settled")
        return RoundResult(ended=ended, is_overtaken=self._mover.is_overtaken)

    def _stop(self, error: LandlaneError) -> RoundResult:
        self._requeue(self._list_testing(), error.message, error.code)
        return RoundResult(stop=error)

    def _recover(self) -> None:
        """Settle what a runner that was killed left behind."""
        if not self._has_repaired_refs:
            self._mover.wait_for_locks()
        self._mover.recover()
        self._requeue(self._list_testing(), "whoever tested it was cut off")
        if not self._has_repaired_refs:
            repair_submitted_refs(self._repo, self._target)
            self._has_repaired_refs = True

    def _open_integration_task(self) -> None:
        """Open the integration task; if that fails, the entries have landed nevertheless."""
        try:
            open_integration_task(self._repo, self._target, self._settings)
        except (LandlaneError, OSError) as error:
            self._repo.report(f"no task for the whole was opened, the next run tries again: {error}")

    def _list_waiting(self) -> list[Landing]:
        """Return the entries that can be tested here: their commits must be in this clone."""
        queued = [
            landing
            for landing in records.list_landings(self._repo, (QUEUED, TESTING))
            if landing.target == self._target.branch and not landing.is_gated
        ]
        self.seen = {landing.id for landing in queued}
        home = self._repo.home
        missing = trials.missing_commits(home, [landing.head for landing in queued])
        gone = {head for head in missing if not temporary_refs.fetch_commit(home, self._target, head)}
        return [landing for landing in queued if landing.head not in gone]

    def _list_testing(self) -> list[Landing]:
        testing = records.list_landings(self._repo, (TESTING,))
        return [landing for landing in testing if landing.target == self._target.branch]

    def _land_next_batch(self, tip: str, waiting: Sequence[Landing]) -> int:
        """Land one batch, and the next one if the target itself fails: a later entry may repair it.

        Raises:
            RepositoryError: the target fails its checks, and no waiting entry repairs it.
        """
        self._checks.close()
        self._checks = CheckRunner(self._repo, self._settings, self._target.branch, self._mover.renew_lease)
        self._merge = merge_options(self._repo, self._settings, self._checks.regenerate)
        self._mover.is_overtaken = self._has_bisected = self._is_rechecking = False
        self._target_failure = None
        waiting = [landing for landing in waiting if not self._hold_if_gated(landing)]
        while waiting:
            size = batch_size(waiting, self._settings.landing.batch * self._growth)
            ids = [landing.id for landing in waiting[:size]]
            batch = records.begin_testing(self._repo, self._mover.lease, ids)
            self._on_step("testing")
            ended = self._land_batch(tip, batch)
            self._grow_batches(has_passed=ended == len(batch) and not self._has_bisected)
            if ended or self._target_failure is None:
                return ended
            waiting = waiting[size:]
        if self._target_failure is not None:
            raise self._target_failure
        return 0

    def _hold_if_gated(self, landing: Landing) -> bool:
        """Hold an entry if the target requires an approval since the entry was submitted."""
        gate = find_gate(self._repo, self._settings, landing.paths)
        if not gate or landing.approved_head == landing.head:
            return False
        records.hold(self._repo, self._mover.lease, landing.id, gate)
        return True

    def _grow_batches(self, *, has_passed: bool) -> None:
        """Double the batch size after every two batches that pass; go back to one when a batch fails.

        After a single pass the next batch would mostly fail if one entry in ten is bad.
        """
        is_batching = self._settings.landing.batch > 1
        self._passed_batches = self._passed_batches + 1 if has_passed and is_batching else 0
        if not self._passed_batches:
            self._growth = 1
        elif self._passed_batches % 2 == 0:
            self._growth = min(self._growth * 2, _MAX_GROWTH)

    def _land_batch(self, tip: str, batch: Sequence[Landing]) -> int:
        """Land a batch, bisecting it if it fails; return how many entries ended."""
        chain, ended = self._merge_batch(tip, batch)
        if not chain:
            return ended
        result = self._check(chain)
        if result.is_green:
            return ended + self._mover.land(chain, result.flaky)
        return ended + self._bisect(chain)

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
                    self._requeue([landing], "waits for the entry ahead of it")
                    continue
            if isinstance(outcome, Candidate):
                self._mark_contained(landing, tip)
            elif isinstance(outcome, Rejection):
                self._reject(landing, outcome, tip)
            else:
                self._reject_conflict(landing, outcome, tip)
            ended += 1
        self._on_step("merged")
        return chain, ended

    def _merge_entry(self, onto: str, landing: Landing) -> Candidate | trials.MergeConflict | Rejection:
        """Merge an entry onto a commit, or return its conflict or why it must not land."""
        home = self._repo.home
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
            return Rejection(code="SETTINGS_BROKEN", reason=trouble, hint=f"mend {FILE_NAME}, and land again")
        forbidden = forbidden_changes(home, self._settings, landing.role, merged.before, merged.tree)
        if forbidden:
            record_violation(self._repo, landing, forbidden)
            return role_rejection(forbidden, landing.role)
        return merged

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
        return f"the other side of it:\n{log}" if log else ""

    def _check(self, chain: Sequence[Candidate]) -> CheckResult:
        """Run the checks on the last commit of a chain, and show the progress to those who wait."""
        ids = [candidate.landing.id for candidate in chain]
        paths = [path for candidate in chain for path in candidate.landing.paths]
        more = f" with {len(ids) - 1} more" if len(ids) > 1 else ""

        def on_check(name: str) -> None:
            records.set_stage(self._repo, self._mover.lease, ids, f"testing{more}: {name}")
            self._repo.report(f"{', '.join(ids)}: {name}")
            self._on_step("checking")

        result = self._check_tree(chain[-1].commit, chain[-1].tree, paths, on_check)
        self._on_step("tested")
        return result

    def _check_tree(
        self,
        commit: str,
        tree: str,
        paths: Sequence[str],
        on_check: Callable[[str], None] = lambda _: None,
        *,
        rerun_failed: bool = False,
    ) -> CheckResult:
        validators = validators_for(self._repo, self._merge.rules, paths)
        rerun_failed = rerun_failed or self._is_rechecking
        return self._checks.check(commit, tree, validators, on_check, rerun_failed=rerun_failed)

    def _passes(self, commit: str, landing: Landing) -> bool:
        return self._check_tree(commit, trials.tree_of(self._repo.home, commit), landing.paths).is_green

    def _bisect(self, chain: Sequence[Candidate]) -> int:
        """Find the entry that makes a chain fail, and land the others; return how many ended.

        The entries behind the failing one are tested together once it is gone: mostly they pass.
        """
        self._has_bisected = True
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
            landed = self._mover.land(first, result.flaky)
            if not landed:  # the target has moved: the rest is based on commits that did not land
                self._requeue(behind, "merged and tested again: the target has moved")
                return ended
            ended += landed
            chain = rest  # its last commit was tested before, and fails
        ended += self._reject_failing(chain[0], failing)
        return ended + (self._land_batch(self._mover.find_tip(), later) if later else 0)

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
            return self._mover.land([candidate], result.flaky)
        if not target_result.is_green and target_result.check == result.check:
            self._requeue_for_failing_target(landing, target_result)
            return 0
        rejection = Rejection(
            code="CHECK_FAILED",
            reason=result.reason,
            hint="mend it, commit, and land again",
            output=result.output,
        )
        other = self._find_incompatible(candidate)
        if other is not None:
            rejection = replace(
                rejection,
                reason=f"{result.reason}, and only together with {other}, which has landed",
                hint="landlane sync --update merge, mend what does not fit together with"
                f" {other.commit[:12]}, commit, and land again",
                output=f"{result.output}\n\nthe other side of it:\n{other}\n",
                pair=other.landing,
            )
        self._reject(landing, rejection, candidate.before)
        return 1

    def _requeue_for_failing_target(self, landing: Landing, target_result: CheckResult) -> None:
        """Let an entry wait until another one repairs the target."""
        reason = f"{self._target.branch} itself is red: {target_result.reason}"
        self._requeue([landing], reason, "TARGET_RED")
        self._target_failure = RepositoryError(
            reason, code="TARGET_RED", hint="land a branch that mends it", output=target_result.output
        )

    def _find_incompatible(self, candidate: Candidate) -> IncompatibleCommit | None:
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
        return self._describe_commit(commits[low])

    def _describe_commit(self, commit: str) -> IncompatibleCommit:
        for landing in records.list_landings(self._repo, (LANDED,)):
            if landing.commit == commit:
                return IncompatibleCommit(
                    commit=commit, subject=landing.subject, author=landing.agent, landing=landing.id
                )
        shown = try_git_output(self._repo.home, "show", "-s", "--format=%an%x00%s", commit)
        author, _, subject = shown.partition("\0")
        return IncompatibleCommit(commit=commit, subject=subject, author=author)

    def _requeue(self, landings: Sequence[Landing], reason: str, code: str = "") -> None:
        if landings:
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
        notes = ["the target had all of it already"]
        entry = LandedEntry(id=landing.id, commit=tip, base=tip, notes=notes)
        branch = self._target.branch
        queue = records.get_queue(self._repo, branch)
        mark_landed(self._repo, self._mover.lease, branch, [entry], queue.tip)


def batch_size(waiting: Sequence[Landing], limit: int) -> int:
    """Return how many entries to test together.

    An entry that changes the settings ends its batch: the new settings apply to the next one.
    """
    for index, landing in enumerate(waiting[:limit]):
        if FILE_NAME in landing.paths:
            return index + 1
    return min(limit, len(waiting))


def start_runner(
    repo: Repository,
    who: Session | str,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    lease_ms: int = QUEUE_LEASE_MS,
) -> QueueRunner | RunnerBusy:
    """Take the lease of the queue and return its runner, or return who runs it."""
    target = find_target(repo.home, repo.settings)
    lease = take_runner(repo, who, queue_lease_name(target.branch), lease_ms)
    return lease if isinstance(lease, RunnerBusy) else QueueRunner(repo, lease, target, on_step)


def drain_queue(runner: QueueRunner, is_enough: Callable[[], bool] = lambda: False) -> LandlaneError | None:
    """Run rounds until no entry is left that can be tested, or `is_enough`; return why it stopped early.

    Raises:
        Stale: another process runs the queue now.
    """
    idle = overtaken = 0
    while not is_enough():
        result = runner.run_round()
        if result.stop is not None:
            return result.stop
        overtaken = overtaken + 1 if result.is_overtaken else 0
        idle = 0 if result.ended or 0 < overtaken < _MAX_OVERTAKEN_ROUNDS else idle + 1
        if idle >= _MAX_IDLE_ROUNDS:
            return None
    return None


def resume_queue(repo: Repository, session: Session, why: str) -> Queue:
    """Resume a paused queue from the current tip of the target.

    Raises:
        RepositoryError: the remote cannot be asked.
    """
    target = find_target(repo.home, repo.settings)
    trouble = fetch_target(repo.home, target)
    if trouble:
        raise remote_gone(target, trouble)
    tip = commit_at(repo.home, target.remote_ref or target.ref)
    facts = {"target": target.branch, "tip": tip, "why": why}
    repo.change(lambda tx: tx.record("queue.resuming", session.agent, session.id, facts))
    return records.update_queue(
        repo, None, target.branch, "resumed", state="running", reason="", code="", tip=tip
    )
