"""Find worktrees that other programs created inside the repository, and the tools that would search them.

A test runner or linter that finds a nested copy of the project runs everything twice, usually on old code.
Each rule knows what one tool skips by default and in which settings to exclude more. Settings that are
programs are not run: a folder counts as excluded when they name it.
"""

from __future__ import annotations

import os

from landlane.doctor.check import Check, failed, passed
from landlane.doctor.nested_worktree_rules import RULES, Nest
from landlane.git.remove_checkout import list_worktrees
from landlane.git.run import run_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.doctor.nested_worktree_rules import Walker
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository

_DEEPEST = 4
_MOST_FOLDERS = 20_000
_SKIPPED = frozenset((".git", "node_modules", "target", "__pycache__", ".venv", "venv"))


def find_nested(home: Checkout) -> list[str]:
    """Return the worktrees inside the main checkout as relative paths, whether git knows them or not."""
    registered = [os.path.realpath(os.path.join(entry, root)) for entry, root in list_worktrees(home)]
    existing = [root for root in registered if os.path.exists(os.path.join(root, ".git"))]
    nested = {os.path.relpath(root, home.root) for root in [*existing, *_walk(home.root)]}
    return sorted(path for path in nested if path != "." and not path.startswith(".."))


def _walk(root: str) -> Iterator[str]:
    """Yield folders whose `.git` file points to a worktree entry, which excludes submodules."""
    remaining = _MOST_FOLDERS
    for folder, names, files in os.walk(root):
        depth = folder.count("/") - root.count("/")
        remaining -= 1
        if folder != root and ".git" in files and _is_worktree(os.path.join(folder, ".git")):
            yield folder
            names.clear()
        elif depth >= _DEEPEST or remaining < 0:
            names.clear()
        else:
            names[:] = [name for name in names if name not in _SKIPPED]


def _is_worktree(marker: str) -> bool:
    try:
        with open(marker, encoding="utf-8", errors="surrogateescape") as file:
            return "/worktrees/" in file.readline()
    except OSError:
        return False


def find_walkers(home: Checkout) -> list[Walker]:
    """Return the tools that would search worktrees nested in the main checkout."""
    nests = sorted({os.path.dirname(path) or path for path in find_nested(home)})
    found: list[Walker] = []
    for folder in nests:
        # Ask about a file inside, since the pattern `name/` only matches what git sees as a folder.
        ignored = run_in(home, "check-ignore", "--quiet", "--", os.path.join(folder, "x")).exit_code == 0
        nest = Nest(root=home.root, folder=folder, is_ignored=ignored)
        found += [walker for rule in RULES for walker in rule(nest)]
    return found


def check_nesting(repo: Repository, is_fixing: bool) -> Check:
    """Check for nested worktrees and for tools that would search them."""
    del is_fixing
    nested = find_nested(repo.home)
    if not nested:
        return passed("none inside of the main checkout")
    walkers = find_walkers(repo.home)
    more = " …" if len(nested) > 3 else ""
    named = f"{len(nested)} inside of the main checkout ({', '.join(nested[:3])}{more})"
    if not walkers:
        return passed(f"{named}; no tool set up here walks into them")
    tools = "; ".join(f"{walker.tool} ({walker.file})" for walker in walkers)
    hint = "; ".join(f"{one.file}: {one.line}" for one in walkers)
    return failed(f"{named}, and these walk into them: {tools}", f"add to {hint}")
