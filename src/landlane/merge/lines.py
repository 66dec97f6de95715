"""Three-way merge of lines, as diff3 does it, on differences by patience diff.

Patience diff: lines that occur once on both sides are anchors. The longest sequence of them in the same order
on both sides is kept, and the gaps between are treated in the same way. A gap without anchors goes to Myers'
greedy algorithm, with a bound on its work: a gap with more changes counts as replaced, which is coarse but
never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from landlane.values import value

Lines = Sequence[str]
Pair = tuple[int, int]

# Work and memory grow with the square of this; at 400 a hopeless gap takes about a tenth of a second.
MOST_CHANGES = 400


@value
class Change:
    """Base lines from `start` to `end` became these lines; an insertion when the range is empty."""

    start: int
    end: int
    lines: tuple[str, ...]


@value
class Hunk:
    """Base lines that both sides changed differently."""

    base: tuple[str, ...]
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    at: int


def merge_lines(base: Lines, ours: Lines, theirs: Lines) -> list[str | Hunk]:
    """Return the merged lines, with a hunk wherever changes of both sides differ and overlap or touch."""
    left, right = changes(base, ours), changes(base, theirs)
    merged: list[str | Hunk] = []
    at = i = j = 0
    while i < len(left) or j < len(right):
        start = min(change.start for change in (*left[i : i + 1], *right[j : j + 1]))
        merged += base[at:start]
        first_i, first_j = i, j
        end = start
        # Changes that touch belong together: no unchanged line between them says which comes first.
        while True:
            if i < len(left) and left[i].start <= end:
                end = max(end, left[i].end)
                i += 1
            elif j < len(right) and right[j].start <= end:
                end = max(end, right[j].end)
                j += 1
            else:
                break
        merged += _resolve(base, start, end, left[first_i:i], right[first_j:j])
        at = end
    return [*merged, *base[at:]]


def _resolve(
    base: Lines, start: int, end: int, left: list[Change], right: list[Change]
) -> Sequence[str | Hunk]:
    ours, theirs = _apply(base, start, end, left), _apply(base, start, end, right)
    if not right or ours == theirs:
        return ours
    if not left:
        return theirs
    return [Hunk(base=tuple(base[start:end]), ours=ours, theirs=theirs, at=start)]


def _apply(base: Lines, start: int, end: int, made: list[Change]) -> tuple[str, ...]:
    found: list[str] = []
    for change in made:
        found += base[start : change.start]
        found += change.lines
        start = change.end
    return (*found, *base[start:end])


def clean_lines(merged: list[str | Hunk]) -> list[str] | None:
    """Return the lines if there is no hunk, else None."""
    return [line for line in merged if isinstance(line, str)] if not hunks(merged) else None


def hunks(merged: list[str | Hunk]) -> list[Hunk]:
    """Return the hunks."""
    return [part for part in merged if isinstance(part, Hunk)]


def changes(base: Lines, side: Lines) -> list[Change]:
    """Return the changes from the base to a side, in order; a kept line is between any two of them."""
    found: list[Change] = []
    at = side_at = 0
    for i, j in [*matches(base, side), (len(base), len(side))]:
        if i > at or j > side_at:
            found.append(Change(start=at, end=i, lines=tuple(side[side_at:j])))
        at, side_at = i + 1, j + 1
    return found


def matches(left: Lines, right: Lines) -> list[Pair]:
    """Return pairs of positions of equal lines, increasing on both sides."""
    found: list[Pair] = []
    # Ranges still to compare; a list instead of recursion, since gaps can nest as deep as a file is long.
    waiting = [(0, len(left), 0, len(right))]
    while waiting:
        low, high, right_low, right_high = waiting.pop()
        while low < high and right_low < right_high and left[low] == right[right_low]:
            found.append((low, right_low))
            low, right_low = low + 1, right_low + 1
        while low < high and right_low < right_high and left[high - 1] == right[right_high - 1]:
            high, right_high = high - 1, right_high - 1
            found.append((high, right_high))
        if low == high or right_low == right_high:
            continue
        anchors = _anchors(left[low:high], right[right_low:right_high])
        if anchors:
            edges = [(-1, -1), *anchors, (high - low, right_high - right_low)]
            found += ((low + i, right_low + j) for i, j in anchors)
            waiting += [
                (low + i + 1, low + next_i, right_low + j + 1, right_low + next_j)
                for (i, j), (next_i, next_j) in pairwise(edges)
            ]
        else:
            pairs = _myers(left[low:high], right[right_low:right_high])
            found += ((low + i, right_low + j) for i, j in pairs)
    return sorted(found)


def _anchors(left: Lines, right: Lines) -> list[Pair]:
    """Return the longest sequence of lines that occur once on each side and in the same order."""
    places = _single_places(right)
    pairs = [(i, places[line]) for line, i in _single_places(left).items() if line in places]
    tails: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(last[length - 1] if length else -1)
        if length == len(tails):
            tails.append(j)
            last.append(index)
        else:
            tails[length], last[length] = j, index
    longest: list[Pair] = []
    index = last[-1] if last else -1
    while index >= 0:
        longest.append(pairs[index])
        index = before[index]
    return longest[::-1]


def _single_places(lines: Lines) -> dict[str, int]:
    """Return the position of each line that occurs once, in order."""
    seen: dict[str, int] = {}
    for at, line in enumerate(lines):
        seen[line] = -1 if line in seen else at
    return {line: at for line, at in seen.items() if at >= 0}


def _myers(left: Lines, right: Lines) -> list[Pair]:
    """Return the matches of a shortest edit; none if it would have more changes than the bound."""
    # Lines that the other side lacks cannot match, so they are left out.
    of_right, of_left = set(right), set(left)
    kept = [i for i, line in enumerate(left) if line in of_right]
    right_kept = [j for j, line in enumerate(right) if line in of_left]
    a, b = [left[i] for i in kept], [right[j] for j in right_kept]
    reach = {1: 0}
    trace: list[dict[int, int]] = []
    for count in range(min(len(a) + len(b), MOST_CHANGES) + 1):
        trace.append(dict(reach))
        for k in range(-count, count + 1, 2):
            if k == -count or (k != count and reach.get(k - 1, -1) < reach.get(k + 1, -1)):
                x = reach[k + 1]
            else:
                x = reach[k - 1] + 1
            while x < len(a) and 0 <= x - k < len(b) and a[x] == b[x - k]:
                x += 1
            reach[k] = x
            if x >= len(a) and x - k >= len(b):
                return [(kept[i], right_kept[j]) for i, j in _walk_back(trace, len(a), len(b))]
    return []


def _walk_back(trace: list[dict[int, int]], x: int, y: int) -> Iterator[Pair]:
    for count in range(len(trace) - 1, -1, -1):
        reach, k = trace[count], x - y
        is_down = k == -count or (k != count and reach.get(k - 1, -1) < reach.get(k + 1, -1))
        before_k = k + 1 if is_down else k - 1
        before_x = reach[before_k] if count else 0
        before_y = before_x - before_k if count else 0
        while x > before_x and y > before_y:
            x, y = x - 1, y - 1
            yield x, y
        x, y = before_x, before_y
