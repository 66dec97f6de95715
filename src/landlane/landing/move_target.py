"""Move the target branch: only forward, and only from the tip that was checked.

A local move is one git transaction that also verifies the runner's own ref, and a runner that takes over
deletes that ref first, so an overtaken runner moves nothing. A remote has no such ref: a push that arrives
after its runner was given up still moves the branch, to a tree that was tested on that tip.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import RepositoryError, WaitsForPerson
from landlane.git import trial_merge as trials
from landlane.git.lock import git_lock, wait_for_refs
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import run_in, try_git_output
from landlane.git.target import PUSH_SECONDS, TargetBranch, commit_at, fetch_target, is_ancestor
from landlane.landing.after_landing import forward_checkouts, update_local_target
from landlane.landing.model import QueueState, TargetMove
from landlane.landing.outcomes import LandedEntry, mark_landed
from landlane.landing.records import begin_move, get_queue, requeue, set_stage, update_queue
from landlane.sessions.runner_lease import RunnerLease, renew_runner
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.discovery import Checkout
    from landlane.landing.combine import Candidate
    from landlane.landing.model import Queue
    from landlane.landing.run_checks import CheckResult
    from landlane.repository import Repository

_RUNNER_REFS = "refs/landlane/moving/"
_MAX_LATE_MOVES = 20


class MoveState(StrEnum):
    """What is known about a move of the target branch."""

    MOVED = "moved"
    ELSEWHERE = "elsewhere"  # the target is no longer at the commit that was tested from
    REFUSED = "refused"
    UNKNOWN = "unknown"  # the remote cannot be asked


@value
class MoveResult:
    """The outcome of a move, with the error text of git if there is any."""

    state: MoveState
    trouble: str = ""


class TargetMover:
    """Finds the tip of a target branch and moves it, under the lease of one queue runner."""

    def __init__(
        self, repo: Repository, lease: RunnerLease, target: TargetBranch, on_step: Callable[[str], None]
    ) -> None:
        self._repo = repo
        self._home = repo.home
        self._target = target
        self._on_step = on_step
        self._ref = f"{_RUNNER_REFS}{target.branch}/{lease.token}"
        self._has_ref = False
        self.lease = lease
        self.is_overtaken = False  # the target or a batch changed while it was tested

    def renew_lease(self) -> None:
        """Renew the lease of the runner if it is time to."""
        self.lease = renew_runner(self._repo, self.lease)

    def close(self) -> None:
        """Delete the ref of this runner."""
        if self._has_ref:
            _delete_ref(self._home, self._ref)

    def wait_for_locks(self) -> None:
        """Wait for other processes that write the target's refs; remove locks that a killed git left.

        Raises:
            RepositoryError: a process does not finish.
        """
        refs = [ref for ref in (self._target.ref, self._target.remote_ref) if ref]
        with git_lock(self._home.common_dir, f"clear the way to {self._target.branch}"):
            wait_for_refs(self._home, refs, [root for _, root in list_worktrees(self._home)])

    def recover(self) -> None:
        """Find out whether a move that an earlier runner recorded was made, and settle it.

        Raises:
            RepositoryError: the remote cannot be asked.
        """
        # First of all: an overtaken runner that wakes up now can no longer move the target.
        self._delete_refs(keep=self._ref)
        queue = self._get_queue()
        move = queue.pending_move
        if move is None:
            return
        result = find_move_state(self._home, self._target, move.before, move.after)
        if result.state == MoveState.UNKNOWN:
            raise remote_gone(self._target, result.trouble)
        if result.state == MoveState.MOVED:
            self._fetch()
            self._settle(move)
        else:
            self._abandon(queue)
        self._on_step("recovered")

    def find_tip(self) -> str:
        """Return the current tip of the target; pause the queue if the target was rewound.

        Raises:
            LandlaneError: the remote cannot be reached, or the target was rewound.
        """
        home, target = self._home, self._target
        self._fetch()
        tip = commit_at(home, target.remote_ref or target.ref)
        if not tip:
            raise RepositoryError(
                f"there is no {target.branch}", code="NO_TARGET", hint="push a first commit there"
            )
        queue = self._settle_late_moves(tip)
        is_rewound = bool(queue.tip) and not is_ancestor(home, queue.tip, tip)
        if is_rewound and not target.remote and trials.missing_commits(home, [queue.tip]):
            raise RepositoryError(
                f"another clone landed {queue.tip[:12]} on a {target.branch} of its own",
                code="NO_SHARED_TARGET",
                hint="clones that share their state need a remote to land on: git remote add origin URL",
            )
        if is_rewound and not queue.is_paused:
            reason = f"{target.branch} was rewound: {queue.tip[:12]} landed there, and is not in {tip[:12]}"
            queue = self._update_queue("paused", state=QueueState.PAUSED, reason=reason, code="REWOUND")
        if queue.is_paused:
            raise WaitsForPerson(
                queue.reason,
                code="QUEUE_PAUSED",
                hint="look at it; then go on from there: landlane queue resume --why …",
            )
        return tip

    def land(self, chain: Sequence[Candidate], tested: CheckResult) -> int:
        """Move the target to the last of these tested commits; return how many entries landed.

        Raises:
            RepositoryError: the target cannot be moved, or the remote does not answer.
        """
        before, after = chain[0].before, chain[-1].commit
        ids = [candidate.landing.id for candidate in chain]
        commits = [candidate.commit for candidate in chain]
        move = TargetMove(before=before, after=after, entries=ids, commits=commits)
        checks = [as_dict(run) for run in tested.runs]
        set_stage(self._repo, self.lease, ids, "landing", checks=checks, check="", stage_at=0)
        # It keeps the commits until the move is settled: nothing else refers to them after a crash.
        self._write_ref(after)
        if not begin_move(self._repo, self.lease, self._target.branch, move):
            _delete_ref(self._home, self._ref)
            return self._test_again(ids, "an entry beside it was taken out, or a key that it expects moved")
        self._on_step("written")
        self.renew_lease()
        result = self._advance(before, after, f"landlane: land {', '.join(ids)}")
        self._on_step("moved")
        if result.state == MoveState.MOVED:
            self._settle(move, {one.landing.id: one.notes for one in chain}, tested.flaky)
            return len(chain)
        if result.state == MoveState.UNKNOWN:  # the recorded move stays, and is settled by the next run
            raise remote_gone(self._target, result.trouble)
        self._abandon(self._get_queue())
        _delete_ref(self._home, self._ref)
        if result.state == MoveState.ELSEWHERE:
            return self._test_again(ids, f"merged and tested again: {result.trouble}")
        raise RepositoryError(
            f"{self._target.branch} cannot be moved: {result.trouble or 'git refused'}",
            code="TARGET_REFUSED",
            hint="a hook or a branch protection refuses it; fix that, then: landlane queue run",
        )

    def _test_again(self, ids: Sequence[str], reason: str) -> int:
        self.is_overtaken = True
        requeue(self._repo, self.lease, ids, reason)
        return 0

    def _settle(
        self,
        move: TargetMove,
        merge_notes: dict[str, tuple[str, ...]] | None = None,
        flaky: Sequence[str] = (),
        *,
        is_late: bool = False,
    ) -> None:
        """Update the checkouts of the target after a move, and mark its entries as landed."""
        notes = forward_checkouts(self._home, self._target, move.before, move.after, self.renew_lease)
        update_local_target(self._home, self._target, move.after)
        self._on_step("forwarded")
        bases = [move.before, *move.commits]
        landed = [
            LandedEntry(
                id=landing_id,
                commit=commit,
                base=base,
                notes=[*(merge_notes or {}).get(landing_id, ()), *notes],
                flaky=list(flaky),
            )
            for landing_id, commit, base in zip(move.entries, move.commits, bases, strict=False)
        ]
        mark_landed(
            self._repo,
            self.lease,
            self._target.branch,
            landed,
            move.after,
            is_late=is_late,
            tested=move.after,
        )
        self._delete_refs()
        for note in notes:
            self._repo.report(note)
        self._on_step("landed")

    def _settle_late_moves(self, tip: str) -> Queue:
        """Settle the moves of stopped runners whose push arrived; forget those that can no longer arrive."""
        queue = self._get_queue()
        for move in queue.late_moves:
            if is_ancestor(self._home, move.after, tip):
                self._settle(move, is_late=True)
        late = [fields for fields in queue.late if fields["before"] == tip]
        if late != queue.late:
            self._update_queue("met", late=late)
        return self._get_queue() if queue.late else queue

    def _abandon(self, queue: Queue) -> None:
        """Record that a move was not made; a remote whose connection broke may still make it."""
        late = [*queue.late, queue.move][-_MAX_LATE_MOVES:] if self._target.remote else []
        self._update_queue("abandoned", move={}, late=late)

    def _advance(self, before: str, after: str, why: str) -> MoveResult:
        """Move the target from one commit to a later one.

        With a remote, the remote's branch is moved by a push that fails if it is not at `before`.
        """
        home, target = self._home, self._target
        if not is_ancestor(home, before, after):
            trouble = f"{after[:12]} does not contain {before[:12]}"
            return MoveResult(state=MoveState.REFUSED, trouble=trouble)
        if target.remote:
            return self._push(before, after)
        with git_lock(home.common_dir, f"land on {target.branch}", on_tick=self.renew_lease):
            now = commit_at(home, target.ref)
            if now == after:
                return MoveResult(state=MoveState.MOVED)
            if now != before:
                trouble = f"{target.branch} is at {now[:12]} by now"
                return MoveResult(state=MoveState.ELSEWHERE, trouble=trouble)
            commands = f"update {target.ref} {after} {before}\nverify {self._ref} {after}\n"
            done = run_in(home, "update-ref", "-m", why, "--stdin", stdin=commands.encode())
            if not done.exit_code:
                return MoveResult(state=MoveState.MOVED)
            state = find_move_state(home, target, before, after).state
            return MoveResult(state=state, trouble=done.stderr[-500:])

    def _push(self, before: str, after: str) -> MoveResult:
        home, target = self._home, self._target
        pushed = run_in(
            home,
            *("push", "--quiet", "--porcelain", "--atomic", f"--force-with-lease={target.ref}:{before}"),
            *("--no-recurse-submodules", target.remote, f"{after}:{target.ref}"),
            limit_seconds=PUSH_SECONDS,
            on_tick=self.renew_lease,
        )
        if not pushed.exit_code:
            run_in(home, "update-ref", target.remote_ref, after)
            return MoveResult(state=MoveState.MOVED)
        result = find_move_state(home, target, before, after)
        error = (pushed.stderr or pushed.stdout).strip()[-500:]
        return MoveResult(state=result.state, trouble=error or result.trouble)

    def _fetch(self) -> None:
        trouble = fetch_target(self._home, self._target, self.renew_lease)
        if trouble:
            raise remote_gone(self._target, trouble)

    def _get_queue(self) -> Queue:
        return get_queue(self._repo, self._target.branch)

    def _update_queue(self, verb: str, **fields: object) -> Queue:
        return update_queue(self._repo, self.lease, self._target.branch, verb, **fields)

    def _write_ref(self, after: str) -> None:
        self._has_ref = True
        done = run_in(self._home, "update-ref", self._ref, after)
        if done.exit_code:
            raise RepositoryError(
                f"{self._ref} cannot be written: {done.stderr[-300:]}",
                code="GIT_FAILED",
                hint="look for a full disk, and run `git fsck`",
            )

    def _delete_refs(self, keep: str = "") -> None:
        """Delete the refs of all runners but one, so that they can no longer move the target."""
        pattern = _RUNNER_REFS + self._target.branch
        for ref in try_git_output(self._home, "for-each-ref", "--format=%(refname)", pattern).splitlines():
            if ref != keep:
                _delete_ref(self._home, ref)


def _delete_ref(home: Checkout, ref: str) -> None:
    run_in(home, "update-ref", "-d", ref)


def find_move_state(home: Checkout, target: TargetBranch, before: str, after: str) -> MoveResult:
    """Return whether a move that may have been interrupted was made."""
    if not target.remote:
        now = commit_at(home, target.ref)
    else:
        listed = run_in(home, "ls-remote", "--quiet", target.remote, target.ref, limit_seconds=PUSH_SECONDS)
        if listed.exit_code:
            return MoveResult(state=MoveState.UNKNOWN, trouble=listed.stderr[-500:])
        now = listed.stdout.split("\t")[0].strip()
    if now == after:
        return MoveResult(state=MoveState.MOVED)
    if now == before:
        return MoveResult(state=MoveState.REFUSED)
    if target.remote and now and try_git_output(home, "cat-file", "-t", now) != "commit":
        run_in(home, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", target.remote, target.ref)
    is_contained = now and is_ancestor(home, after, now)
    state = MoveState.MOVED if is_contained else MoveState.ELSEWHERE
    return MoveResult(state=state, trouble=f"{target.branch} is at {now[:12]}")


def remote_gone(target: TargetBranch, trouble: str) -> RepositoryError:
    """Return the error for a remote that cannot be reached."""
    return RepositoryError(
        f"{target.remote} cannot be asked: {trouble}",
        code="REMOTE_GONE",
        hint="nothing is lost; fix the connection, then: landlane queue run",
    )
