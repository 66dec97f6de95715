"""Looking workspaces over: size, age, holder, stale bases; and giving room when the disk is short."""

from __future__ import annotations

import os
import shutil
import stat

from interlock.domain.patterns import covers_branch
from interlock.domain.workspaces import OPEN, THERE, Workspace
from interlock.errors import RepositoryError
from interlock.git import checkouts
from interlock.git.run import ask, run_in
from interlock.git.target import find_target, tip_of
from interlock.operations import workspaces as operations
from interlock.operations.held import list_claims
from interlock.runners.inhabitants import processes_in
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.flows.site import Site


@value
class Surveyed:
    """A workspace as it lies there. `behind` is unknown when its base or the target is."""

    workspace: Workspace
    is_there: bool
    size: int
    age_ms: int
    is_held: bool
    behind: int | None
    is_stale: bool
    is_dirty: bool


def survey(site: Site, *, with_closed: bool = False) -> list[Surveyed]:
    """Every workspace with what is known and what is found."""
    now = site.wall_ms()
    try:
        tip = tip_of(site.home, find_target(site.home, site.settings))
    except RepositoryError:
        tip = ""
    return [
        _look(site, one, tip, now)
        for one in operations.list_workspaces(site.context, with_closed=with_closed)
    ]


def _look(site: Site, one: Workspace, tip: str, now: int) -> Surveyed:
    is_here = one.state in THERE and operations.is_here(site.context, one, site.common_dir)
    is_there = is_here and os.path.isdir(one.path)
    behind, touched = _behind(site, one, tip) if is_there else (None, False)
    return Surveyed(
        workspace=one,
        is_there=is_there,
        size=size_of(one.path) if is_there else 0,
        age_ms=max((one.closed_at or now) - one.opened_at, 0),
        is_held=one.state == OPEN and operations.is_held(site.context, one),
        behind=behind,
        is_stale=touched,
        is_dirty=is_there and _is_dirty(site, one),
    )


def _behind(site: Site, one: Workspace, tip: str) -> tuple[int | None, bool]:
    """How many commits of the target a workspace lacks, and whether they touch what its session claims."""
    head = ask(site.home, "rev-parse", "--verify", "--quiet", f"refs/heads/{one.branch}") or one.base
    if not tip or not head:
        return None, False
    count = ask(site.home, "rev-list", "--count", f"{head}..{tip}")
    if not count.isdecimal():
        return None, False
    if count == "0":
        return 0, False
    changed = run_in(site.home, "diff", "--name-only", "-z", "--no-renames", f"{head}...{tip}").text.split(
        "\0"
    )
    pattern_of = site.context.repository.pattern_of
    held = [
        branch
        for claim in list_claims(site.context)
        if claim.session == one.session
        for branch in pattern_of(claim.pattern, claim.kind).branches
    ]
    paths = [pattern_of(path, "literal").branches[0] for path in changed if path]
    return int(count), any(covers_branch(mine, path) for mine in held for path in paths)


def _is_dirty(site: Site, one: Workspace) -> bool:
    from interlock.flows.rescues import place_of
    from interlock.git.rescue_stakes import is_anything_at_stake

    try:
        return bool(is_anything_at_stake(site.common_dir, place_of(site, one.path)))
    except RepositoryError:
        return True  # what cannot be read is not known to be safe


def size_of(path: str) -> int:
    """How much room a folder takes; links are not followed."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def evict_caches(site: Site) -> list[tuple[str, int]]:
    """While less than the floor is free, remove declared caches, least recently used first; tells which.

    Only what the settings call a cache goes, and only from workspaces whose session has ended and that no
    process lives in.
    """
    floor = site.settings.workspace_floor_bytes
    if not floor or not site.settings.workspace_caches:
        return []
    evicted: list[tuple[str, int]] = []
    for _, path in sorted(_caches(site)):
        if shutil.disk_usage(os.path.dirname(path)).free >= floor:
            break
        size = size_of(path)
        checkouts.remove_tree(path)
        evicted.append((path, size))
    return evicted


def _caches(site: Site) -> Iterator[tuple[int, str]]:
    """The caches that may go, each with the instant when it was last used."""
    for one in operations.list_workspaces(site.context):
        is_here = one.state == OPEN and operations.is_here(site.context, one, site.common_dir)
        if not is_here or operations.is_held(site.context, one) or processes_in(one.path):
            continue
        for name in site.settings.workspace_caches:
            path = os.path.normpath(os.path.join(one.path, name))
            if path.startswith(one.path + "/") and os.path.isdir(path) and not os.path.islink(path):
                if not _is_ignored(site, one, path):
                    continue  # git knows it: whatever the settings say, it is no cache
                yield _last_used(path), path


def _is_ignored(site: Site, one: Workspace, path: str) -> bool:
    inside = os.path.relpath(path, one.path)
    tracked = run_in(site.home, "ls-tree", "-r", "--name-only", f"refs/heads/{one.branch}", "--", inside)
    return not tracked.text.strip()


def _last_used(path: str) -> int:
    """When anything directly in it was last written or read."""
    newest = os.lstat(path).st_mtime_ns
    for entry in os.scandir(path):
        found = entry.stat(follow_symlinks=False)
        newest = max(newest, found.st_mtime_ns, found.st_atime_ns if stat.S_ISREG(found.st_mode) else 0)
    return newest
