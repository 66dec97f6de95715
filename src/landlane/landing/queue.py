"""The queue runner: merges entries onto the tip, checks exactly the merged tree, moves the target branch.

One process runs it at a time, under a lease whose token every write shows. A batch of entries is merged one
on top of the other and tested as one; if it is red, the first half is tried alone, and so on, until the
culprit stands alone and goes back to its author while the others land. Before the target is moved, the move
is written down; whoever finds such a record after a crash asks where the target is, and settles it.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, RepositoryError, Stale, WaitsForPerson
from landlane.git import pins
from landlane.git import trial_merge as trials
from landlane.git.ancestry import is_ancestor
from landlane.git.target import TargetBranch, commit_at, fetch_target, find_target
from landlane.landing import move_target as advancing
from landlane.landing import records as operations
from landlane.landing.after_landing import integrate, is_checkout_root, settle_landed, tidy_pins
from landlane.landing.batch import Halving, Means, batch_size
from landlane.landing.check import Bench, Verdict
from landlane.landing.combine import Candidate, recipe_for
from landlane.landing.forward_checkouts import follow_locally, forward_checkouts
from landlane.landing.model import LANDED, OPEN, QUEUED, TESTING, Landing, Move, Queue
from landlane.landing.outcomes import mark_landed
from landlane.landing.target_settings import gate_for, settings_at
from landlane.sessions.runner_lease import RunnerBusy, RunnerLease, end_runner, renew_runner, take_runner
from landlane.values import value
from landlane.workspaces.committed_settings import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session


LEASE_MS = 60_000
_MOST_GROWTH = 4
_MOST_IDLE = 2  # rounds in which nothing ended: what is left waits for others, or for a person
_MOST_LATE = 20  # moves that may still arrive: each was from where the target is now
_MOST_AGAIN = 20  # rounds in a row in which somebody else moved the target under our feet


@value
class Round:
    """What one round came to: how many ended, and why the queue stopped if it did."""

    ended: int = 0
    stop: LandlaneError | None = None
    is_overtaken: bool = False  # the target moved while it was tested: the same once more


def queue_name(target: str) -> str:
    """The name under which a queue is run."""
    return f"queue:{target}"


class QueueRunner:
    """One process that runs the queue of one target branch."""

    def __init__(
        self,
        repo: Repository,
        who: Session | str,
        lease: RunnerLease,
        target: TargetBranch,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._repo = repo
        self._who = who
        self._lease = lease
        self._target = target
        self._on_step = on_step
        self._settings = repo.settings
        self._bench: Bench | None = None
        self._is_overtaken = False
        self._runner_ref = advancing.runner_ref(target, lease.token)
        self._has_runner_ref = False
        self._has_tidied = False
        self._growth = 1
        self._greens = 0
        self._notes: dict[str, tuple[str, ...]] = {}  # what merging each entry came to
        self.seen: set[str] = set()  # the entries that stood in line when it last looked

    def close(self) -> None:
        """Let somebody else run the queue."""
        if self._bench is not None:
            self._bench.close()
        if self._has_runner_ref:
            advancing.delete_runner_ref(self._repo.home, self._runner_ref)
        end_runner(self._repo, self._lease)

    def run_round(self) -> Round:
        """Land or send back one batch.

        Raises:
            Stale: somebody else runs the queue by now.
        """
        try:
            self._recover()
            settle_landed(self._repo, self._target)
            tip = self._find_tip()
            waiting = self._waiting()
            if not waiting:
                self._settings = read_at(self._repo, tip)
                self._integrate()  # what it waited for may have been taken out, or whoever landed was cut off
                return Round()
            self._settings = settings_at(self._repo, self._target, tip)
            self._is_overtaken = False
            ended = self._work_off(tip, waiting)
        except Stale:
            raise
        except LandlaneError as error:
            self._put_everything_back(error)
            return Round(stop=error)
        except OSError as error:
            refused = RepositoryError(
                f"the queue cannot go on: {error}",
                code="SYSTEM_REFUSED",
                hint="nothing is lost: check the disk and the permissions, then `landlane queue run`",
            )
            self._put_everything_back(refused)
            return Round(stop=refused)
        finally:
            if self._bench is not None:
                self._bench.close()
        settle_landed(self._repo, self._target)
        self._integrate()
        self._on_step("settled")
        return Round(ended=ended, is_overtaken=self._is_overtaken)

    def _integrate(self) -> None:
        """Open the task for the whole; what has landed has landed, whether that works or not."""
        try:
            integrate(self._repo, self._target, self._settings)
        except (LandlaneError, OSError) as error:
            self._repo.report(f"no task for the whole was opened, the next run tries again: {error}")

    def _work_off(self, tip: str, waiting: Sequence[Landing]) -> int:
        """Work on one batch; and on the next if the target is red, since what mends it may stand far behind.

        Raises:
            RepositoryError: the target is red, and nothing that waits mends it.
        """
        self._bench = bench = self._new_bench()
        halving = Halving(
            Means(
                repo=self._repo,
                target=self._target,
                recipe=recipe_for(self._repo, self._settings, bench.regenerate),
                bench=bench,
                lease=lambda: self._lease,
                find_tip=self._find_tip,
                land=self._land,
                tick=self._tick,
                on_step=self._on_step,
            )
        )
        left = [one for one in waiting if not self._is_gated(one)]
        while left:
            size = batch_size(left, self._settings.landing.batch * self._growth)
            batch = operations.begin_testing(self._repo, self._lease, [one.id for one in left[:size]])
            self._on_step("testing")
            ended = halving.work_off(tip, batch)
            self._grow(is_green=ended == len(batch) and not halving.has_halved)
            if ended or halving.red is None:
                return ended
            left = left[size:]
        if halving.red is not None:
            raise halving.red
        return 0

    def _grow(self, *, is_green: bool) -> None:
        """While all is green, test more together: a test of twice as many tells as much for half the cost.

        Two greens are asked for: with one culprit in ten, the next batch after one is mostly red.
        """
        is_wanted = self._settings.landing.batch > 1  # else one at a time was asked for
        self._greens = self._greens + 1 if is_green and is_wanted else 0
        if not self._greens:
            self._growth = 1
        elif self._greens % 2 == 0:
            self._growth = min(self._growth * 2, _MOST_GROWTH)

    def _is_gated(self, landing: Landing) -> bool:
        """Whether a person must decide; the target may ask for that only since the entry was submitted."""
        gate = gate_for(self._repo, self._settings, landing.paths)
        if not gate or landing.approved_head == landing.head:
            return False
        operations.hold(self._repo, self._lease, landing.id, gate)
        return True

    def _new_bench(self) -> Bench:
        if self._bench is not None:
            self._bench.close()
        return Bench(self._repo, self._settings, self._target.branch, self._tick)

    def _tick(self) -> None:
        self._lease = renew_runner(self._repo, self._lease)

    def _waiting(self) -> list[Landing]:
        """What can be worked on here: the commits must be had."""
        found = [
            one
            for one in operations.list_landings(self._repo, (QUEUED, TESTING))
            if one.target == self._target.branch and (not one.gate or one.approved_head == one.head)
        ]
        self.seen = {one.id for one in found}
        home = self._repo.home
        missing = trials.missing_commits(home, [one.head for one in found])
        gone = {head for head in missing if not pins.ensure_commit(home, self._target, head)}
        return [one for one in found if one.head not in gone]

    def _recover(self) -> None:
        """Settle what a runner that was cut off left behind."""
        if not self._has_tidied:
            advancing.clear_way(self._repo.home, self._target)
        # First of all: whoever was overtaken and wakes up now finds that it moves nothing any more.
        advancing.delete_runner_refs(self._repo.home, self._target, keep=self._runner_ref)
        queue = operations.get_queue(self._repo, self._target.branch)
        if queue.move:
            self._recover_move(queue)
            self._on_step("recovered")
        left = self._in_hand()
        if left:
            operations.put_back(self._repo, self._lease, left, "whoever tested it was cut off")
        if not self._has_tidied:
            tidy_pins(self._repo, self._target)
            self._has_tidied = True

    def _recover_move(self, queue: Queue) -> None:
        """Find out whether a move that was written down was made; what a remote may yet do is remembered."""
        move = _move_from(queue.move)
        asked = advancing.where_is(self._repo.home, self._target, move.before, move.after)
        if asked.state == advancing.UNKNOWN:
            raise remote_gone(self._target, asked.trouble)
        if asked.state == advancing.MOVED:
            trouble = fetch_target(self._repo.home, self._target, self._tick)
            if trouble:
                raise remote_gone(self._target, trouble)
            self._settle_move(move)
            return
        self._abandon(queue)

    def _abandon(self, queue: Queue) -> None:
        """Write down that a move was not made; a remote whose connection broke may still make it."""
        late = [*queue.late, queue.move][-_MOST_LATE:] if self._target.remote else []
        operations.change_queue(self._repo, self._lease, self._target.branch, "abandoned", move={}, late=late)

    def _in_hand(self) -> list[str]:
        """The entries that are being tested for this target."""
        found = operations.list_landings(self._repo, (TESTING,))
        return [one.id for one in found if one.target == self._target.branch]

    def _find_tip(self) -> str:
        """Where the target is now; a rewound one stops the queue until a person has looked.

        Raises:
            LandlaneError: the remote is gone, or the target was rewound.
        """
        home, target = self._repo.home, self._target
        trouble = fetch_target(home, target, self._tick)
        if trouble:
            raise remote_gone(target, trouble)
        tip = commit_at(home, target.remote_ref or target.ref)
        queue = operations.get_queue(self._repo, target.branch)
        if not tip:
            raise RepositoryError(
                f"there is no {target.branch}", code="NO_TARGET", hint="push a first commit there"
            )
        queue = self._meet_late(queue, tip)
        is_kept = not queue.tip or is_ancestor(home, queue.tip, tip)
        if not is_kept and not target.remote and trials.missing_commits(home, [queue.tip]):
            raise RepositoryError(
                f"another clone landed {queue.tip[:12]} on a {target.branch} of its own",
                code="NO_SHARED_TARGET",
                hint="clones that share their state need a remote to land on: git remote add origin URL",
            )
        if not is_kept and queue.state != "paused":
            reason = f"{target.branch} was rewound: {queue.tip[:12]} landed there, and is not in {tip[:12]}"
            queue = operations.change_queue(
                self._repo,
                self._lease,
                target.branch,
                "paused",
                state="paused",
                reason=reason,
                code="REWOUND",
            )
        if queue.state == "paused":
            raise WaitsForPerson(
                queue.reason,
                code="QUEUE_PAUSED",
                hint="look at it; then go on from there: landlane queue resume --why …",
            )
        return tip

    def _meet_late(self, queue: Queue, tip: str) -> Queue:
        """What was pushed by a runner that was cut off may have arrived since; or it cannot any more."""
        for move in [_move_from(one) for one in queue.late]:
            if advancing.is_in(self._repo.home, move.after, tip):
                self._settle_move(move, is_late=True)
        late = [one for one in queue.late if one["before"] == tip]
        if late != queue.late:
            operations.change_queue(self._repo, self._lease, self._target.branch, "met", late=late)
        return operations.get_queue(self._repo, self._target.branch) if queue.late else queue

    def _put_everything_back(self, error: LandlaneError) -> None:
        left = self._in_hand()
        if left:
            operations.put_back(self._repo, self._lease, left, error.message, error.code)

    def _land(self, chain: Sequence[Candidate], verdict: Verdict) -> int:
        """Move the target to a tree that was tested; tells how many landed."""
        before, after = chain[0].before, chain[-1].commit
        ids = [one.landing.id for one in chain]
        move = Move(before=before, after=after, entries=ids, commits=[one.commit for one in chain])
        operations.show_stage(self._repo, self._lease, ids, "landing")
        # Kept until it is settled: nothing else leads to these commits if we die now.
        self._has_runner_ref = True
        advancing.write_runner_ref(self._repo.home, self._runner_ref, after)
        if not operations.begin_move(self._repo, self._lease, self._target.branch, move):
            advancing.delete_runner_ref(self._repo.home, self._runner_ref)
            self._is_overtaken = True
            operations.put_back(self._repo, self._lease, ids, "another entry beside it was taken out")
            return 0
        self._on_step("written")
        self._tick()
        advanced = advancing.advance(
            self._repo.home,
            self._target,
            before,
            after,
            f"landlane: land {', '.join(ids)}",
            runner_ref=self._runner_ref,
            on_tick=self._tick,
        )
        self._on_step("moved")
        if advanced.state == advancing.MOVED:
            self._notes = {one.landing.id: one.notes for one in chain}
            self._settle_move(move, verdict)
            return len(chain)
        if advanced.state == advancing.UNKNOWN:  # what was written down stays, and is asked for next time
            raise remote_gone(self._target, advanced.trouble)
        self._abandon(
            operations.get_queue(self._repo, self._target.branch)
        )  # only if the queue is still ours
        advancing.delete_runner_ref(self._repo.home, self._runner_ref)
        if advanced.state == advancing.ELSEWHERE:
            self._is_overtaken = True
            operations.put_back(self._repo, self._lease, ids, f"merged and tested again: {advanced.trouble}")
            return 0
        raise RepositoryError(
            f"{self._target.branch} cannot be moved: {advanced.trouble or 'git refused'}",
            code="TARGET_REFUSED",
            hint="a hook or a protection refuses it: mend that, then `landlane queue run`",
        )

    def _settle_move(self, move: Move, verdict: Verdict | None = None, *, is_late: bool = False) -> None:
        """The target has moved: let checkouts follow, and write down what has landed."""
        home, target = self._repo.home, self._target
        notes = forward_checkouts(home, target, move.before, move.after, self._tick)
        follow_locally(home, target, move.after)
        self._on_step("forwarded")
        flaky = list(verdict.flaky) if verdict is not None else []
        landed: list[tuple[str, str, dict[str, object]]] = []
        before = move.before
        for landing_id, commit in zip(move.entries, move.commits, strict=True):
            told = [*self._notes.get(landing_id, ()), *notes]
            landed.append((landing_id, commit, {"base": before, "notes": told, "flaky": flaky}))
            before = commit
        mark_landed(
            self._repo,
            self._lease,
            target.branch,
            landed,
            move.after,
            self._repo.wall_ms(),
            is_late=is_late,
            is_checkout=is_checkout_root,
        )
        advancing.delete_runner_refs(home, target)
        for note in notes:
            self._repo.report(note)
        self._on_step("landed")


def remote_gone(target: TargetBranch, trouble: str) -> RepositoryError:
    """Nobody can tell now where the target is."""
    return RepositoryError(
        f"{target.remote} cannot be asked: {trouble}",
        code="REMOTE_GONE",
        hint="nothing is lost: mend the connection, then `landlane queue run`",
    )


def _move_from(fields: Mapping[str, object]) -> Move:
    return Move(**fields)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def start_running(
    repo: Repository,
    who: Session | str,
    on_step: Callable[[str], None] = lambda _: None,
    *,
    lease_ms: int = LEASE_MS,
) -> QueueRunner | RunnerBusy:
    """Become the one that runs the queue, or say who does."""
    target = find_target(repo.home, repo.settings)
    lease = take_runner(repo, who, queue_name(target.branch), lease_ms)
    if isinstance(lease, RunnerBusy):
        return lease
    return QueueRunner(repo, who, lease, target, on_step)


def drain(runner: QueueRunner, is_enough: Callable[[], bool] = lambda: False) -> LandlaneError | None:
    """Run rounds until nothing is left to do, or it is enough; tells why it stopped early.

    Raises:
        Stale: somebody else runs the queue by now.
    """
    idle = again = 0
    while not is_enough():
        done = runner.run_round()
        if done.stop is not None:
            return done.stop
        again = again + 1 if done.is_overtaken else 0
        idle = 0 if done.ended or 0 < again < _MOST_AGAIN else idle + 1
        if idle >= _MOST_IDLE:
            return None
    return None


def is_over(landing: Landing) -> bool:
    """Whether an entry has ended, and everything that follows with it."""
    return landing.state not in OPEN and (landing.state != LANDED or landing.is_settled)
