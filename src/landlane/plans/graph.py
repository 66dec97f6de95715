"""The order of a plan: rings, waves, the longest way through, and who follows whom though nobody said so.

Tasks stand in one order in which each follows what it waits for. Going through it, a task that would get in
the way of an earlier one is made to follow it, unless it does so already. Such an edge always points back in
the order, so no ring can come of it.
"""

from __future__ import annotations

from landlane.tasks.model import in_order
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    After = Mapping[str, tuple[str, ...]]

PATH, HOT, NUMBER, CONTRACT = "path", "hot", "number", "contract"


@value
class Follows:
    """One task goes after another, for a reason that the plan does not state as a dependency."""

    task: str
    before: str
    kind: str
    what: str


def find_rings(after: After) -> list[tuple[str, ...]]:
    """Tasks that wait for each other, one ring for each knot of them; empty when all is well."""
    rings: list[tuple[str, ...]] = []
    for knot in _knots(after):
        inside = set(knot)
        start = next(one for one in after if one in inside)
        rings.append(_shortest_ring(start, after, inside))
    return rings


def _knots(after: After) -> list[list[str]]:
    """Groups of tasks of which each waits for each other (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in after:
        if root in number:
            continue
        work = [(root, iter(after[root]))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:  # no recursion: chains can be long
            task, rest = work[-1]
            fresh = next(
                (one for one in rest if one in after and (one not in number or one in on_stack)), None
            )
            if fresh is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[task])
                if low[task] == number[task]:
                    knot = _pop_until(stack, task, on_stack)
                    if len(knot) > 1 or task in after[task]:
                        found.append(knot)
            elif fresh in number:
                low[task] = min(low[task], number[fresh])
            else:
                number[fresh] = low[fresh] = len(number)
                stack.append(fresh)
                on_stack.add(fresh)
                work.append((fresh, iter(after[fresh])))
    return found


def _pop_until(stack: list[str], task: str, on_stack: set[str]) -> list[str]:
    at = stack.index(task)
    knot = stack[at:]
    del stack[at:]
    on_stack.difference_update(knot)
    return knot


def _shortest_ring(start: str, after: After, inside: set[str]) -> tuple[str, ...]:
    """From a task through what it waits for back to itself."""
    came_from: dict[str, str] = {}
    at_hand = [start]
    while at_hand:
        following: list[str] = []
        for task in at_hand:
            for before in after[task]:
                if before == start:
                    return _way(came_from, start, task)
                if before in inside and before not in came_from:
                    came_from[before] = task
                    following.append(before)
        at_hand = following
    return (start, start)  # not reached: it lies in a knot


def _way(came_from: Mapping[str, str], start: str, last: str) -> tuple[str, ...]:
    way = [last]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return (*reversed(way), start)


def contracts_first(after: After, contracts: Sequence[str]) -> list[Follows]:
    """What follows the contracts because they must land first: everything that no contract waits for."""
    needed = set(contracts)
    to_see = list(contracts)
    while to_see:
        for before in after[to_see.pop()]:
            if before in after and before not in needed:
                needed.add(before)
                to_see.append(before)
    first = sorted(set(contracts), key=list(after).index)
    return [
        Follows(task=task, before=contract, kind=CONTRACT, what=f"{contract} must land first")
        for task in after
        if task not in needed
        for contract in first
    ]


def without_detours(after: After, more: Iterable[Follows]) -> list[Follows]:
    """Those of these edges that say something new: the task does not follow the other one anyhow."""
    wanted: dict[str, list[Follows]] = {}
    for edge in more:
        wanted.setdefault(edge.task, []).append(edge)
    joined = {
        task: (*befores, *(edge.before for edge in wanted.get(task, ()))) for task, befores in after.items()
    }
    order = in_order(joined)
    place = {task: at for at, task in enumerate(order)}
    behind: dict[str, int] = {}
    kept: list[Follows] = []
    for task in order:
        mask = _mask(after[task], place, behind)
        for edge in sorted(wanted.get(task, ()), key=lambda one: -place[one.before]):
            if not mask >> place[edge.before] & 1:
                kept.append(edge)
                mask |= _mask((edge.before,), place, behind)
        behind[task] = mask
    return kept


def put_in_sequence(after: After, meets: Callable[[str, str], tuple[str, str] | None]) -> list[Follows]:
    """Who has to follow whom: `meets` tells the kind and the name of what two tasks would fight over."""
    order = in_order(after)
    place = {task: at for at, task in enumerate(order)}
    behind: dict[str, int] = {}
    found: list[Follows] = []
    for at, task in enumerate(order):
        mask = _mask(after[task], place, behind)
        for earlier in reversed(order[:at]):
            if mask >> place[earlier] & 1:
                continue  # it follows that one already
            shared = meets(earlier, task)
            if shared is not None:
                found.append(Follows(task=task, before=earlier, kind=shared[0], what=shared[1]))
                mask |= _mask((earlier,), place, behind)
        behind[task] = mask
    return found


def _mask(befores: Iterable[str], place: Mapping[str, int], behind: Mapping[str, int]) -> int:
    """All that comes before these, and they themselves, as bits."""
    mask = 0
    for before in befores:
        if before in place:
            mask |= behind[before] | 1 << place[before]
    return mask


def join(after: After, more: Iterable[Follows]) -> dict[str, tuple[str, ...]]:
    """The dependencies together with what follows for other reasons."""
    joined = {task: list(befores) for task, befores in after.items()}
    for edge in more:
        if edge.before not in joined[edge.task]:
            joined[edge.task].append(edge.before)
    return {task: tuple(befores) for task, befores in joined.items()}


def waves_of(after: After) -> list[tuple[str, ...]]:
    """What can run at the same time: each wave needs only what stands in earlier ones."""
    level: dict[str, int] = {}
    waves: list[list[str]] = []
    for task in in_order(after):
        level[task] = 1 + max((level[before] for before in after[task] if before in level), default=-1)
        if level[task] == len(waves):
            waves.append([])
        waves[level[task]].append(task)
    return [tuple(wave) for wave in waves]


def longest_way(after: After, weight: Mapping[str, int]) -> tuple[tuple[str, ...], int]:
    """The chain of tasks that takes longest, and how long it takes."""
    ends_at: dict[str, tuple[int, int]] = {}  # when it ends, and how many tasks lead there
    came_from: dict[str, str] = {}
    for task in in_order(after):
        befores = [before for before in after[task] if before in ends_at]
        slowest = max(befores, key=lambda one: ends_at[one], default="")
        start = ends_at[slowest] if slowest else (0, 0)
        if slowest:
            came_from[task] = slowest
        ends_at[task] = (start[0] + weight[task], start[1] + 1)
    if not ends_at:
        return (), 0
    way = [max(ends_at, key=lambda one: ends_at[one])]
    while way[-1] in came_from:
        way.append(came_from[way[-1]])
    return tuple(reversed(way)), ends_at[way[0]][0]
