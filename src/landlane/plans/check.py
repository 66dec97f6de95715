"""Judging a plan before anything starts: order, waves, who follows whom, and what it may cost at most."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.patterns.pattern import ancestors, common_path, overlap
from landlane.plans.graph import (
    HOT,
    NUMBER,
    PATH,
    Follows,
    contracts_first,
    find_rings,
    join,
    longest_way,
    put_in_sequence,
    waves_of,
    without_detours,
)
from landlane.plans.problems import (
    Around,
    Finding,
    find_duplicates,
    read_patterns,
    ring_finding,
    unclear,
    unknown_names,
)
from landlane.tasks.model import in_order
from landlane.values import replace, value

__all__ = ["Around", "Finding", "Follows", "PlanCheck", "check_plan"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.plans.model import Plan, PlanTask


@value
class PlanCheck:
    """A plan with all that can be said of it beforehand. Without an order where tasks wait in a ring."""

    plan: Plan
    problems: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    order: tuple[str, ...] = ()
    waves: tuple[tuple[str, ...], ...] = ()
    follows: tuple[Follows, ...] = ()
    after: Mapping[
        str, tuple[str, ...]
    ]  # name → all that it waits for, stated or not; ids of others included
    critical: tuple[str, ...] = ()
    critical_ms: int | None = None  # nothing: no task has an estimate
    unestimated: tuple[str, ...] = ()
    most_micros: int | None = None  # nothing: nobody can tell
    known_micros: int = 0
    unpriced: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether it can be carried out as it stands."""
        return not self.problems

    @property
    def at_once(self) -> int:
        """How many tasks of one wave there are at most."""
        return max(map(len, self.waves), default=0)


def check_plan(plan: Plan, around: Around) -> PlanCheck:
    """Everything that can be told of a plan before it runs. Ticked tasks are done and count no more."""
    to_do = {task.name: task for task in plan.tasks if not task.is_ticked}
    patterns, problems = read_patterns(to_do.values(), around)
    problems += unknown_names(plan, to_do.values(), around)
    known = {task.name for task in plan.tasks}
    after = {
        name: tuple(one for one in task.after if one in to_do or one not in known)
        for name, task in to_do.items()
    }
    rings = find_rings(after)
    problems += [ring_finding(ring, to_do) for ring in rings]
    warnings = [
        *unclear(to_do.values(), patterns, around),
        *find_duplicates(plan, to_do.values(), patterns, around),
    ]
    most, priced, unpriced = _cost(plan, to_do.values())
    checked = PlanCheck(
        plan=plan,
        problems=tuple(problems),
        warnings=tuple(warnings),
        after=after,
        most_micros=most,
        known_micros=priced,
        unpriced=unpriced,
    )
    if rings:
        return checked
    follows = _sequence(to_do, after, patterns, around)
    joined = join(after, follows)
    weights = {name: task.estimate_ms or 0 for name, task in to_do.items()}
    unestimated = tuple(name for name, task in to_do.items() if task.estimate_ms is None)
    has_estimates = len(unestimated) < len(to_do)
    way, length = longest_way(joined, weights if has_estimates else dict.fromkeys(to_do, 1))
    return replace(
        checked,
        order=tuple(in_order(joined)),
        waves=tuple(waves_of(joined)),
        follows=tuple(follows),
        after=joined,
        critical=way,
        critical_ms=length if has_estimates else None,
        unestimated=unestimated,
    )


# ------------------------------------------------------------------------------------------ sequence


def _sequence(
    tasks: Mapping[str, PlanTask],
    after: Mapping[str, tuple[str, ...]],
    patterns: Mapping[str, tuple[Pattern, ...]],
    around: Around,
) -> list[Follows]:
    """Contracts first; then one after the other what would meet on a path or draws numbers of one kind."""
    contracts = [name for name, task in tasks.items() if task.is_contract]
    first = without_detours(after, contracts_first(after, contracts)) if contracts else []
    kinds = [
        (kind, around.parse(known.path.replace("{n}", "*")))
        for kind, known in around.settings.numbers.items()
    ]
    files = around.settings.landing.merge.files
    mergeable = [(around.parse(text), file.kind) for text, file in files.items()]
    draws = {
        name: frozenset(kind for kind, place in kinds if any(overlap(one, place) for one in mine))
        for name, mine in patterns.items()
    }

    near = _near(patterns)

    def meets(earlier: str, task: str) -> tuple[str, str] | None:
        numbers = draws[earlier] & draws[task]
        if numbers:
            return NUMBER, f"both take a number of the kind {min(numbers)}"
        if earlier not in near[task]:
            return None
        for one in patterns[earlier]:
            for other in patterns[task]:
                path = common_path(one, other)
                if path is not None:
                    return _fought_over(path or ".", mergeable, around)
        return None

    return without_detours(after, [*first, *put_in_sequence(join(after, first), meets)])


def _near(patterns: Mapping[str, tuple[Pattern, ...]]) -> dict[str, set[str]]:
    """For each task those whose paths could overlap with its own: one key lies on the way to the other."""
    at: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    keys = {
        name: {branch.key for one in mine for branch in one.alternatives} for name, mine in patterns.items()
    }
    for name, mine in keys.items():
        for key in mine:
            at.setdefault(key, set()).add(name)
            for folder in ancestors(key):
                below.setdefault(folder, set()).add(name)
    nobody: set[str] = set()
    return {
        name: nobody.union(
            *(below[key] for key in mine),
            *(at.get(folder, nobody) for key in mine for folder in ancestors(key)),
        )
        for name, mine in keys.items()
    }


def _fought_over(path: str, mergeable: Sequence[tuple[Pattern, str]], around: Around) -> tuple[str, str]:
    try:
        place = around.parse(path)
    except Malformed:
        return PATH, f"both change {path}"
    kind = next((kind for pattern, kind in reversed(mergeable) if overlap(pattern, place)), "")
    return (HOT, f"both change {path}, which is hot ({kind})") if kind else (PATH, f"both change {path}")


# ---------------------------------------------------------------------------------------------- cost


def _cost(plan: Plan, tasks: Iterable[PlanTask]) -> tuple[int | None, int, tuple[str, ...]]:
    """What it costs at most (nothing: nobody can tell), how much of it is known, and who says nothing."""
    tasks = list(tasks)
    known = sum(task.attempts * task.budget_micros for task in tasks if task.budget_micros is not None)
    unpriced = tuple(task.name for task in tasks if task.budget_micros is None)
    if plan.budget_micros is not None:
        return plan.budget_micros if unpriced else min(known, plan.budget_micros), known, unpriced
    return None if unpriced else known, known, unpriced
