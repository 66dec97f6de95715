"""Decide whether two globs can match the same path, and find an example of one."""

from __future__ import annotations

from functools import lru_cache

from landlane.patterns.glob import ANY_CHARACTER, ANY_NAME, common_characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.patterns.glob import Characters, Item, Name, Row, Token


_READABLE = "abcdefghijklmnopqrstuvwxyz0123456789_"


def _characters(token: Token) -> Characters:
    return ((ord(token), ord(token)),) if isinstance(token, str) else token


def _tokens_meet(left: Token, right: Token) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return bool(common_characters(_characters(left), _characters(right)))


def _token_holds(outer: Token, inner: Token) -> bool:
    members = _characters(inner)
    return common_characters(_characters(outer), members) == members


def _readable(characters: Characters) -> str:
    for char in _READABLE:
        if any(low <= ord(char) <= high for low, high in characters):
            return char
    return chr(characters[0][0])


def rows_meet(left: Row, right: Row) -> bool:
    """Return whether some path matches both sequences of names."""
    return bool(_walk(left, right, names_meet)[-1] >> len(right) & 1)


@lru_cache(maxsize=4096)
def names_meet(left: Name, right: Name) -> bool:
    """Return whether some name matches both."""
    if left == ANY_NAME or right == ANY_NAME:
        return True
    if isinstance(left, str) and isinstance(right, str):
        return left == right
    return bool(_walk(left, right, _tokens_meet)[-1] >> len(right) & 1)


def row_holds(outer: Row, inner: Row) -> bool:
    """Return whether all that matches the inner sequence matches the outer; exact for plain inner names."""
    return _holds(outer, inner, name_holds, ANY_NAME)


@lru_cache(maxsize=4096)
def name_holds(outer: Name, inner: Name) -> bool:
    """Return whether every name that matches the inner one matches the outer; False may be wrong."""
    return outer in (inner, ANY_NAME) or _holds(outer, inner, _token_holds, ANY_CHARACTER)


def common_names(left: Row, right: Row) -> list[str] | None:
    """Return the names of one path that matches both sequences, or None."""
    steps = _trace(left, right, names_meet, short=True)
    return None if steps is None else [_common_name(a or ANY_NAME, b or ANY_NAME) for a, b in steps if a or b]


def _common_name(left: Name, right: Name) -> str:
    """Return a name that matches both; one must exist."""
    steps = _trace(left, right, _tokens_meet, short=False) or []
    sets = (
        common_characters(_characters(a or ANY_CHARACTER), _characters(b or ANY_CHARACTER)) for a, b in steps
    )
    return "".join(map(_readable, sets))


def _walk(
    left: Sequence[Item | None], right: Sequence[Item | None], meets: Callable[[Item, Item], bool]
) -> list[int]:
    """Return the reachable positions of the right sequence, as bits, for each position of the left one.

    The list ends early, with 0, when nothing is reached any more.
    """
    gaps, spots = _spots(right)
    masks: dict[Item, int] = {}
    sequence = 1
    sequences: list[int] = []
    for item in left:
        sequence |= (sequence & gaps) << 1
        if item is None:
            # A gap on the left matches anything on the right: all positions from the lowest bit up.
            sequence = (2 << len(right)) - (sequence & -sequence)
            sequences.append(sequence)
            continue
        sequences.append(sequence)
        if item not in masks:
            masks[item] = _mask(item, spots, meets)
        sequence = sequence & gaps | (sequence & masks[item]) << 1
        if not sequence:
            break
    sequences.append(sequence | (sequence & gaps) << 1)
    return sequences


def _holds(
    outer: Sequence[Item | None],
    inner: Sequence[Item | None],
    holds: Callable[[Item, Item], bool],
    anything: Item,
) -> bool:
    """Return whether the outer sequence can follow the inner one; bit j: from the inner item j on."""
    gaps, spots = _spots(inner)
    sequence = 1 << len(inner)
    for item in reversed(outer):
        if item is None:
            sequence = (1 << sequence.bit_length()) - 1
            continue
        here = sequence >> 1 & _mask(item, spots, holds)
        if item == anything:
            # An inner gap may be empty, or start with one item and continue as a gap.
            here |= gaps & here >> 1 & sequence
        sequence = here
    return bool(sequence & 1)


def _spots(sequence: Sequence[Item | None]) -> tuple[int, dict[Item, int]]:
    """Return the positions of the gaps and of each item, as bits."""
    gaps = 0
    spots: dict[Item, int] = {}
    for at, item in enumerate(sequence):
        if item is None:
            gaps |= 1 << at
        else:
            spots[item] = spots.get(item, 0) | 1 << at
    return gaps, spots


def _mask(item: Item, spots: dict[Item, int], relation: Callable[[Item, Item], bool]) -> int:
    """Return the positions of the items that have this relation to the given one, as bits."""
    mask = spots.get(item, 0)
    # Two plain items are related only when equal; skipping them keeps long literal names fast.
    is_plain = isinstance(item, str)
    for other, where in spots.items():
        if not (is_plain and isinstance(other, str)) and relation(item, other):
            mask |= where
    return mask


def _trace(
    left: Sequence[Item | None],
    right: Sequence[Item | None],
    meets: Callable[[Item, Item], bool],
    *,
    short: bool,
) -> list[tuple[Item | None, Item | None]] | None:
    """Return the pairs of items (None: a gap) matched along one path back through the automaton, or None.

    A short path pairs items where it can. The other uses the gaps, and fills those that both sequences have,
    so that examples look like names: `a.py` rather than `.py`.
    """
    sequences = _walk(left, right, meets)
    i, j = len(left), len(right)
    if not sequences[-1] >> j & 1:
        return None
    steps: list[tuple[Item | None, Item | None]] = []
    while i or j:
        a, b = left[i - 1] if i else None, right[j - 1] if j else None
        in_left_gap = i < len(left) and left[i] is None
        in_right_gap = j < len(right) and right[j] is None
        is_pair = a is not None and b is not None and sequences[i - 1] >> (j - 1) & 1 and meets(a, b)
        up = i and sequences[i - 1] >> j & 1 and (a is None or in_right_gap)
        across = j and sequences[i] >> (j - 1) & 1 and (b is None or in_left_gap)
        if is_pair and (short or not (up or across)):
            i, j = i - 1, j - 1
            steps.append((a, b))
        elif up:
            i -= 1
            steps += [(a, None)] if in_right_gap else []
        else:
            j -= 1
            steps += [(None, b)] if in_left_gap else []
    return steps[::-1]
