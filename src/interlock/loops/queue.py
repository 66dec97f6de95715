"""The landing queue: merges entries onto the tip, tests exactly the merged tree, and moves the target there.

One process runs it at a time, under a lease whose token every write shows. A batch of entries is merged one
on top of the other and tested as one; if it is red, the first half is tried alone, and so on, until the
culprit stands alone and goes back to its author while the others land. Before the target is moved, the move
is written down; whoever finds such a record after a crash asks where the target is, and settles it.
"""

from __future__ import annotations

from interlock.config import FILE_NAME, Settings, check_settings
from interlock.domain.landings import LANDED, OPEN, QUEUED, TESTING, Landing, Move, halves, no_checks
from interlock.errors import InterlockError, RepositoryError, SettingsError, Stale
from interlock.flows.checking import Bench, Verdict
from interlock.flows.combining import Candidate, combine, validators
from interlock.git import advancing, trials
from interlock.git.run import ask, run_in
from interlock.git.target import Target, fetch_target, find_target
from interlock.loops.settling import settle_landed
from interlock.operations import landings as operations
from interlock.operations.runners import RunnerBusy, RunnerLease, end_runner, renew_runner, take_runner
from interlock.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.domain.agents import Session
    from interlock.flows.site import Site

LEASE_MS = 60_000
_MOST_BLAMED = 5


@value
class Round:
    """What one round came to: how many ended, and why the queue stopped if it did."""

    ended: int = 0
    stop: InterlockError | None = None


def queue_name(target: str) -> str:
    """The name under which a queue is run."""
    return f"queue:{target}"


