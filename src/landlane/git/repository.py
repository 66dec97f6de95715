"""The repository as operations see it: what paths mean here, which commits exist, who last changed what."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.git.paths import pattern_from
from landlane.patterns.pattern import Pattern, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.numbers_in_file_names import NumbersFound


_HEX = frozenset("0123456789abcdef")


class GitRepository:
    """One checkout, seen from one folder."""

    def __init__(self, checkout: Checkout, cwd: str, *, ignore_case: bool = False) -> None:
        self.checkout = checkout
        self.root = checkout.root
        self._cwd = cwd
        self._ignore_case = ignore_case

    def pattern(self, text: str, *, is_literal: bool = False) -> Pattern:
        """The pattern that a text means here."""
        return pattern_from(
            text, self.checkout, self._cwd, is_literal=is_literal, ignore_case=self._ignore_case
        )

    def pattern_of(self, text: str, kind: str) -> Pattern:
        """A pattern in its canonical form, as stored or as written in the settings, from the root."""
        return parse(text, literal=kind == "literal", ignore_case=self._ignore_case)

    def commit_id(self, text: str) -> str:
        """The full id of a commit that exists.

        Raises:
            Malformed: there is no such commit.
        """
        from landlane.git.run import run_in  # noqa: PLC0415

        named = text.strip()
        unknown = Malformed(
            f"{text[:60]!r} is no commit here",
            code="UNKNOWN_COMMIT",
            hint="give an id from `git log`, or HEAD",
        )
        if not self.checkout.common_dir or not named or named.startswith("-") or "\0" in named:
            raise unknown
        found = run_in(self.checkout, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}")
        commit = found.stdout.strip()
        if found.exit_code or not _HEX.issuperset(commit) or not commit:
            raise unknown
        return commit

    def last_change(self, path: str) -> dict[str, Any]:
        """Who last committed a change to a path, as its trailers tell; empty when nobody did."""
        from landlane.git.run import run_in  # noqa: PLC0415
        from landlane.git.trailers import read_trailers  # noqa: PLC0415

        if not self.checkout.common_dir:
            return {}
        form = "%H%x00%an%x00%aI%x00%s%x00%B"
        found = run_in(self.checkout, "log", "-1", f"--format={form}", "--", f":(top,literal){path}")
        parts = found.stdout.strip("\n").split("\0")
        if found.exit_code or len(parts) < 5:
            return {}
        commit, author, at, subject, message = parts[:5]
        told = read_trailers(message)
        return {
            "commit": commit,
            "author": author,
            "at": at,
            "subject": subject,
            "agent": told.agent,
            "session": told.session or None,
            "task": told.task or None,
            "tokens": list(told.tokens),
        }

    def numbers_in(self, path: str) -> NumbersFound:
        """The numbers that stand where `path` has its `{n}`: in branches, and in working trees."""
        from landlane.git.numbers_in_file_names import find_numbers  # noqa: PLC0415

        return find_numbers(self.checkout, path)


def is_case_insensitive(checkout: Checkout) -> bool:
    """Whether git found this file system to ignore case when the repository was made."""
    if not checkout.common_dir:
        return False
    from landlane.git.run import run_in  # noqa: PLC0415

    found = run_in(checkout, "config", "--type=bool", "--get", "core.ignorecase")
    return found.stdout.strip() == "true"
