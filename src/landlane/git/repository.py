"""One checkout: patterns from given paths, commits, last changes and numbers."""

from __future__ import annotations

import os

from landlane.errors import Malformed, PatternError, RepositoryError
from landlane.git.discovery import Checkout, checkout_at
from landlane.git.refs import is_oid
from landlane.patterns.pattern import (
    LITERAL,
    LONGEST_TEXT,
    Pattern,
    covers_alternative,
    has_special,
    parse,
    reads_as_name,
)
from landlane.text import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from landlane.git.discovery import Checkout


_MARKER = ":/"  # as in git: from the root of the repository


def pattern_from(
    text: str, checkout: Checkout, cwd: str, *, is_literal: bool = False, ignore_case: bool = False
) -> Pattern:
    """Return the pattern that `text` means when typed in `cwd`.

    It is relative to `cwd`, absolute inside any worktree of the repository, or from its root with `:/…`;
    links are followed as far as the text is literal.

    Raises:
        PatternError: it is empty, malformed, or leads out of the repository.
    """
    if not is_literal and reads_as_name(text):
        return parse(text, ignore_case=ignore_case)
    if "\0" in text or not text or len(text) > LONGEST_TEXT:
        return parse(text, literal=is_literal, ignore_case=ignore_case)  # it raises
    base = cwd
    for start in (_MARKER, checkout.root + "/"):  # the repository's own folder is literal, whatever its name
        if text.startswith(start):
            base, text = checkout.root, text[len(start) :] or "."
            break
    head, tail = (text, "") if is_literal else _literal_head(text)
    inside = _inside(os.path.join(base, head) if head else base, text, checkout, ignore_case=ignore_case)
    if not tail:
        return parse(inside or ".", literal=True, ignore_case=ignore_case)
    # "./" keeps a path a path that looks like a name.
    return parse("./" + "/".join(part for part in (_escape(inside), tail) if part), ignore_case=ignore_case)


def _literal_head(text: str) -> tuple[str, str]:
    """Return the segments before the first one with a special character, and the rest."""
    parts = text.split("/")
    for index, part in enumerate(parts):
        if has_special(part):
            if ".." in parts[index:]:
                raise PatternError(
                    f"{text[:80]!r} goes up with `..` behind a wildcard",
                    code="PATTERN_GOES_UP",
                    hint="write the path without `..`",
                )
            head = "/".join(parts[:index])
            return head or ("/" if index else ""), "/".join(parts[index:])
    return text, ""


def _inside(path: str, text: str, checkout: Checkout, *, ignore_case: bool) -> str:
    """Return the path below the root of the repository, with links resolved."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise PatternError(
            f"{text[:80]!r} cannot be resolved: {error}", code="PATTERN_UNRESOLVABLE", hint="check the path"
        ) from error
    inside = os.path.relpath(real, _root_above(real, text, checkout))
    inside = "" if inside == "." else inside
    first = inside.partition("/")[0]
    if first == ".git" or (ignore_case and first.lower() == ".git"):
        raise PatternError(
            f"{text[:80]!r} is inside git's own folder",
            code="PATH_INSIDE_GIT",
            hint="claim files of the working tree; git's own files have their own locks",
        )
    return inside


def _root_above(real: str, text: str, checkout: Checkout) -> str:
    """Return the root of the worktree that contains a path: this one, or another of the same repository."""
    folder = real
    while folder != checkout.root:
        other = _other_checkout(folder)
        if other is not None and other.home_dir == checkout.home_dir:
            return folder
        if other is not None and folder != real and folder.startswith(checkout.root.rstrip("/") + "/"):
            # As in git, a file belongs to one repository: two agents must not hold it under two names.
            where = os.path.relpath(folder, checkout.root)
            raise PatternError(
                f"{text[:80]!r} belongs to another repository, the one at {where}",
                code="PATH_IN_OTHER_REPOSITORY",
                hint=f"act there: landlane claim {os.path.relpath(real, folder)} --repo {where}",
            )
        parent = os.path.dirname(folder)
        if parent == folder:
            raise PatternError(
                f"{text[:80]} is outside {home_path(checkout.root)}",
                code="PATH_OUTSIDE",
                hint="name a path inside the repository, or a name such as deploy:prod",
            )
        folder = parent
    return folder


def _other_checkout(folder: str) -> Checkout | None:
    if not os.path.lexists(os.path.join(folder, ".git")):
        return None
    try:
        return checkout_at(folder)
    except RepositoryError:
        return None  # it is not a repository that could have its own claims


def _escape(path: str) -> str:
    return "".join(f"\\{letter}" if has_special(letter) else letter for letter in path)


class GitRepository:
    """One checkout, seen from a working folder."""

    def __init__(self, checkout: Checkout, cwd: str, *, ignore_case: bool = False) -> None:
        self.checkout = checkout
        self.root = checkout.root
        self._cwd = cwd
        self._ignore_case = ignore_case

    @property
    def is_at_root(self) -> bool:
        """Whether paths of the repository can be typed here as they are."""
        return self._cwd == self.root

    def pattern(self, text: str, *, is_literal: bool = False) -> Pattern:
        """Return the pattern that a text means in the working folder."""
        return pattern_from(
            text, self.checkout, self._cwd, is_literal=is_literal, ignore_case=self._ignore_case
        )

    def pattern_of(self, text: str, kind: str) -> Pattern:
        """Return the pattern of a canonical text, from the store or the settings, relative to the root."""
        return parse(text, literal=kind == LITERAL, ignore_case=self._ignore_case)

    def find_glob(self, globs: Collection[str], path: str) -> str:
        """Return the first of these globs that covers a path; empty if none does."""
        if not globs:
            return ""
        (literal,) = self.pattern_of(path, "literal").alternatives
        for glob in globs:
            if any(covers_alternative(one, literal) for one in self.pattern_of(glob, "glob").alternatives):
                return glob
        return ""

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
                f"{text[:60]!r} is not a commit here",
                code="UNKNOWN_COMMIT",
                hint="give an id from `git log`, or HEAD",
            )
        return commit

    def last_change(self, path: str) -> dict[str, Any]:
        """Return who last committed a change to a path, from the trailers; empty when there is no commit."""
        from landlane.git.commits import read_trailers  # noqa: PLC0415 - only needed here

        if not self.checkout.common_dir:
            return {}
        form = "--format=%H%x00%an%x00%aI%x00%s%x00%B"
        logged = _git_output(self.checkout, "log", "-1", form, "--", f":(top,literal){path}")
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


def is_case_insensitive(checkout: Checkout) -> bool:
    """Return whether the file system ignores case, as git found when the repository was made."""
    words = ("config", "--type=bool", "--get", "core.ignorecase")
    return bool(checkout.common_dir) and _git_output(checkout, *words) == "true"


def _git_output(checkout: Checkout, *words: str) -> str:
    from landlane.git.run import try_git_output  # noqa: PLC0415 - expensive, and few commands need it

    return try_git_output(checkout, *words)
