"""Examine a plan before anything starts: order, waves, implied dependencies, and the most it may cost."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.patterns.pattern import ancestors, common_path, overlap
from landlane.plans.graph import (
    ConflictKind,
    ImpliedDependency,
    critical_path,
    find_cycles,
    find_implied,
    merge_dependencies,
    waves_of,
)
from landlane.plans.problems import (
    PlanContext,
    PlanFinding,
    cycle_finding,
    find_duplicates,
    find_path_warnings,
    find_unfit_roles,
    find_unknown_names,
    read_patterns,
)
from landlane.tasks.model import dependency_order
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.plans.model import Plan
    from landlane.plans.problems import Patterns


@value
class PlanCheck:
    """A plan with the results of its check; there is no order if tasks wait for each other."""

    plan: Plan
    problems: tuple[PlanFinding, ...]
    warnings: tuple[PlanFinding, ...]
    order: tuple[str, ...] = ()
    waves: tuple[tuple[str, ...], ...] = ()
    follows: tuple[ImpliedDependency, ...] = ()
    # Name → everything it waits for, stated or implied, including ids of tasks in the queue.
    after: Mapping[str, tuple[str, ...]]
    critical: tuple[str, ...] = ()
    critical_ms: int | None = None  # None: no task has an estimate
    unestimated: tuple[str, ...] = ()
    known_micros: int = 0  # the most that the tasks with a budget cost
    unpriced: tuple[str, ...] = ()

    @property
    def is_fine(self) -> bool:
        """Whether it has no problems, so that it can be carried out."""
        return not self.problems

    @property
    def at_once(self) -> int:
        """The number of tasks in the largest wave."""
        return max(map(len, self.waves), default=0)

    @property
    def most_micros(self) -> int | None:
        """The most that the plan costs; None if unknown."""
        limit = self.plan.budget_micros
        if self.unpriced:
            return limit
        return self.known_micros if limit is None else min(self.known_micros, limit)


def check_plan(plan: Plan, context: PlanContext) -> PlanCheck:
    """Check the tasks of a plan that are not ticked."""
    names = {task.name for task in plan.tasks}
    tasks = {task.name: task for task in plan.tasks if not task.is_ticked}
    to_do = list(tasks.values())
    patterns, problems = read_patterns(to_do, context)
    problems += find_unknown_names(plan, to_do, context)
    problems += find_unfit_roles(to_do, patterns, context)
    after = {
        task.name: tuple(before for before in task.after if before in tasks or before not in names)
        for task in to_do
    }
    cycles = find_cycles(after)
    problems += [cycle_finding(cycle, tasks) for cycle in cycles]
    warnings = [
        *find_path_warnings(to_do),
        *find_duplicates(plan, to_do, patterns, context),
    ]
    checked = PlanCheck(
        plan=plan,
        problems=tuple(problems),
        warnings=tuple(warnings),
        after=after,
        known_micros=sum(task.attempts * (task.budget_micros or 0) for task in to_do),
        unpriced=tuple(task.name for task in to_do if task.budget_micros is None),
    )
    if cycles:
        return checked
    contracts = [task.name for task in to_do if task.is_contract]
    implied = find_implied(after, contracts, _conflict_finder(patterns, context))
    merged = merge_dependencies(after, implied)
    unestimated = tuple(task.name for task in to_do if task.estimate_ms is None)
    has_estimates = len(unestimated) < len(to_do)
    weights = {task.name: (task.estimate_ms or 0) if has_estimates else 1 for task in to_do}
    critical, duration = critical_path(merged, weights)
    return replace(
        checked,
        order=tuple(dependency_order(merged)),
        waves=tuple(waves_of(merged)),
        follows=tuple(implied),
        after=merged,
        critical=critical,
        critical_ms=duration if has_estimates else None,
        unestimated=unestimated,
    )


def _conflict_finder(
    patterns: Patterns, context: PlanContext
) -> Callable[[str, str], tuple[ConflictKind, str] | None]:
    """Return a function that says why two tasks cannot run at the same time; None if they can."""
    numbered = [
        (kind, context.parse(numbers.path.replace("{n}", "*")))
        for kind, numbers in context.settings.numbers.items()
    ]
    number_kinds = {
        name: {kind for kind, place in numbered if any(overlap(one, place) for one in own)}
        for name, own in patterns.items()
    }
    files = context.settings.landing.merge.files
    mergeable = [(context.parse(text), file.kind) for text, file in reversed(list(files.items()))]
    near = _near_tasks(patterns)

    def find_conflict(earlier: str, task: str) -> tuple[ConflictKind, str] | None:
        if numbers := number_kinds[earlier] & number_kinds[task]:
            return ConflictKind.NUMBER, f"both take a number of the kind {min(numbers)}"
        if earlier not in near[task]:
            return None
        paths = (common_path(one, other) for one in patterns[earlier] for other in patterns[task])
        path = next((path or "." for path in paths if path is not None), None)
        return None if path is None else describe(path)

    def describe(path: str) -> tuple[ConflictKind, str]:
        try:
            place = context.parse(path)
        except Malformed:
            return ConflictKind.PATH, f"both change {path}"
        for pattern, kind in mergeable:
            if overlap(pattern, place):
                return ConflictKind.HOT, f"both change {path}, which is hot ({kind})"
        return ConflictKind.PATH, f"both change {path}"

    return find_conflict


def _near_tasks(patterns: Patterns) -> dict[str, set[str]]:
    """Return for each task those whose paths could overlap: one key is an ancestor of the other."""
    at: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    keys = {
        name: {alternative.key for pattern in own for alternative in pattern.alternatives}
        for name, own in patterns.items()
    }
    for name, own in keys.items():
        for key in own:
            at.setdefault(key, set()).add(name)
            for folder in ancestors(key):
                below.setdefault(folder, set()).add(name)
    return {
        name: set[str]().union(
            *(below[key] for key in own),
            *(at.get(folder, ()) for key in own for folder in ancestors(key)),
        )
        for name, own in keys.items()
    }
