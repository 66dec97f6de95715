"""Find tasks that look like the same work: a score from 0 to 1, and the reason in words.

Two tasks that name the same issue are the same work. So are two tasks whose titles have nearly the same
words, or most words and a path in common. Common words ("add", "fix", "the"), word endings and one typing
mistake in a long word do not count. Titles that each have a word of their own ("login", "logout") differ.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_COMMON = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "into", "is", "it", "its"),
        *("of", "on", "or", "that", "the", "this", "to", "up", "with", "we", "you", "our", "your", "should"),
        *("please", "new", "add", "fix", "make", "update", "change", "implement", "create", "write"),
        *("support", "use", "improve", "handle", "task"),
    )
)
_ENDINGS = ("ing", "ed", "es", "s", "e")
# These look like the project of an issue id, but name a standard or a product.
_NOT_ISSUES = frozenset(
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
_SWAPPED = 0.85  # if each title has words of its own
_MOST_WORDS = 3  # nearly the same titles have nearly the same longest words
_SEPARATORS = {number: " " for number in range(128) if not chr(number).isalnum() and chr(number) != "_"}
_ID_SEPARATORS = str.maketrans("(),;[]<>\"'`|", " " * 12)
_LONG = 7  # letters of a word in which one typing mistake is ignored


@value
class SimilarTask:
    """A task that looks like another one: how much, and why."""

    task: str
    title: str
    state: str
    score: float
    reason: str


def words_of(text: str) -> frozenset[str]:
    """Return the words that say what a text is about, without their endings."""
    words = _split(text)
    stems = {_stem(word) for word in words if word not in _COMMON}
    # A title that has only common words ("Add support") is compared by these.
    return frozenset(stems - _COMMON_STEMS) or frozenset(words)


def _split(text: str) -> list[str]:
    if text.isascii():
        return text.lower().translate(_SEPARATORS).split()
    letters = (letter if letter.isalnum() or letter == "_" else " " for letter in text.lower())
    return "".join(letters).split()


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "ee")):
            return word[: -len(ending)]
    return word


_COMMON_STEMS = frozenset(_stem(word) for word in _COMMON)


def issues_of(text: str) -> frozenset[str]:
    """Return the issue ids that a text names: `#123`, `ABC-123`, `owner/repo#123`, `…/issues/123`."""
    if "#" not in text and "-" not in text and "/" not in text:
        return frozenset()
    words = text.translate(_ID_SEPARATORS).split()
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
    return word if dash and is_key and _is_number(number) and prefix.split("-")[0] not in _NOT_ISSUES else ""


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 12


def signs_of(title: str, body: str, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the index terms of a task: a digest of its words, the longest words, issue ids and paths."""
    words = words_of(title)
    longest = sorted(words, key=lambda word: (-len(word), word))[:_MOST_WORDS]
    return (
        f"={digest(' '.join(sorted(words)))[:16]}",
        *longest,
        *sorted(issues_of(f"{title} {body}")),
        *sorted({f"/{key}" for key in keys if key}),
    )


@value
class DuplicateCandidate:
    """A task to compare a new one with."""

    task: str
    title: str
    body: str
    state: str
    shares_path: bool = False
    is_family: bool = False  # children of one task may name the same issue without being the same work


def compare_with(title: str, body: str, other: DuplicateCandidate) -> SimilarTask | None:
    """Return how much a new task looks like another one; None when it does not."""
    score, reason = _same_issue(title, body, other) or _same_words(title, other) or (0.0, "")
    if not reason:
        return None
    return SimilarTask(
        task=other.task, title=other.title, state=other.state, score=round(score, 2), reason=reason
    )


def _same_issue(title: str, body: str, other: DuplicateCandidate) -> tuple[float, str] | None:
    common = issues_of(f"{title} {body}") & issues_of(f"{other.title} {other.body}")
    if not common or other.is_family:
        return None
    share, _, _ = _share(words_of(title), words_of(other.title))
    return max(0.9, share), f"both name {', '.join(sorted(common))}"


def _same_words(title: str, other: DuplicateCandidate) -> tuple[float, str] | None:
    share, same, is_swapped = _share(words_of(title), words_of(other.title))
    limit = _SWAPPED if is_swapped else _WITH_PATHS if other.shares_path else _CERTAIN
    if share < limit:
        return None
    where = ", same path" if other.shares_path else ""
    score = min(1.0, share + (0.2 if other.shares_path else 0.0))
    if share == 1:
        return score, f"same title words{where}"
    words = ", ".join(dict.fromkeys(word for word in _split(title) if word in same or _stem(word) in same))
    return score, f"{round(share * 100)} % of the title words are the same ({words}){where}"


def _share(mine: frozenset[str], theirs: frozenset[str]) -> tuple[float, set[str], bool]:
    """Return the share of common words, these words, and whether each side also has others."""
    same = set(mine & theirs)
    rest = set(theirs - same)
    for word in sorted(mine - same):
        near = next((other for other in sorted(rest) if _is_misspelled(word, other)), "")
        if near:
            same.add(word)
            rest.discard(near)
    total = len(mine) + len(rest)
    return (len(same) / total if total else 0.0), same, bool(rest) and len(same) < len(mine)


def _is_misspelled(one: str, other: str) -> bool:
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


def most_similar(similar: Sequence[SimilarTask]) -> tuple[SimilarTask, ...]:
    """Return at most five of these tasks, the most similar first."""
    return tuple(sorted(similar, key=lambda task: (-task.score, task.task))[:5])
