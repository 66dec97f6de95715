"""Restoring a rescue into a fresh checkout: files, index, HEAD and what was half done are as they were."""

from __future__ import annotations

import contextlib
import os

from landlane.errors import RepositoryError
from landlane.git.run import GitResult, GitStream, git_failed, run_git
from landlane.git.untrusted_checkout import BIG_FILE, LIMIT_SECONDS, MAIN, to_bytes, to_text
from landlane.git.worktree_writer import TreeWriter
from landlane.rescue.find_unsaved import FILE, LINK
from landlane.rescue.git_state import STASH, is_state_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from landlane.git.untrusted_checkout import UntrustedCheckout


_CHUNK = 1 << 20
_CONFIG = "config.worktree"
_STASH_LOG = "logs/refs/stash"
# Of the settings of a checkout only those come back that say which files are in it: others can name programs.
_SPARSE = ("core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse")


class RestoreTarget:
    """The checkout that is written to: fresh and made by us, so git may use its settings, but no hooks."""

    def __init__(self, home: str, place: UntrustedCheckout, notes: list[str] | None = None) -> None:
        self.home = home
        self.place = place
        self.notes: list[str] = [] if notes is None else notes

    def run(self, *arguments: str, stdin: bytes | None = None) -> GitResult:
        quiet = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
        return run_git(
            *(*quiet, "-c", "advice.detachedHead=false", "-c", "protocol.file.allow=always"),
            *arguments,
            cwd=self.place.root,
            git_dir=self.place.git_dir,
            stdin=stdin,
            limit_seconds=LIMIT_SECONDS,
        )

    def git_output(self, *arguments: str, stdin: bytes | None = None) -> str:
        found = self.run(*arguments, stdin=stdin)
        if found.exit_code:
            raise git_failed(arguments, found)
        return found.stdout

    def commit_of(self, ref: str) -> str:
        return self.run("rev-parse", "--verify", "--quiet", ref).stdout.strip()


class RescueReader:
    """The files of a rescue commit, read in pieces from one running git."""

    def __init__(self, home: str, commit: str) -> None:
        self._commit = commit
        environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        asked = ("-c", f"core.bigFileThreshold={BIG_FILE}", f"--git-dir={home}", "cat-file", "--batch")
        self._stream = GitStream(*asked, cwd=home, environment=environment)

    def __enter__(self) -> RescueReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.__exit__()

    def read(self, name: str, limit: int = -1) -> Iterator[bytes]:
        """The content of a file, piece by piece, up to a number of bytes; it must be read to its end."""
        self._stream.write(f"{self._commit}:{name}\n".encode())
        self._stream.flush()
        head = self._stream.read_line().split(b" ")
        if len(head) != 3 or head[1] != b"blob":
            raise RepositoryError(
                f"the rescue lacks {name}", code="RESCUE_MALFORMED", hint="run `git fsck` in the repository"
            )
        left = int(head[2])
        wanted = left if limit < 0 else limit
        while left:
            chunk = self._stream.read(min(left, _CHUNK))
            if not chunk:
                raise RepositoryError(
                    f"{name} ends too early", code="RESCUE_MALFORMED", hint="run `git fsck`"
                )
            left -= len(chunk)
            if wanted:
                yield chunk[:wanted]
                wanted -= min(wanted, len(chunk))
        self._stream.read(1)

    def whole(self, name: str) -> bytes:
        return b"".join(self.read(name))


