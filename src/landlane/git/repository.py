"""Patterns, commits, last changes and numbers of one checkout."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.git.paths import pattern_from
from landlane.git.refs import is_oid
from landlane.patterns.pattern import Pattern, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.numbers_in_file_names import NumbersFound


class GitRepository:
    """One checkout, seen from a working folder."""

    def __init__(self, checkout: Checkout, cwd: str, *, ignore_case: bool = False) -> None:
        self.checkout = checkout
        self.root = checkout.root
        self._cwd = cwd
        self._ignore_case = ignore_case

    def pattern(self, text: str, *, is_literal: bool = False) -> Pattern:
        """Return the pattern that a text means in the working folder."""
        return pattern_from(
            text, self.checkout, self._cwd, is_literal=is_literal, ignore_case=self._ignore_case
        )

    def pattern_of(self, text: str, kind: str) -> Pattern:
        """Return the pattern of a canonical text, from the store or the settings, relative to the root."""
        return parse(text, literal=kind == "literal", ignore_case=self._ignore_case)

    def commit_id(self, text: str) -> str:
        """Return the full id of a commit.

        Raises:
            Malformed: there is no such commit.
        """
        from landlane.git.run import resolve_revision  # noqa: PLC0415 - expensive, and few commands need it

        named = text.strip()
        is_valid = named and not named.startswith("-") and "\0" not in named and self.checkout.common_dir
        commit = resolve_revision(self.checkout, f"{named}^{{commit}}") if is_valid else ""
        if not is_oid(commit):
            raise Malformed(
                f"{text[:60]!r} is no commit here",
                code="UNKNOWN_COMMIT",
                hint="give an id from `git log`, or HEAD",
            )
        return commit

    def last_change(self, path: str) -> dict[str, Any]:
        """Return who last committed a change to a path, from the trailers; empty when there is no commit."""
        from landlane.git.run import try_git_output  # noqa: PLC0415 - expensive, and few commands need it
        from landlane.git.trailers import read_trailers  # noqa: PLC0415 - only needed here

        if not self.checkout.common_dir:
            return {}
        form = "--format=%H%x00%an%x00%aI%x00%s%x00%B"
        logged = try_git_output(self.checkout, "log", "-1", form, "--", f":(top,literal){path}")
        if not logged:
            return {}
        commit, author, at, subject, message = logged.split("\0")[:5]
        trailers = read_trailers(message)
        return {
            "commit": commit,
            "author": author,
            "at": at,
            "subject": subject,
            "agent": trailers.agent,
            "session": trailers.session or None,
            "task": trailers.task or None,
            "tokens": list(trailers.tokens),
        }

    def numbers_in(self, path: str) -> NumbersFound:
        """Return the numbers that files have where `path` has `{n}`, in branches and working trees."""
        from landlane.git.numbers_in_file_names import find_numbers  # noqa: PLC0415 - only needed here

        return find_numbers(self.checkout, path)


def is_case_insensitive(checkout: Checkout) -> bool:
    """Return whether the file system ignores case, as git found when the repository was made."""
    from landlane.git.run import try_git_output  # noqa: PLC0415 - expensive, and asked once

    words = ("config", "--type=bool", "--get", "core.ignorecase")
    return bool(checkout.common_dir) and try_git_output(checkout, *words) == "true"
