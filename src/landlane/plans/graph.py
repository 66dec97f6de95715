"""The order of a plan: dependency cycles, waves, the critical path, and dependencies that the plan implies.

Tasks are put in an order in which each follows its dependencies. A task that conflicts with an earlier one
has to wait for it, unless it does already. Such a dependency always points back in the order, so it cannot
close a cycle.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum

from landlane.tasks.model import dependency_order
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    After = Mapping[str, tuple[str, ...]]


class ConflictKind(StrEnum):
    """Why two tasks of a plan cannot run at the same time."""

    PATH = "path"
    HOT = "hot"  # both change a file that is merged by its kind
    NUMBER = "number"  # both take a number of the same kind
    CONTRACT = "contract"  # the earlier one must land before everything else


@value
class ImpliedDependency:
    """A task that waits for another although the plan does not say so, and why."""

    task: str
    before: str
    kind: ConflictKind
    what: str


def find_cycles(after: After) -> list[tuple[str, ...]]:
    """Return a shortest cycle of each group of tasks that wait for each other."""
    bit = {task: 1 << at for at, task in enumerate(after)}
    waits_for = {
        task: sum(bit[before] for before in set(befores) if before in bit) for task, befores in after.items()
    }
    for middle in after:  # the transitive closure, by Warshall's algorithm
        for task in after:
            if waits_for[task] & bit[middle]:
                waits_for[task] |= waits_for[middle]
    cycles: list[tuple[str, ...]] = []
    seen = 0
    for task in after:
        if waits_for[task] & bit[task] & ~seen:
            seen |= sum(
                bit[other] for other in after if waits_for[task] & bit[other] and waits_for[other] & bit[task]
            )
            cycles.append(_shortest_cycle(task, after))
    return cycles


def _shortest_cycle(start: str, after: After) -> tuple[str, ...]:
    """Return the way from a task through its dependencies back to itself, by breadth-first search."""
    ways: deque[tuple[str, ...]] = deque([(start,)])
    seen: set[str] = set()
    while True:
        way = ways.popleft()
        for before in after.get(way[-1], ()):
            if before == start:
                return (*way, start)
            if before not in seen:
                seen.add(before)
                ways.append((*way, before))


def find_implied(
    after: After,
    contracts: Sequence[str],
    find_conflict: Callable[[str, str], tuple[ConflictKind, str] | None],
) -> list[ImpliedDependency]:
    """Return the dependencies that follow from contracts and conflicts, without redundant ones.

    All tasks wait for the contracts, except for those that a contract waits for itself.
    """
    needed = set(contracts)
    pending = list(contracts)
    while pending:
        for before in after[pending.pop()]:
            if before in after and before not in needed:
                needed.add(before)
                pending.append(before)
    order = dependency_order(
        {task: befores if task in needed else (*befores, *contracts) for task, befores in after.items()}
    )
    bit = {task: 1 << at for at, task in enumerate(order)}
    behind: dict[str, int] = {}  # a task with everything it waits for, as bits
    implied: list[ImpliedDependency] = []
    for at, task in enumerate(order):
        mask = 0
        for before in after[task]:
            mask |= behind.get(before, 0)
        # From the latest on: what a later one waits for needs no dependency of its own.
        for earlier in reversed(order[:at]):
            if mask & bit[earlier]:
                continue
            if earlier in contracts and task not in needed:
                conflict = ConflictKind.CONTRACT, f"{earlier} must land first"
            else:
                conflict = find_conflict(earlier, task)
            if conflict is not None:
                kind, what = conflict
                implied.append(ImpliedDependency(task=task, before=earlier, kind=kind, what=what))
                mask |= behind[earlier]
        behind[task] = mask | bit[task]
    place = {task: at for at, task in enumerate(dependency_order(merge_dependencies(after, implied)))}
    return sorted(implied, key=lambda edge: (place[edge.task], -place[edge.before]))


def merge_dependencies(after: After, implied: Iterable[ImpliedDependency]) -> dict[str, tuple[str, ...]]:
    """Return the dependencies that the plan states together with the implied ones."""
    merged = dict(after)
    for edge in implied:
        merged[edge.task] = (*merged[edge.task], edge.before)
    return merged


def waves_of(after: After) -> list[tuple[str, ...]]:
    """Return the tasks in waves: each task depends only on tasks of earlier waves."""
    level: dict[str, int] = {}
    waves: list[list[str]] = []
    for task in dependency_order(after):
        level[task] = 1 + max((level[before] for before in after[task] if before in level), default=-1)
        if level[task] == len(waves):
            waves.append([])
        waves[level[task]].append(task)
    return [tuple(wave) for wave in waves]


def critical_path(after: After, weight: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """Return the chain of tasks that takes longest, and how long it takes."""
    chains: dict[str, tuple[int, int, tuple[str, ...]]] = {}  # duration, number of tasks, and the tasks
    for task in dependency_order(after):
        befores = [chains[before] for before in after[task] if before in chains]
        duration, count, chain = max(befores, key=lambda one: one[:2], default=(0, 0, ()))
        chains[task] = (duration + weight[task], count + 1, (*chain, task))
    duration, _, chain = max(chains.values(), key=lambda one: one[:2], default=(0, 0, ()))
    return chain, duration
