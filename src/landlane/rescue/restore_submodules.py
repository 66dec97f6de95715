"""Restoring submodules: their commits come from home, from the rescue's bundle, or from the remote."""

from __future__ import annotations

import os
import tempfile

from landlane.errors import RepositoryError
from landlane.git.discovery import checkout_at
from landlane.git.run import run_git
from landlane.git.untrusted_checkout import SUBMODULE, UntrustedCheckout
from landlane.git.worktree_writer import TreeWriter, is_inside
from landlane.rescue.restore_checkout import RescueReader, RestoreTarget, restore_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALL = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


def restore_submodules(outer: RestoreTarget, sections: list[dict[str, Any]], blobs: RescueReader) -> None:
    """Restore every submodule that the rescued checkout had; what cannot be had is noted."""
    for section in sections:
        try:
            target = _prepare(outer, section)
            _bring_commits(target, section, blobs)
            if section["head"] and not target.commit_of(f"{section['head']}^{{commit}}"):
                sources = f"neither here nor from {section['url']}"
                outer.notes.append(f"{section['path']}: {section['head']} could be had {sources}")
                continue
            restore_section(target, section, blobs)
        except RepositoryError as error:
            outer.notes.append(f"{section['path']}: {error.message}")


def _prepare(outer: RestoreTarget, section: dict[str, Any]) -> RestoreTarget:
    """The submodule's own repository, made if it is not there."""
    path = section["path"]
    if not is_inside(path):
        raise RepositoryError(f"{path!r} is outside of the tree", code="RESCUE_MALFORMED")
    with TreeWriter(outer.place.root) as tree:
        tree.make_folder(path)
    root = os.path.join(outer.place.root, path)
    found = checkout_at(root)
    if found is None:
        git_dir = os.path.join(outer.place.git_dir, "modules", path)
        os.makedirs(os.path.dirname(git_dir), exist_ok=True)
        kind = "sha256" if len(section["head"]) == 64 else "sha1"
        made = (
            "init",
            "--quiet",
            "--template=",
            f"--object-format={kind}",
            f"--separate-git-dir={git_dir}",
            root,
        )
        run_git(*made, cwd=outer.place.root)
        found = checkout_at(root)
    assert found is not None
    target = RestoreTarget(
        outer.home, UntrustedCheckout(root=root, git_dir=found.git_dir, kind=SUBMODULE), outer.notes
    )
    if section["url"] and not target.run("config", "--get", "remote.origin.url").stdout:
        target.git_output("config", "remote.origin.url", section["url"])
        target.git_output("config", "remote.origin.fetch", _ALL[0])
    return target


def _bring_commits(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> None:
    """Ask one source after the other until the commits are there; the remote comes last."""
    if not section["head"]:
        return
    stores = [
        os.path.join(target.home, section["store"]),
        os.path.join(target.home, "modules", section["path"]),
    ]
    for source in (*(store for store in stores if os.path.isdir(store)), section["url"]):
        if _bring_bundle(target, section, blobs):
            return
        # Never a source that could be a command, whatever the rescued settings said.
        if source and not source.startswith(("ext::", "-")) and "::" not in source:
            refs = _ALL if source == section["url"] else ("+refs/remotes/*:refs/remotes/*", *_ALL)
            target.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", source, *refs)
    _bring_bundle(target, section, blobs)


def _bring_bundle(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> bool:
    """Take the bundle in, if what it builds on is there; tells whether the commit is there then."""
    if section["bundle"]:
        with tempfile.NamedTemporaryFile(dir=target.place.git_dir) as file:
            for chunk in blobs.read(section["bundle"]):
                file.write(chunk)
            file.flush()
            refs = "+refs/rescue/*:refs/landlane/rescued/*"
            target.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", file.name, refs)
    return bool(target.commit_of(f"{section['head']}^{{commit}}"))