class QueueRunner:
    """One process that runs the queue of one target branch."""

    def __init__(
        self,
        site: Site,
        who: Session | str,
        lease: RunnerLease,
        target: Target,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._site = site
        self._context = site.context
        self._who = who
        self._lease = lease
        self._target = target
        self._on_step = on_step
        self._settings = site.settings
        self._bench: Bench | None = None
        self._start = ""  # the tip at which the present batch began

    def close(self) -> None:
        """Let somebody else run the queue."""
        if self._bench is not None:
            self._bench.close()
        end_runner(self._context, self._lease)

    def run_round(self) -> Round:
        """Land or send back one batch.

        Raises:
            Stale: somebody else runs the queue by now.
        """
        try:
            self._recover()
            settle_landed(self._site, self._target)
            tip = self._find_tip()
            waiting = self._waiting()
            if not waiting:
                return Round()
            self._settings = self._settings_at(tip)
            self._bench = self._new_bench()
            self._start = tip
            batch = operations.begin_testing(
                self._context, self._lease, [one.id for one in waiting[: self._settings.landing_batch]]
            )
            self._on_step("testing")
            ended = self._work_off(tip, batch)
        except Stale:
            raise
        except InterlockError as error:
            self._put_everything_back(error)
            return Round(stop=error)
        finally:
            if self._bench is not None:
                self._bench.close()
        settle_landed(self._site, self._target)
        self._on_step("settled")
        return Round(ended=ended)

    def _new_bench(self) -> Bench:
        if self._bench is not None:
            self._bench.close()
        return Bench(self._site, self._settings, self._target.branch, self._tick)

    def _tick(self) -> None:
        self._lease = renew_runner(self._context, self._lease)

    def _waiting(self) -> list[Landing]:
        """What can be worked on here: the commits must be had."""
        found = [
            one
            for one in operations.list_landings(self._context, (QUEUED, TESTING))
            if one.target == self._target.branch and (not one.gate or one.approved_head == one.head)
        ]
        return [one for one in found if advancing.bring_in(self._site.home, self._target, one.head)]

    def _recover(self) -> None:
        """Settle what a runner that was cut off left behind."""
        queue = operations.get_queue(self._context, self._target.branch)
        if queue.move:
            move = Move(**queue.move)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
            asked = advancing.where_is(self._site.home, self._target, move.before, move.after)
            if asked.state == advancing.UNKNOWN:
                raise _remote_gone(self._target, asked.trouble)
            if asked.state == advancing.MOVED:
                self._settle_move(move)
            else:
                operations.change_queue(self._context, self._lease, self._target.branch, "abandoned", move={})
            self._on_step("recovered")
        left = [one.id for one in operations.list_landings(self._context, (TESTING,))]
        if left:
            operations.put_back(self._context, self._lease, left, "whoever tested it was cut off")

    def _find_tip(self) -> str:
        """Where the target is now; a rewound one stops the queue until a person has looked.

        Raises:
            InterlockError: the remote is gone, or the target was rewound.
        """
        home, target = self._site.home, self._target
        trouble = fetch_target(home, target)
        if trouble:
            raise _remote_gone(target, trouble)
        tip = ask(home, "rev-parse", "--verify", "--quiet", f"{target.remote_ref or target.ref}^{{commit}}")
        queue = operations.get_queue(self._context, target.branch)
        if not tip:
            raise RepositoryError(
                f"there is no {target.branch}", code="NO_TARGET", hint="push a first commit there"
            )
        is_kept = not queue.tip or not run_in(home, "merge-base", "--is-ancestor", queue.tip, tip).exit_code
        if not is_kept and queue.state != "paused":
            reason = f"{target.branch} was rewound: {queue.tip[:12]} landed there, and is not in {tip[:12]}"
            queue = operations.change_queue(
                self._context,
                self._lease,
                target.branch,
                "paused",
                state="paused",
                reason=reason,
                code="REWOUND",
            )
        if queue.state == "paused":
            raise Paused(queue.reason)
        return tip

    def _settings_at(self, tip: str) -> Settings:
        """The settings as the target has them: no branch chooses the checks that it is judged by."""
        content = trials.blob_at(self._site.home, tip, FILE_NAME)
        settings = self._site.settings
        if content is not None:
            import tomllib

            try:
                settings = Settings(**check_settings(tomllib.loads(content.decode())))
            except (ValueError, SettingsError) as error:
                raise RepositoryError(
                    f"{FILE_NAME} on {self._target.branch} cannot be used: {error}",
                    code="SETTINGS_BROKEN",
                    hint="mend it there",
                ) from error
        if settings.landing_checks is None:
            settings = self._site.settings if content is None else settings
        if settings.landing_checks is None:
            raise no_checks()
        return settings

    def _put_everything_back(self, error: InterlockError) -> None:
        left = [one.id for one in operations.list_landings(self._context, (TESTING,))]
        if left:
            operations.put_back(self._context, self._lease, left, error.message, error.code)

    def _work_off(self, tip: str, batch: Sequence[Landing]) -> int:
        """Land what can land of a batch, halving what is red; tells how many ended."""
        chain, ended = self._chain(tip, batch)
        if not chain:
            return ended
        verdict = self._test(chain)
        if verdict.is_green:
            return ended + self._land(chain, verdict)
        return ended + self._halve(chain, verdict)

    def _chain(self, tip: str, batch: Sequence[Landing]) -> tuple[list[Candidate], int]:
        """The entries one on top of the other; those that clash with the target itself go back."""
        chain: list[Candidate] = []
        ended = 0
        on = tip
        for landing in batch:
            outcome = self._combine(on, landing)
            if isinstance(outcome, trials.Clash):
                ended += self._judge_clash(tip, on, landing, outcome)
            elif isinstance(outcome, str):
                self._bounce_broken(landing, outcome)
                ended += 1
            elif outcome.is_empty:
                self._mark_there(landing, on)
                ended += 1
            else:
                chain.append(outcome)
                on = outcome.commit
        self._on_step("merged")
        return chain, ended

    def _combine(self, on: str, landing: Landing) -> Candidate | trials.Clash | str:
        assert self._bench is not None
        try:
            return combine(self._site, self._settings, on, landing, self._bench.regenerate)
        except RepositoryError as error:
            if error.code in ("NO_COMMON_ANCESTOR",):
                return error.message
            raise

    def _judge_clash(self, tip: str, on: str, landing: Landing, clash: trials.Clash) -> int:
        """A clash with the target sends an entry back; one with an entry ahead lets it wait for that."""
        if on != tip and not isinstance(self._combine(tip, landing), trials.Clash):
            operations.put_back(self._context, self._lease, [landing.id], "waits for the entry ahead of it")
            return 0
        others = self._others(tip, landing, clash.paths)
        named = ", ".join(clash.paths[:_MOST_BLAMED])
        reason = f"it conflicts with {self._target.branch} in {named}"
        if clash.reasons:
            reason += f": {'; '.join(clash.reasons[:3])}"
        hint = f"interlock sync --update merge, mend {named}, commit, and land again"
        self._bounce(landing, reason=reason, code="CONFLICT", hint=hint, output=others, base=tip)
        return 1

    def _others(self, tip: str, landing: Landing, paths: Sequence[str]) -> str:
        """Who changed these paths on the target since the branch parted, and what they were about."""
        base = trials.merge_base(self._site.home, tip, landing.head)
        form = "%h %s%n  by %an%(trailers:key=Interlock-Agent,valueonly=false,unfold,separator=%x2C )"
        words = (
            "log",
            "--no-merges",
            f"--max-count={_MOST_BLAMED}",
            f"--format={form}",
            f"{base}..{tip}",
            "--",
        )
        found = ask(self._site.home, *words, *(f":(top,literal){path}" for path in paths[:50]))
        return f"the other side of it:\n{found}" if found else ""

    def _bounce_broken(self, landing: Landing, reason: str) -> None:
        self._bounce(
            landing, reason=reason, code="NO_COMMON_ANCESTOR", hint="begin the branch from the target"
        )

    def _bounce(
        self,
        landing: Landing,
        *,
        reason: str,
        code: str,
        hint: str,
        output: str = "",
        pair: str = "",
        base: str = "",
    ) -> None:
        operations.bounce(
            self._context,
            self._lease,
            landing.id,
            reason=reason,
            code=code,
            hint=hint,
            wall_ms=self._site.wall_ms(),
            output=output,
            pair=pair,
            base=base or landing.base,
        )
        advancing.unpin(self._site.home, self._target, landing.head, is_shared=is_shared(self._site))
        self._keep_branch(landing)
        self._on_step("bounced")

    def _keep_branch(self, landing: Landing) -> None:
        """A branch that somebody deleted meanwhile comes back with what was submitted."""
        ref = f"refs/heads/{landing.branch}"
        if not ask(self._site.home, "rev-parse", "--verify", "--quiet", ref):
            run_in(self._site.home, "update-ref", ref, landing.head, "0" * len(landing.head))

    def _mark_there(self, landing: Landing, tip: str) -> None:
        """The target has all of it: it has landed, whoever brought it there."""
        more: dict[str, object] = {"base": tip, "notes": ["the target had all of it already"]}
        operations.mark_landed(
            self._context,
            self._lease,
            self._target.branch,
            [(landing.id, tip, more)],
            operations.get_queue(self._context, self._target.branch).tip,
            self._site.wall_ms(),
        )

    def _test(self, chain: Sequence[Candidate]) -> Verdict:
        assert self._bench is not None
        last = chain[-1]
        ids = [one.landing.id for one in chain]
        paths = [path for one in chain for path in one.landing.paths]
        named = f" with {len(ids) - 1} more" if len(ids) > 1 else ""

        def on_check(name: str) -> None:
            operations.show_stage(self._context, self._lease, ids, f"testing{named}: {name}")
            self._site.tell(f"{', '.join(ids)}: {name}")
            self._on_step("checking")

        verdict = self._bench.test(
            last.commit, last.tree, validators(self._site, self._settings, paths), on_check
        )
        self._on_step("tested")
        return verdict

    def _halve(self, chain: list[Candidate], verdict: Verdict) -> int:
        """Find what makes a red chain red, and land the rest of it."""
        if len(chain) == 1:
            return self._send_back(chain[0], verdict)
        first, rest = chain[: halves(len(chain))], chain[halves(len(chain)) :]
        tried = self._test(first)
        if tried.is_green:
            ended = self._land(first, tried)
            # What was tested as a whole before stands on exactly this commit: it is still red.
            return ended + self._halve(rest, verdict)
        ended = self._halve(first, tried)
        tip = self._find_tip()
        return ended + self._work_off(tip, [one.landing for one in rest])

    def _send_back(self, culprit: Candidate, verdict: Verdict) -> int:
        landing = culprit.landing
        bare = self._test_tree(culprit.before)
        if not bare.is_green and bare.check == verdict.check:
            reason = f"{self._target.branch} itself is red: {bare.reason}"
            operations.put_back(self._context, self._lease, [landing.id], reason, "TARGET_RED")
            raise RepositoryError(
                reason, code="TARGET_RED", hint="land a branch that mends it", output=bare.output
            )
        other = self._find_pair(culprit, verdict)
        reason, hint = verdict.reason, "mend it, commit, and land again"
        output = verdict.output
        if other is not None:
            reason += (
                f", and only together with {other.landing.id} of {other.landing.agent}, which has landed"
            )
            hint = f"interlock sync --update merge, mend what no longer fits, and land again ({other.commit[:12]})"
            about = (
                f"{other.landing.id} {other.landing.branch} ({other.commit[:12]}): {other.landing.subject}"
            )
            output = f"{output}\n\nthe other side of it:\n{about}\n"
        self._bounce(
            landing,
            reason=reason,
            code="CHECK_FAILED",
            hint=hint,
            output=output,
            pair=other.landing.id if other is not None else "",
            base=culprit.before,
        )
        return 1

    def _test_tree(self, commit: str) -> Verdict:
        """What the checks say of the target as it is; mostly that was asked before."""
        assert self._bench is not None
        tree = trials.told(self._site.home, "rev-parse", f"{commit}^{{tree}}")
        return self._bench.test(commit, tree, {}, lambda _: None)

    def _find_pair(self, culprit: Candidate, verdict: Verdict) -> Candidate | None:
        """The entry that landed in this round without which the culprit would be green, if there is one."""
        landed = self._landed_here
        if not landed or culprit.before == self._start:
            return None
        alone = self._combine(self._start, culprit.landing)
        if not isinstance(alone, Candidate) or alone.is_empty or not self._is_green(alone):
            return None
        low, high = 0, len(landed) - 1  # red behind the last of them, green before the first
        while low < high:
            middle = (low + high) // 2
            tried = self._combine(landed[middle].commit, culprit.landing)
            is_red = not isinstance(tried, Candidate) or not self._is_green(tried)
            low, high = (low, middle) if is_red else (middle + 1, high)
        return landed[low]

    def _is_green(self, candidate: Candidate) -> bool:
        assert self._bench is not None
        return self._bench.test(candidate.commit, candidate.tree, {}, lambda _: None).is_green

    _landed_here: list[Candidate] = []  # noqa: RUF012 - replaced at each landing, never changed

    def _land(self, chain: Sequence[Candidate], verdict: Verdict) -> int:
        """Move the target to a tree that was tested; tells how many landed."""
        before, after = chain[0].before, chain[-1].commit
        ids = [one.landing.id for one in chain]
        move = Move(before=before, after=after, entries=ids, commits=[one.commit for one in chain])
        operations.show_stage(self._context, self._lease, ids, "landing")
        operations.change_queue(self._context, self._lease, self._target.branch, "moving", move=as_dict(move))
        self._on_step("written")
        # Kept until it is settled: nothing else leads to these commits if we die now.
        run_in(self._site.home, "update-ref", f"refs/interlock/moving/{self._target.branch}", after)
        advanced = advancing.advance(
            self._site.home, self._target, before, after, f"interlock: land {', '.join(ids)}"
        )
        self._on_step("moved")
        if advanced.state == advancing.MOVED:
            self._landed_here = [*(self._landed_here if before != self._start else []), *chain]
            self._settle_move(move, verdict)
            return len(chain)
        operations.change_queue(self._context, self._lease, self._target.branch, "abandoned", move={})
        if advanced.state == advancing.ELSEWHERE:
            operations.put_back(
                self._context, self._lease, ids, f"merged and tested again: {advanced.trouble}"
            )
            return 0
        if advanced.state == advancing.UNKNOWN:
            operations.change_queue(
                self._context, self._lease, self._target.branch, "moving", move=as_dict(move)
            )
            raise _remote_gone(self._target, advanced.trouble)
        raise RepositoryError(
            f"{self._target.branch} cannot be moved: {advanced.trouble or 'git refused'}",
            code="TARGET_REFUSED",
            hint="a hook or a protection refuses it: mend that, then `interlock queue run`",
        )

    def _settle_move(self, move: Move, verdict: Verdict | None = None) -> None:
        """The target has moved: let checkouts follow, and write down what has landed."""
        home, target = self._site.home, self._target
        notes = advancing.forward_checkouts(home, target, move.before, move.after)
        advancing.follow_locally(home, target, move.after)
        self._on_step("forwarded")
        flaky = list(verdict.flaky) if verdict is not None else []
        landed: list[tuple[str, str, dict[str, object]]] = []
        before = move.before
        for landing_id, commit in zip(move.entries, move.commits, strict=True):
            landed.append((landing_id, commit, {"base": before, "notes": notes, "flaky": flaky}))
            before = commit
        operations.mark_landed(
            self._context, self._lease, target.branch, landed, move.after, self._site.wall_ms()
        )
        run_in(home, "update-ref", "-d", f"refs/interlock/moving/{target.branch}")
        for note in notes:
            self._site.tell(note)
        self._on_step("landed")


class Paused(RepositoryError):
    """The queue waits for a person."""

    exit_code = 7

    def __init__(self, reason: str) -> None:
        super().__init__(
            reason,
            code="QUEUE_PAUSED",
            hint="look at it; then go on from there: interlock queue resume --why …",
        )


def _remote_gone(target: Target, trouble: str) -> RepositoryError:
    return RepositoryError(
        f"{target.remote} cannot be asked: {trouble}",
        code="REMOTE_GONE",
        hint="nothing is lost: mend the connection, then `interlock queue run`",
    )


def is_shared(site: Site) -> bool:
    """Whether several machines work on one store."""
    return bool(getattr(site.context.store, "url", ""))


def start_running(
    site: Site, who: Session | str, on_step: Callable[[str], None] = lambda _: None
) -> QueueRunner | RunnerBusy:
    """Become the one that runs the queue, or say who does."""
    target = find_target(site.home, site.settings)
    lease = take_runner(site.context, who, queue_name(target.branch), LEASE_MS)
    if isinstance(lease, RunnerBusy):
        return lease
    return QueueRunner(site, who, lease, target, on_step)


def drain(runner: QueueRunner, is_enough: Callable[[], bool] = lambda: False) -> InterlockError | None:
    """Run rounds until nothing is left to do, or it is enough; tells why it stopped early.

    Raises:
        Stale: somebody else runs the queue by now.
    """
    idle = 0
    while not is_enough():
        done = runner.run_round()
        if done.stop is not None:
            return done.stop
        idle = 0 if done.ended else idle + 1
        if idle > 1:  # twice nothing: what is left waits for others, or for a person
            return None
    return None


def is_over(landing: Landing) -> bool:
    """Whether an entry has ended, and everything that follows with it."""
    return landing.state not in OPEN and (landing.state != LANDED or landing.is_settled)