def restore_section(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> str:
    """Restore one checkout, the outermost or a submodule; gives the branch that HEAD is on then."""
    _stand_at(target, section["head"])
    restore_index(target, section, blobs)
    restore_files(target, section, blobs)
    _restore_refs(target, section, blobs)
    branch = _restore_head(target, section)
    # Last, so that the log of HEAD tells nothing of all this.
    _restore_state(target, section, blobs)
    return branch


def _stand_at(target: RestoreTarget, head: str) -> None:
    """Check the commit out, or have nothing at all where there was no commit yet."""
    if head:
        if target.commit_of("HEAD") != head or target.run("symbolic-ref", "--quiet", "HEAD").exit_code == 0:
            target.git_output("checkout", "--quiet", "--detach", head, "--")
        return
    with TreeWriter(target.place.root) as tree:
        for path in target.git_output("ls-files", "-z").split("\0"):
            if path:
                tree.remove(path)
    target.git_output("read-tree", "--empty")


def restore_index(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> None:
    """Restore the index of a checkout."""
    path = os.path.join(target.place.git_dir, "index")
    if not section["index"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    new = f"{path}.landlane"
    with open(new, "wb") as file:
        file.writelines(blobs.read(section["index"]))
    os.replace(new, path)


def restore_files(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> None:
    """Restore the files of a checkout, and delete what was deleted."""
    saved = {entry["path"] for entry in section["files"]}
    with TreeWriter(target.place.root) as tree:
        for path in (*section["deleted"], *(path for path in _left_out(target) if path not in saved)):
            tree.remove(path)
        for entry in section["files"]:
            if entry["type"] == FILE:
                tree.write(entry["path"], blobs.read(entry["at"], entry["size"]), entry["mode"])
            elif entry["type"] == LINK:
                tree.link(entry["path"], blobs.whole(entry["at"]))
            else:
                tree.set_mode(entry["path"], entry["mode"])
        for path in section["empty_folders"]:
            tree.make_folder(path)
        # The deepest first: a folder that may not be entered any more hides those below it.
        for path, mode in sorted(section["folders"], reverse=True):
            tree.set_mode(path, mode)


def _left_out(target: RestoreTarget) -> list[str]:
    """The paths that a sparse checkout does not have."""
    lines = target.git_output("ls-files", "-v", "-z").split("\0")
    return [line[2:] for line in lines if line.startswith(("S ", "s "))]


def _restore_refs(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> None:
    """Bring back the refs of a clone or submodule; elsewhere they would be everybody's, and are only told."""
    is_own = target.place.kind not in {MAIN, "worktree"}
    for entry in section["objects"] if is_own else ():
        target.git_output("hash-object", "-w", "-t", entry["type"], "--stdin", stdin=blobs.whole(entry["at"]))
    for name, oid in section["refs"].items():
        if not is_own:
            if name != section["branch"]:
                target.notes.append(f"{name} of the clone was at {oid}")
        elif name != STASH and target.run("update-ref", "--no-deref", name, oid).exit_code:
            target.notes.append(f"{name} could not be set to {oid}")
    if is_own and STASH in section["refs"]:
        target.git_output("update-ref", STASH, section["refs"][STASH])
        log = {entry["path"]: entry["at"] for entry in section["state"]}.get(_STASH_LOG)
        if log is not None:
            _write_state(target, _STASH_LOG, blobs.whole(log))


def _restore_state(target: RestoreTarget, section: dict[str, Any], blobs: RescueReader) -> None:
    texts: dict[str, bytes] = {}
    for entry in section["state"]:
        path = entry["path"]
        if not is_state_path(path):
            target.notes.append(f"{path} in the git directory is none that a rescue has; it was left out")
        elif path not in {"HEAD", _STASH_LOG}:
            texts[path] = blobs.whole(entry["at"])
    config = texts.pop(_CONFIG, None)
    for path, text in texts.items():
        _write_state(target, path, text)
    if config is not None:
        _restore_sparse(target, config)
    for folder in ("rebase-merge", "rebase-apply"):
        _free_rebased_branch(target, texts, folder)


def _write_state(target: RestoreTarget, path: str, text: bytes) -> None:
    full = os.path.join(target.place.git_dir, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(full)
    with open(full, "wb") as file:
        file.write(text)


def _restore_sparse(target: RestoreTarget, config: bytes) -> None:
    has_own = (
        target.run("config", "--type=bool", "--get", "extensions.worktreeConfig").stdout.strip() == "true"
    )
    where = "--worktree" if has_own else "--local"
    if not has_own and target.place.kind in {MAIN, "worktree"}:
        return  # it had no effect, and would now have one on everybody
    for name in _SPARSE:
        asked = ("config", "--no-includes", "--file", "-", "--type=bool", "--get", name)
        said = target.run(*asked, stdin=config).stdout.strip()
        if said:
            target.git_output("config", where, name, said)


def _free_rebased_branch(target: RestoreTarget, texts: dict[str, bytes], folder: str) -> None:
    """A rebase ends by moving its branch; if that is gone, it is made again where the rebase found it."""
    name = to_text(texts.get(f"{folder}/head-name", b"")).strip()
    was = to_text(texts.get(f"{folder}/orig-head", b"")).strip()
    if not name.startswith("refs/heads/") or not was:
        return
    now = target.commit_of(name)
    if not now:
        target.git_output("update-ref", "-m", "rescue: restored", name, was)
    elif now != was:
        target.notes.append(
            f"{name} has moved to {now} since; the rebase cannot end on it before it is at {was}"
        )


def _restore_head(target: RestoreTarget, section: dict[str, Any]) -> str:
    """Put HEAD on its branch, if that is free or at the same commit and nobody else is on it."""
    branch, head = section["branch"], section["head"]
    if not branch:
        return ""
    now = target.commit_of(branch)
    if not head and now:
        target.notes.append(f"{branch} has begun meanwhile; HEAD is left as it is")
        return ""
    if now not in {"", head}:
        target.notes.append(f"{branch} has moved to {now}; HEAD is detached at {head}")
        return ""
    if _is_checked_out_elsewhere(target, branch):
        target.notes.append(f"{branch} is checked out elsewhere; HEAD is detached at {head}")
        return ""
    if head and not now:
        target.git_output("update-ref", "-m", "rescue: restored", branch, head)
    target.git_output("symbolic-ref", "HEAD", branch)
    return branch


def _is_checked_out_elsewhere(target: RestoreTarget, branch: str) -> bool:
    if target.place.kind not in {MAIN, "worktree"}:
        return False
    root = os.path.realpath(target.place.root)
    here = ""
    for line in target.git_output("worktree", "list", "--porcelain").splitlines():
        if line.startswith("worktree "):
            here = os.path.realpath(
                to_bytes(line.removeprefix("worktree ")).decode("utf-8", "surrogateescape")
            )
        elif line == f"branch {branch}" and here != root:
            return True
    return False
