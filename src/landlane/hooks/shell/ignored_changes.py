"""Filter out changes to held paths that came with a commit or from undoing a write."""

from __future__ import annotations

from landlane.git.private_git_dir import read_head
from landlane.git.snapshot import differing_from_head, path_text, read_file_now, read_kept
from landlane.hooks.shell.changes import place_at
from landlane.workspaces.unauthorized_writes import CLEARED, MOVED, UNDONE, end_breach, list_breaches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.hooks.shell.changes import Scene, Window
    from landlane.hooks.shell.ownership import Effect
    from landlane.repository import Repository

_MOST_ENDED = 20  # recently ended breaches that a change may come from


def without_moves(repo: Repository, effects: Sequence[Effect], window: Window) -> list[Effect]:
    """Drop files that matched HEAD before and match it now: they came with a commit, as in a sync."""
    found = [one for one in effects if not one.tree]
    for root in dict.fromkeys(one.root for one in effects if one.tree):
        here = [one for one in effects if one.root == root and one.tree]
        place = place_at(repo, root)
        old, new = window.heads.get(root, ""), read_head(place)[1]
        if old and new and old != new:
            dirty = differing_from_head(place, window.trees[root], old)
            dirty |= differing_from_head(place, here[0].tree, new)
            here = [one for one in here if one.path in dirty]
        found += here
    return found


def without_mended(repo: Repository, scene: Scene, effects: Sequence[Effect]) -> list[Effect]:
    """Drop changes made by undoing or moving an unauthorized write, or by restoring it by hand."""
    effects = _without_restored(repo, scene, effects)
    ended = [one for one in list_breaches(repo, with_ended=True) if one.state in (UNDONE, MOVED)]
    own = {str(one["path"]) for one in scene.own}
    found = list(effects)
    for breach in ended[-_MOST_ENDED:]:
        paths = set(breach.paths)
        hit = [one for one in found if path_text(one.path) in paths and one.root in (breach.root, *own)]
        if not hit:
            continue
        before, _ = read_kept(repo.common_dir, breach.commit)
        repaired = [
            one
            for one in hit
            if (one.root == breach.root and read_file_now(one.root, one.path) == before.get(one.path))
            or (breach.state == MOVED and one.root in own and one.root != breach.root)
        ]
        found = [one for one in found if one not in repaired]
    return found


def _without_restored(repo: Repository, scene: Scene, effects: Sequence[Effect]) -> list[Effect]:
    """Drop files restored to their state before an unauthorized write of the same agent, and close it."""
    found = list(effects)
    for breach in reversed(list_breaches(repo)):  # newest first: each goes back one step
        paths = set(breach.paths)
        hit = [one for one in found if path_text(one.path) in paths and one.root == breach.root]
        if not hit or breach.agent != scene.session.agent:
            continue
        before, after = read_kept(repo.common_dir, breach.commit)
        restored = [one for one in hit if read_file_now(one.root, one.path) == before.get(one.path)]
        found = [one for one in found if one not in restored]
        if all(read_file_now(breach.root, path) == before.get(path) for path in before.keys() | after.keys()):
            end_breach(repo, scene.session, breach.id, CLEARED)
    return found
