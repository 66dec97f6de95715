"""Land a batch: merge the entries in order, check the result once, and bisect if it fails.

If the whole batch is green, all of it lands after one test. If it is red, its first half is tried alone, and
so on, until the culprit stands alone and goes back to its author while the others land. A culprit that is
green by itself fails only together with something that landed since it parted from the target: that is
searched for by bisection, and named.
"""

from __future__ import annotations

from landlane.errors import RepositoryError
from landlane.git import trial_merge as trials
from landlane.git.ancestry import merge_base
from landlane.git.run import try_git_output
from landlane.git.target import TargetBranch
from landlane.landing import bounce_reasons
from landlane.landing import records as operations
from landlane.landing.after_landing import let_go
from landlane.landing.check import Bench, Verdict
from landlane.landing.combine import Candidate, combine, validators
from landlane.landing.model import LANDED, Landing, halves
from landlane.landing.outcomes import bounce, mark_landed
from landlane.landing.role_check import in_words, judge_trees, note_caught
from landlane.landing.submit import as_text
from landlane.landing.target_settings import broken_settings
from landlane.sessions.runner_lease import RunnerLease
from landlane.settings.model import FILE_NAME
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.git.target import TargetBranch
    from landlane.landing.check import Bench, Verdict
    from landlane.landing.combine import Recipe
    from landlane.repository import Repository
    from landlane.sessions.runner_lease import RunnerLease


_MOST_BLAMED = 5
_MOST_SEARCHED = 256  # commits, so that a bisection takes at most eight tests


@value
class Means:
    """What a batch is worked off with; whoever runs the queue lends it."""

    repo: Repository
    target: TargetBranch
    recipe: Recipe
    bench: Bench
    lease: Callable[[], RunnerLease]
    find_tip: Callable[[], str]
    land: Callable[[Sequence[Candidate], Verdict], int]
    on_step: Callable[[str], None]
    tick: Callable[[], None]


@value
class Other:
    """The other side of a failure: a commit of the target, and the entry that brought it if it was one."""

    commit: str
    subject: str
    who: str
    landing: str = ""

    def in_words(self) -> str:
        """Whose it is and how it can be found."""
        named = f"{self.landing} of {self.who}" if self.landing else self.who
        return f"{self.commit[:12]} ({named}: {self.subject})"


