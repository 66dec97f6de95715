"""Commits: the trailers that say who made them, and how they relate.

Answers about full commit ids never change, so they are cached.
"""

from __future__ import annotations

import os
import re
import time

from landlane.git.refs import is_oid
from landlane.git.run import identity_variables, run_in, try_git_output
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.git.discovery import Checkout


AGENT, SESSION, TASK, TOKEN = "Landlane-Agent", "Landlane-Session", "Landlane-Task", "Landlane-Token"

_OURS = re.compile(r"(landlane-(?:agent|session|task|token))\s*:\s*(.*)", re.IGNORECASE)
# Wider than what is read: git can be configured to accept other separators than a colon.
_FORGED = re.compile(r"\s*landlane-(?:agent|session|task|token)\s*[^\w\s-]", re.IGNORECASE)
_TRAILER = re.compile(r"[A-Za-z0-9-]+\s*:\s|\s+\S|\(cherry picked from commit ")


@value
class Trailers:
    """Who made a commit, for which task, and under which fencing tokens."""

    agent: str = ""
    session: str = ""
    task: str = ""
    tokens: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        """Return the lines of the message."""
        pairs = [(AGENT, self.agent), (SESSION, self.session), (TASK, self.task)]
        pairs += [(TOKEN, str(token)) for token in self.tokens]
        return [f"{key}: {text}" for key, text in pairs if text]


def find_forged_trailer(message: str) -> str:
    """Return the first line of a message that could be taken for one of our trailers; empty if none is."""
    return next((line for line in message.split("\n") if _FORGED.match(line)), "")


def with_trailers(message: str, trailers: Trailers) -> str:
    """Return a message with trailers below it, after those it has already.

    git is not used for it: a user's `trailer.*` settings may move, merge or drop trailers.
    """
    text = message.rstrip("\n")
    title, _, body = text.partition("\n")
    last = body.rstrip().split("\n\n")[-1].strip("\n").split("\n") if body.strip() else []
    is_block = bool(last) and "\n\n" in f"{title}\n{body}" and all(_TRAILER.match(line) for line in last)
    return text + ("\n" if is_block else "\n\n") + "\n".join(trailers.lines()) + "\n"


def read_trailers(message: str) -> Trailers:
    """Return the trailers of the last paragraph that has any of ours; a hook may have added more below it.

    If they contradict each other, the result is empty.
    """
    for paragraph in reversed(message.replace("\r\n", "\n").split("\n\n")):
        found: dict[str, list[str]] = {}
        for line in paragraph.split("\n"):
            if match := _OURS.fullmatch(line.rstrip()):
                found.setdefault(match[1].lower(), []).append(match[2])
        if found:
            return _from_lines(found)
    return Trailers()


def _from_lines(found: dict[str, list[str]]) -> Trailers:
    tokens = found.pop(TOKEN.lower(), [])
    if any(len(set(texts)) > 1 for texts in found.values()):
        return Trailers()
    return Trailers(
        agent=found.get(AGENT.lower(), [""])[0],
        session=found.get(SESSION.lower(), [""])[0],
        task=found.get(TASK.lower(), [""])[0],
        tokens=tuple(int(text) for text in tokens if text.isascii() and text.isdecimal() and len(text) < 20),
    )


_MOST_CACHED = 512
_MOST_PATHS = 500  # more paths are not passed to git in one call
_SAME_SECONDS = 5.0  # how long a "not merged" is cached, which may come from a git that failed
_relations: dict[tuple[str, str, str, str], str] = {}
_merged: dict[tuple[str, str, str], tuple[float, bool]] = {}


def is_ancestor(home: Checkout, older: str, newer: str) -> bool:
    """Return whether one commit is in the history of another; every commit is in its own."""
    return bool(_relation(home, "--is-ancestor", older, newer))


def merge_base(home: Checkout, left: str, right: str) -> str:
    """Return the newest commit that two have in common; empty where there is none."""
    return _relation(home, "", left, right)


def _relation(home: Checkout, option: str, left: str, right: str) -> str:
    key = (home.common_dir, option, left, right)
    known = _relations.get(key)
    if known is not None:
        return known
    result = run_in(home, "merge-base", *(word for word in (option, left, right) if word))
    answer = "" if result.exit_code else result.stdout.partition("\n")[0].strip() or "yes"
    # A name may mean another commit later, and the missing part of a shallow history may be fetched.
    is_final = is_oid(left) and is_oid(right) and result.exit_code in (0, 1)
    if is_final and not os.path.exists(os.path.join(home.common_dir, "shallow")):
        if len(_relations) >= _MOST_CACHED:
            _relations.clear()
        _relations[key] = answer
    return answer


def is_merged(home: Checkout, commit: str, into: str) -> bool:
    """Return whether nothing of a commit's own is missing in `into`.

    It is merged when it is an ancestor, when merging it would change nothing, or when all of its change,
    or each of its commits, was applied there as a patch (whose lines may have changed again since).
    """
    if not commit or not into:
        return False
    key = (home.common_dir, commit, into)
    at, known = _merged.get(key, (0.0, False))
    if known or (at and time.monotonic() - at < _SAME_SECONDS):
        return known
    answer = _is_merged(home, commit, into)
    if is_oid(commit) and is_oid(into):  # a name may mean another commit later
        if len(_merged) >= _MOST_CACHED:
            _merged.clear()
        _merged[key] = (time.monotonic(), answer)
    return answer


def _is_merged(home: Checkout, commit: str, into: str) -> bool:
    if is_ancestor(home, commit, into):
        return True
    base = merge_base(home, into, commit)
    if not base or base == into:
        return False  # unrelated, or nothing is newer there
    paths = run_in(home, "diff", "--name-only", "-z", "--no-renames", base, commit).stdout.split("\0")[:-1]
    if not paths:
        return False  # commits without a change cannot be found by their content
    if len(paths) <= _MOST_PATHS and not _is_touched(home, base, into, paths):
        return False
    return _adds_nothing(home, commit, into) or _was_applied(home, commit, into, base)


def _is_touched(home: Checkout, base: str, into: str, paths: Sequence[str]) -> bool:
    """Return whether a commit since the base changed these paths; else none can be the same work."""
    words = ("rev-list", "--max-count=1", "--full-history", f"{base}..{into}", "--", *paths)
    result = run_in(home, *words, variables={"GIT_LITERAL_PATHSPECS": "1"})
    return bool(result.exit_code or result.stdout.strip())


def _adds_nothing(home: Checkout, commit: str, into: str) -> bool:
    merged = run_in(home, "merge-tree", "--write-tree", into, commit)
    tree = merged.stdout.partition("\n")[0].strip()
    return not merged.exit_code and tree == try_git_output(home, "rev-parse", f"{into}^{{tree}}")


def _was_applied(home: Checkout, commit: str, into: str, base: str) -> bool:
    # `cherry` ignores merges, which may contain work of their own.
    has_merges = bool(try_git_output(home, "rev-list", "--merges", "--max-count=1", f"{base}..{commit}"))
    if not has_merges and _is_each_applied(home, commit, into, base):
        return True
    words = ("commit-tree", f"{commit}^{{tree}}", "-p", base, "-m", "as one")
    squashed = run_in(home, *words, variables=identity_variables("landlane")).stdout.strip()
    return bool(squashed) and _is_each_applied(home, squashed, into, base)


def _is_each_applied(home: Checkout, commit: str, into: str, base: str) -> bool:
    lines = try_git_output(home, "cherry", into, commit, base).splitlines()
    return bool(lines) and all(line.startswith("-") for line in lines)
