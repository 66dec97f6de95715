"""Tasks that look like the same work: a score between 0 and 1, and the reason in words.

Nothing clever: the same issue id is the same work; nearly the same words in the title are the same work; half
of the words and a common path are. Words that every task has ("add", "fix", "the") do not count.
"""

from __future__ import annotations

from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "up",
        "with",
        "we",
        "you",
        "our",
        "your",
        "new",
        "add",
        "fix",
        "make",
        "update",
        "change",
        "implement",
        "create",
        "write",
        "support",
        "use",
        "improve",
        "handle",
        "task",
        "please",
        "should",
    ]
)
_ENDINGS = ("ing", "ed", "es", "s")
_CERTAIN = 0.8
_WITH_PATHS = 0.5
_MOST_WORDS = 5


@value
class Likeness:
    """How much another task looks like this one, and why."""

    task: str
    title: str
    state: str
    score: float
    reason: str


def words_of(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, in their plainest form."""
    found: set[str] = set()
    word = ""
    for letter in text.lower() + " ":
        if letter.isalnum() or letter == "_":
            word += letter
        elif word:
            if word not in _COMMON:
                found.add(_plain(word))
            word = ""
    return frozenset(found)


def _plain(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def issues_of(text: str) -> frozenset[str]:
    """The issue ids that a text names: `#123`, `ABC-123`, `owner/repo#123`, `…/issues/123`."""
    found: set[str] = set()
    for raw in text.replace("(", " ").replace(")", " ").replace(",", " ").split():
        word = raw.strip(".:;!?[]\"'")
        head, mark, number = word.rpartition("#")
        if mark and number.isdigit():
            found.add(f"#{number}" if not head or "/" in head else "")
        prefix, dash, digits = word.rpartition("-")
        if dash and digits.isdigit() and len(prefix) >= 2 and prefix.isascii() and prefix.isupper():
            found.add(word)
        for part in ("/issues/", "/pull/"):
            before, sign, rest = word.partition(part)
            if sign and before and rest.rstrip("/").isdigit():
                found.add(f"#{rest.rstrip('/')}")
    return frozenset(found - {""})


def signs_of(title: str, body: str, keys: Iterable[str]) -> tuple[str, ...]:
    """What a task is found by later: its longest words, its issue ids, and the folders or files it names."""
    words = sorted(words_of(title), key=lambda word: (-len(word), word))[:_MOST_WORDS]
    return (
        *words,
        *sorted(issues_of(f"{title} {body}")),
        *sorted({f"/{key}" for key in keys if key}),
    )


def likeness(title: str, body: str, shares_path: bool, other: tuple[str, str, str, str]) -> Likeness | None:
    """How much a new task looks like another, given as (id, title, body, state); nothing when it does not."""
    task, other_title, other_body, state = other
    common = issues_of(f"{title} {body}") & issues_of(f"{other_title} {other_body}")
    mine, theirs = words_of(title), words_of(other_title)
    together = mine | theirs
    alike = len(mine & theirs) / len(together) if together else 0.0
    if common:
        return Likeness(
            task=task,
            title=other_title,
            state=state,
            score=round(max(0.9, alike), 2),
            reason=f"both name {', '.join(sorted(common))}",
        )
    if alike >= _CERTAIN or (shares_path and alike >= _WITH_PATHS):
        where = " and a path in common" if shares_path else ""
        same = ", ".join(sorted(mine & theirs))
        return Likeness(
            task=task,
            title=other_title,
            state=state,
            score=round(min(1.0, alike + (0.2 if shares_path else 0.0)), 2),
            reason=f"{round(alike * 100)} % of the words in the titles are the same ({same}){where}",
        )
    return None


def best_first(found: Sequence[Likeness]) -> tuple[Likeness, ...]:
    """The likeliest first, at most five."""
    return tuple(sorted(found, key=lambda one: (-one.score, one.task))[:5])