class Halving:
    """Lands what can land of a batch, and sends the culprits back."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._repo = means.repo
        self._repo = means.repo
        self.red: RepositoryError | None = None  # the target itself fails its checks
        self.has_halved = False
        self._is_doubtful = (
            False  # something was remembered to be red, and is not: nothing of that is believed
        )

    def work_off(self, tip: str, batch: Sequence[Landing]) -> int:
        """Land what can land of a batch, halving what is red; tells how many ended."""
        chain, ended = self._chain(tip, batch)
        if not chain:
            return ended
        verdict = self._test(chain)
        if verdict.is_green:
            return ended + self._means.land(chain, verdict)
        return ended + self._halve(chain)

    def _chain(self, tip: str, batch: Sequence[Landing]) -> tuple[list[Candidate], int]:
        """The entries one on top of the other; those that clash with the target itself go back."""
        chain: list[Candidate] = []
        ended = 0
        on = tip
        for landing in batch:
            self._means.tick()  # many merges may take longer than a lease
            outcome = self._combine(on, landing)
            if isinstance(outcome, Candidate) and not outcome.is_empty:
                chain.append(outcome)
                on = outcome.commit
            elif on != tip and not isinstance(outcome, RepositoryError):
                ended += self._judge_on_tip(tip, landing)
            else:
                ended += self._end(tip, landing, outcome)
        self._means.on_step("merged")
        return chain, ended

    def _combine(self, on: str, landing: Landing) -> Candidate | trials.MergeConflict | RepositoryError:
        """An entry on a commit; or what is in its way, or wrong with it."""
        try:
            made = combine(self._repo, self._means.recipe, on, landing)
        except RepositoryError as error:
            if error.code == "NO_COMMON_ANCESTOR":
                return error
            raise
        if isinstance(made, Candidate) and FILE_NAME in landing.paths:
            trouble = broken_settings(self._repo.home, made.commit)
            if trouble:
                why = bounce_reasons.settings_broken(trouble, FILE_NAME)
                return RepositoryError(why.reason, code=why.code, hint=why.hint)
        return self._out_of_role(made) or made if isinstance(made, Candidate) else made

    def _out_of_role(self, made: Candidate) -> RepositoryError | None:
        """Why an entry is not its author's to land, by exactly what it would change on the target."""
        landing = made.landing
        settings = self._means.recipe.settings
        found = judge_trees(self._repo.home, settings, landing.role, made.before, made.tree)
        if not found:
            return None
        note_caught(self._repo, landing, found)
        reason, listed = in_words(found)
        why = bounce_reasons.role_forbids(reason, landing.role)
        return RepositoryError(why.reason, code=why.code, hint=why.hint, output=listed)

    def _judge_on_tip(self, tip: str, landing: Landing) -> int:
        """Something in front of it may never land: what counts is the target, or else it waits."""
        outcome = self._combine(tip, landing)
        if isinstance(outcome, Candidate) and not outcome.is_empty:
            self._put_back([landing], "waits for the entry ahead of it")
            return 0
        return self._end(tip, landing, outcome)

    def _end(
        self, tip: str, landing: Landing, outcome: Candidate | trials.MergeConflict | RepositoryError
    ) -> int:
        """End what needs no test: it is there already, or it does not fit onto the target."""
        if isinstance(outcome, Candidate):
            self._mark_there(landing, tip)
        elif isinstance(outcome, RepositoryError):
            self._bounce(
                landing,
                reason=outcome.message,
                code=outcome.code,
                hint=outcome.hint,
                output=str(outcome.facts.get("output", "")),
                base=tip,
            )
        else:
            self._bounce_clash(tip, landing, outcome)
        return 1

    def _bounce_clash(self, tip: str, landing: Landing, clash: trials.MergeConflict) -> None:
        why = bounce_reasons.conflict(self._means.target.branch, clash.paths, clash.reasons)
        others = self._others(tip, landing, clash.paths)
        self._bounce(landing, reason=why.reason, code=why.code, hint=why.hint, output=others, base=tip)

    def _others(self, tip: str, landing: Landing, paths: Sequence[str]) -> str:
        """Who changed these paths on the target since the branch parted, and what they were about."""
        base = merge_base(self._repo.home, tip, landing.head)
        form = "%h %s%n  by %an %(trailers:key=Landlane-Agent,unfold,separator=%x2C )"
        words = (
            "log",
            "--no-merges",
            f"--max-count={_MOST_BLAMED}",
            f"--format={form}",
            f"{base}..{tip}",
            "--",
        )
        found = try_git_output(self._repo.home, *words, *(f":(top,literal){path}" for path in paths[:50]))
        return f"the other side of it:\n{found}" if found else ""

    def _test(self, chain: Sequence[Candidate]) -> Verdict:
        ids = [one.landing.id for one in chain]
        paths = [path for one in chain for path in one.landing.paths]
        named = f" with {len(ids) - 1} more" if len(ids) > 1 else ""

        def on_check(name: str) -> None:
            operations.show_stage(self._repo, self._means.lease(), ids, f"testing{named}: {name}")
            self._repo.report(f"{', '.join(ids)}: {name}")
            self._means.on_step("checking")

        verdict = self._ask(chain[-1].commit, chain[-1].tree, paths, on_check)
        self._means.on_step("tested")
        return verdict

    def _ask(
        self,
        commit: str,
        tree: str,
        paths: Sequence[str],
        on_check: Callable[[str], None] = lambda _: None,
        *,
        anew: bool = False,
    ) -> Verdict:
        wanted = validators(self._repo, self._means.recipe.classes, paths)
        return self._means.bench.test(commit, tree, wanted, on_check, anew=anew or self._is_doubtful)

    def _halve(self, chain: Sequence[Candidate]) -> int:
        """Find what makes a red chain red, and land the rest of it.

        What stands behind the culprit is tested as a whole once that is gone: mostly it is green.
        """
        self.has_halved = True
        ended = 0
        later: list[Landing] = []
        red = chain
        while len(chain) > 1:
            count = halves(len(chain))
            first, rest = chain[:count], chain[count:]
            tried = self._test(first)
            if not tried.is_green:
                later = [*(one.landing for one in rest), *later]
                chain = red = first
                continue
            landed = self._means.land(first, tried)
            if not landed:  # the target has moved meanwhile: the rest stands on what did not land
                waiting = [*(one.landing for one in rest), *later]
                self._put_back(waiting, "merged and tested again: the target has moved")
                return ended
            ended += landed
            chain = rest  # what was tested as a whole before stands on exactly this commit: it is still red
        ended += self._send_back(chain[0], red)
        return ended + (self.work_off(self._means.find_tip(), later) if later else 0)

    def _send_back(self, culprit: Candidate, red: Sequence[Candidate]) -> int:
        """End the last of a red chain, or leave it in line if the target is red; tells how many ended.

        A target that is only remembered to be red is asked anew: it may have been an outage that is over, and
        then the entry is asked anew as well.
        """
        landing, home = culprit.landing, self._repo.home
        verdict = self._test(red)  # asked as it was before: each path may have a check of its own
        tree = trials.tree_of(home, culprit.before)
        bare = self._ask(culprit.before, tree, ())
        if not bare.is_green:
            bare = self._ask(culprit.before, tree, (), anew=True)
            self._is_doubtful = self._is_doubtful or bare.is_green
            verdict = self._test(red)
        if verdict.is_green:
            return self._means.land([culprit], verdict)
        if not bare.is_green and bare.check == verdict.check:
            self._leave_to_mender(landing, bare)
            return 0
        why, output = bounce_reasons.check_failed(verdict.reason), verdict.output
        other = self._find_other(culprit)
        if other is not None:
            why = bounce_reasons.check_failed(verdict.reason, other.in_words(), other.commit)
            output = f"{output}\n\nthe other side of it:\n{other.in_words()}\n"
        self._bounce(
            landing,
            reason=why.reason,
            code=why.code,
            hint=why.hint,
            output=output,
            pair=other.landing if other is not None else "",
            base=culprit.before,
        )
        return 1

    def _leave_to_mender(self, landing: Landing, bare: Verdict) -> None:
        """A red target is nobody's fault who stands in line: they wait for the one that mends it."""
        reason = f"{self._means.target.branch} itself is red: {bare.reason}"
        self._put_back([landing], reason, "TARGET_RED")
        self.red = RepositoryError(
            reason, code="TARGET_RED", hint="land a branch that mends it", output=bare.output
        )

    def _find_other(self, culprit: Candidate) -> Other | None:
        """What landed since the culprit parted, and without which it would be green, if there is any."""
        home, landing = self._repo.home, culprit.landing
        base = merge_base(home, culprit.before, landing.head)
        words = ("rev-list", "--first-parent", "--reverse", f"{base}..{culprit.before}")
        between = try_git_output(home, *words).splitlines()[-_MOST_SEARCHED:]
        if not between or not self._is_green(landing.head, landing):
            return None
        low, high = 0, len(between) - 1  # red behind the last of them, green before the first
        while low < high:
            middle = (low + high) // 2
            tried = self._combine(between[middle], landing)
            is_red = not isinstance(tried, Candidate) or not self._is_green(tried.commit, landing)
            low, high = (low, middle) if is_red else (middle + 1, high)
        return self._describe(between[low])

    def _is_green(self, commit: str, landing: Landing) -> bool:
        return self._ask(commit, trials.tree_of(self._repo.home, commit), landing.paths).is_green

    def _describe(self, commit: str) -> Other:
        who, _, subject = try_git_output(
            self._repo.home, "show", "-s", "--format=%an%x00%s", commit
        ).partition("\0")
        for one in operations.list_landings(self._repo, (LANDED,)):
            if one.commit == commit:
                return Other(commit=commit, subject=one.subject, who=one.agent, landing=one.id)
        return Other(commit=commit, subject=subject, who=who)

    def _put_back(self, landings: Sequence[Landing], reason: str, code: str = "") -> None:
        ids = [one.id for one in landings]
        operations.put_back(self._repo, self._means.lease(), ids, reason, code)

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
        ended = bounce(
            self._repo,
            self._means.lease(),
            landing.id,
            reason=as_text(reason),
            code=code,
            hint=as_text(hint),
            wall_ms=self._repo.wall_ms(),
            output=as_text(output),
            pair=pair,
            base=base or landing.base,
        )
        let_go(self._repo, self._means.target, ended)
        self._means.on_step("bounced")

    def _mark_there(self, landing: Landing, tip: str) -> None:
        """The target has all of it: it has landed, whoever brought it there."""
        more: dict[str, object] = {"base": tip, "notes": ["the target had all of it already"]}
        branch = self._means.target.branch
        mark_landed(
            self._repo,
            self._means.lease(),
            branch,
            [(landing.id, tip, more)],
            operations.get_queue(self._repo, branch).tip,
            self._repo.wall_ms(),
        )


def batch_size(left: Sequence[Landing], most: int) -> int:
    """How many to test together; what changes the settings is the last of them: they hold for the next."""
    for index, one in enumerate(left[:most]):
        if FILE_NAME in one.paths:
            return index + 1
    return min(most, len(left))
