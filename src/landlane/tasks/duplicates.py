"""Tasks that look like the same work: a score between 0 and 1, and the reason in words.

Nothing clever: the same issue id is the same work; nearly the same words in the title are the same work; most
of the words and a common path are. Words that every task has ("add", "fix", "the") do not count, nor do
endings, nor one slip of the pen in a long word. Where each title has a word of its own ("login", "logout"),
they are two.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMMON = frozenset(
    (
        *(
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
        ),
        *(
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
            "should",
            "please",
        ),
        *("new", "add", "fix", "make", "update", "change", "implement", "create", "write", "support", "use"),
        *("improve", "handle", "task"),
    )
)
_ENDINGS = ("ing", "ed", "es", "s", "e")
# What looks like an issue id but names a standard or a product.
_NO_ISSUES = frozenset(
    (
        *(
            "AES",
            "ANSI",
            "ARM",
            "BASE",
            "CP",
            "CRC",
            "DIN",
            "ECMA",
            "GPT",
            "HTTP",
            "IEEE",
            "IP",
            "IPV",
            "ISO",
        ),
        *("LATIN", "MD", "MP", "PEP", "RFC", "RSA", "SHA", "SSL", "TLS", "UCS", "USB", "UTF", "WINDOWS"),
    )
)
_CERTAIN = 0.8
_WITH_PATHS = 0.6
_SWAPPED = 0.85  # where each of the two has words of its own
_MOST_WORDS = 3  # nearly the same titles have nearly the same longest words
_NO_WORDS = {number: " " for number in range(128) if not chr(number).isalnum() and chr(number) != "_"}
_NO_IDS = str.maketrans("(),;[]<>\"'`|", " " * 12)
_LONG = 7  # letters of a word in which one slip is passed over


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
    words = _split(text)
    plain = {_plain(word) for word in words if word not in _COMMON}
    # A title of common words alone ("Add support") is about these.
    return frozenset(plain - _PLAIN_COMMON) or frozenset(words)


def _split(text: str) -> list[str]:
    if text.isascii():
        return text.lower().translate(_NO_WORDS).split()
    letters = (letter if letter.isalnum() or letter == "_" else " " for letter in text.lower())
    return "".join(letters).split()


def _plain(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "ee")):
            return word[: -len(ending)]
    return word


_PLAIN_COMMON = frozenset(_plain(word) for word in _COMMON)


def issues_of(text: str) -> frozenset[str]:
    """The issue ids that a text names: `#123`, `ABC-123`, `owner/repo#123`, `…/issues/123`."""
    if "#" not in text and "-" not in text and "/" not in text:
        return frozenset()
    words = text.translate(_NO_IDS).split()
    return frozenset(issue for word in words if (issue := _issue(word.strip(".:!?*_/"))))


def _issue(word: str) -> str:
    head, mark, number = word.rpartition("#")
    if mark and _is_number(number) and (not head or "/" in head):
        return f"#{number}"
    for part in ("/issues/", "/pull/"):
        before, sign, number = word.partition(part)
        if sign and before and _is_number(number):
            return f"#{number}"
    prefix, dash, number = word.rpartition("-")
    is_key = len(prefix) >= 2 and prefix.isascii() and prefix.isupper() and prefix[0].isalpha()
    return word if dash and is_key and _is_number(number) and prefix.split("-")[0] not in _NO_ISSUES else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def signs_of(title: str, body: str, keys: Iterable[str]) -> tuple[str, ...]:
    """What a task is found by later: all its words at once, the longest of them, its issue ids, its paths."""
    words = words_of(title)
    longest = sorted(words, key=lambda word: (-len(word), word))[:_MOST_WORDS]
    return (
        f"={digest(' '.join(sorted(words)))[:16]}",
        *longest,
        *sorted(issues_of(f"{title} {body}")),
        *sorted({f"/{key}" for key in keys if key}),
    )


@value
class Lookalike:
    """Another task, as far as likeness goes."""

    task: str
    title: str
    body: str
    state: str
    shares_path: bool = False
    is_family: bool = False  # children of one task name one issue and are not the same work


def likeness(title: str, body: str, other: Lookalike) -> Likeness | None:
    """How much a new task looks like another; nothing when it does not."""
    score, reason = _same_issue(title, body, other) or _same_words(title, other) or (0.0, "")
    if not reason:
        return None
    return Likeness(
        task=other.task, title=other.title, state=other.state, score=round(score, 2), reason=reason
    )


def _same_issue(title: str, body: str, other: Lookalike) -> tuple[float, str] | None:
    common = issues_of(f"{title} {body}") & issues_of(f"{other.title} {other.body}")
    if not common or other.is_family:
        return None
    share, _, _ = _share(words_of(title), words_of(other.title))
    return max(0.9, share), f"both name {', '.join(sorted(common))}"


def _same_words(title: str, other: Lookalike) -> tuple[float, str] | None:
    share, same, is_swapped = _share(words_of(title), words_of(other.title))
    limit = _SWAPPED if is_swapped else _WITH_PATHS if other.shares_path else _CERTAIN
    if share < limit:
        return None
    where = " and a path in common" if other.shares_path else ""
    score = min(1.0, share + (0.2 if other.shares_path else 0.0))
    words = ", ".join(dict.fromkeys(word for word in _split(title) if word in same or _plain(word) in same))
    return score, f"{round(share * 100)} % of the words in the titles are the same ({words}){where}"


def _share(mine: frozenset[str], theirs: frozenset[str]) -> tuple[float, set[str], bool]:
    """How much of all words is common to both, these words, and whether each has others of its own."""
    same = set(mine & theirs)
    left = set(theirs - same)
    for word in sorted(mine - same):
        near = next((other for other in sorted(left) if _is_slip(word, other)), "")
        if near:
            same.add(word)
            left.discard(near)
    total = len(mine) + len(left)
    return (len(same) / total if total else 0.0), same, bool(left) and len(same) < len(mine)


def _is_slip(one: str, other: str) -> bool:
    """Whether two long words differ by one letter changed, left out, added or swapped with the next."""
    if min(len(one), len(other)) < _LONG or abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    if not (one + other).isalpha():
        return False  # numbers differ on purpose
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def best_first(found: Sequence[Likeness]) -> tuple[Likeness, ...]:
    """The likeliest first, at most five."""
    return tuple(sorted(found, key=lambda one: (-one.score, one.task))[:5])
