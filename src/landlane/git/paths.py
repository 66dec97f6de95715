"""Turn a path that a person or tool gives into the name that all worktrees share."""

from __future__ import annotations

import os

from landlane.errors import PatternError, RepositoryError
from landlane.git.discovery import Checkout, checkout_at
from landlane.patterns.pattern import LONGEST_TEXT, Pattern, has_special, parse, reads_as_name

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
                f"{text[:80]!r} leads out of the repository, to {real[:200]}",
                code="PATH_OUTSIDE",
                hint=f"claim what lies below {checkout.root}, or a named thing such as deploy:prod",
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
