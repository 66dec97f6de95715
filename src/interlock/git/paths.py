"""What a person or a tool calls a path, turned into the one name all worktrees share for it."""

from __future__ import annotations

import os

from interlock.domain.patterns import Pattern, has_special, parse, reads_as_name
from interlock.errors import PatternError, RepositoryError
from interlock.git.layout import Checkout, find_checkout

_MARKER = ":/"  # git's own sign for "from the root of the repository"


def pattern_from(
    text: str, checkout: Checkout, cwd: str, *, is_literal: bool = False, ignore_case: bool = False
) -> Pattern:
    """The pattern that `text` means when typed in `cwd`.

    Relative to the folder one stands in, absolute inside any worktree of the repository, `:/…` from its root;
    links on the way are followed as far as the text is literal.

    Raises:
        PatternError: it is empty, malformed, or leads out of the repository.
    """
    if not is_literal and reads_as_name(text):
        return parse(text, ignore_case=ignore_case)
    if "\0" in text or not text.strip():
        return parse(text, literal=is_literal, ignore_case=ignore_case)  # which says what is wrong
    if text.startswith(_MARKER):
        base, text = checkout.root, text[len(_MARKER) :] or "."
    else:
        base = cwd
    head, tail = (text, "") if is_literal else _literal_head(text)
    inside = _inside(os.path.join(base, head) if head else base, text, checkout)
    if not tail:
        return parse(inside or ".", literal=True, ignore_case=ignore_case)
    # "./" keeps a path that looks like a named thing a path.
    return parse("./" + "/".join(part for part in (_escape(inside), tail) if part), ignore_case=ignore_case)


def _literal_head(text: str) -> tuple[str, str]:
    """The segments before the first one with a special character, and the rest."""
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


def _inside(path: str, text: str, checkout: Checkout) -> str:
    """The path below the root of the repository, as every worktree names it; links resolved."""
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise PatternError(
            f"{text[:80]!r} cannot be resolved: {error}", code="PATTERN_UNRESOLVABLE", hint="check the path"
        ) from error
    folder = real
    while True:
        if folder == checkout.root or _is_other_worktree(folder, checkout):
            break
        parent = os.path.dirname(folder)
        if parent == folder:
            raise PatternError(
                f"{text[:80]!r} leads out of the repository, to {real[:200]}",
                code="PATH_OUTSIDE",
                hint=f"claim what lies below {checkout.root}, or a named thing such as deploy:prod",
            )
        folder = parent
    inside = os.path.relpath(real, folder)
    inside = "" if inside == "." else inside
    if inside == ".git" or inside.startswith(".git/"):
        raise PatternError(
            f"{text[:80]!r} is inside git's own folder",
            code="PATH_INSIDE_GIT",
            hint="claim files of the working tree; git's own files have their own locks",
        )
    return inside


def _is_other_worktree(folder: str, checkout: Checkout) -> bool:
    if not checkout.common_dir or not os.path.lexists(os.path.join(folder, ".git")):
        return False
    try:
        other = find_checkout_of(folder)
    except RepositoryError:
        return False
    return other is not None and other.common_dir == checkout.common_dir


def find_checkout_of(folder: str) -> Checkout | None:
    """The checkout whose root is exactly this folder."""
    found = find_checkout(folder)
    return found if found.root == os.path.realpath(folder) else None


def _escape(path: str) -> str:
    return "".join(f"\\{letter}" if has_special(letter) else letter for letter in path)

