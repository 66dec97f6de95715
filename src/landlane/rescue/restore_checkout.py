"""Restore a rescue into a fresh checkout: files, index, HEAD, unfinished operations and submodules."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile

from landlane.errors import RepositoryError
from landlane.files import is_inside
from landlane.git.discovery import checkout_at
from landlane.git.run import GitResult, GitStream, git_failed, run_git
from landlane.git.untrusted_checkout import (
    BIG_FILE,
    LIMIT_SECONDS,
    SUBMODULE,
    UntrustedCheckout,
    home_git_output,
    to_text,
)
from landlane.git.worktree_files import TreeReader, TreeWriter, default_modes
from landlane.rescue.compare_files import Conversion
from landlane.rescue.find_unsaved import FILE, LINK
from landlane.rescue.scan_checkout import STASH, is_state_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


_CHUNK = 1 << 20
_PLAIN, _PROGRAM = "100644", "100755"
_FILES = (_PLAIN, _PROGRAM)
_CONFIG = "config.worktree"
_STASH_LOG = "logs/refs/stash"
# Only the settings that choose the files of a checkout are restored: others can name programs.
_SPARSE = ("core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse")
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
_ALL_REFS = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")


class RestoreTarget:
    """The checkout that is written to. We have made it, so git may obey its settings, but runs no hooks."""

    def __init__(self, checkout: UntrustedCheckout, notes: list[str]) -> None:
        self.checkout = checkout
        self.home = checkout.home
        self.notes = notes

    def run(self, *arguments: str, stdin: bytes | None = None) -> GitResult:
        return run_git(
            *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"),
            *("-c", "advice.detachedHead=false", "-c", "protocol.file.allow=always"),
            *arguments,
            cwd=self.checkout.root,
            git_dir=self.checkout.git_dir,
            stdin=stdin,
            limit_seconds=LIMIT_SECONDS,
        )

    def git_output(self, *arguments: str, stdin: bytes | None = None) -> str:
        result = self.run(*arguments, stdin=stdin)
        if result.exit_code:
            raise git_failed(arguments, result)
        return result.stdout

    def resolve(self, revision: str) -> str:
        return self.run("rev-parse", "--verify", "--quiet", revision).stdout.strip()


class RescueReader:
    """The files of a rescue commit, read in chunks from one running git."""

    def __init__(self, home: str, commit: str) -> None:
        self._ids = _list_ids(home, commit)
        environment = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        words = ("-c", f"core.bigFileThreshold={BIG_FILE}", f"--git-dir={home}", "cat-file", "--batch")
        self._stream = GitStream(*words, cwd=home, environment=environment)

    def __enter__(self) -> RescueReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.__exit__()

    def read(self, name: str, limit: int = -1) -> Iterator[bytes]:
        """Yield the content of a file in chunks, up to a number of bytes; read it to its end."""
        # By id: git would search the folder of a path again for each file.
        self._stream.write(f"{self._ids.get(name, name)}\n".encode())
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

    def read_all(self, name: str) -> bytes:
        return b"".join(self.read(name))


def _list_ids(home: str, commit: str) -> dict[str, str]:
    """Return the object of each file of a rescue; rescued trees, which can be large, are left out."""
    tops = home_git_output(home, "ls-tree", "-z", "--name-only", commit).split("\0")
    parts = [name for name in tops if name not in ("", "trees", "staged")]
    rows = home_git_output(home, "ls-tree", "-r", "-z", commit, "--", *parts).split("\0")
    found = (row.partition("\t") for row in rows if row)
    return {name: fields.split(" ")[2] for fields, _, name in found}


def restore_section(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> str:
    """Restore one checkout, the outermost or a submodule; return the branch that HEAD is on then."""
    _check_out(target, section["head"])
    if section["head"] and "converted" in section:
        _restore_unchanged(target, section, rescue)
    restore_index(target, section, rescue)
    restore_files(target, section, rescue)
    _restore_refs(target, section, rescue)
    branch = _restore_head(target, section)
    # Last, so that the steps above are not in the log of HEAD.
    _restore_state(target, section, rescue)
    return branch


def _check_out(target: RestoreTarget, head: str) -> None:
    """Check out a commit, or remove all files where there was no commit yet."""
    if head:
        if target.resolve("HEAD") != head or target.run("symbolic-ref", "--quiet", "HEAD").exit_code == 0:
            target.git_output("checkout", "--quiet", "--detach", head, "--")
        return
    with TreeWriter(target.checkout.root) as tree:
        for path in target.git_output("ls-files", "-z").split("\0"):
            if path:
                tree.remove(path)
    target.git_output("read-tree", "--empty")


def _restore_unchanged(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    """Give unchanged files the bytes that they had, also if the rules for line ends are others now.

    A checkout obeys the settings and attributes of today. What it converts has another size then.
    """
    root = target.checkout.root
    rows = target.git_output("ls-tree", "-r", "-l", "-z", "--full-tree", section["head"]).split("\0")
    _, program, plain = default_modes()
    with TreeReader(root) as reader, TreeWriter(root) as writer:
        for fields, _, path in (row.partition("\t") for row in rows if row):
            mode, _, oid, size = fields.split()
            found = reader.lstat(path)
            conversion = section["converted"].get(path)
            if mode not in _FILES or found is None or not stat.S_ISREG(found.st_mode):
                continue
            if conversion == Conversion.OTHER:
                continue  # what makes it can be a setting that nobody has any more: git decides
            if conversion is None and found.st_size == int(size):
                continue
            content = rescue.read(oid)
            if conversion == Conversion.CRLF:
                text = b"".join(content).replace(b"\n", b"\r\n")
                if len(text) == found.st_size:
                    continue
                content = iter((text,))
            writer.write(path, content, program if mode == _PROGRAM else plain)


def restore_index(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    """Restore the index of a checkout."""
    path = os.path.join(target.checkout.git_dir, "index")
    if not section["index"]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return
    new = f"{path}.landlane"
    with open(new, "wb") as file:
        file.writelines(rescue.read(section["index"]))
    os.replace(new, path)


def restore_files(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    """Restore the files of a checkout, and delete what was deleted."""
    saved = {entry["path"] for entry in section["files"]}
    with TreeWriter(target.checkout.root) as tree:
        for path in (*section["deleted"], *(path for path in _list_sparse(target) if path not in saved)):
            tree.remove(path)
        for entry in section["files"]:
            if entry["type"] == FILE:
                tree.write(entry["path"], rescue.read(entry["at"], entry["size"]), entry["mode"])
            elif entry["type"] == LINK:
                tree.link(entry["path"], rescue.read_all(entry["at"]))
            else:
                tree.set_mode(entry["path"], entry["mode"])
        for path in section["empty_folders"]:
            tree.make_folder(path)
        # The deepest first: a folder that can no longer be entered hides those below it.
        for path, mode in sorted(section["folders"], reverse=True):
            tree.set_mode(path, mode)


def _list_sparse(target: RestoreTarget) -> list[str]:
    """Return the paths that a sparse checkout leaves out."""
    lines = target.git_output("ls-files", "-v", "-z").split("\0")
    return [line[2:] for line in lines if line.startswith(("S ", "s "))]


def _restore_refs(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    """Restore the refs of a clone or submodule; in other checkouts, which share refs, only note them."""
    is_own = target.checkout.has_own_objects
    for entry in section["objects"] if is_own else ():
        content = rescue.read_all(entry["at"])
        target.git_output("hash-object", "-w", "-t", entry["type"], "--stdin", stdin=content)
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
            _write_state(target, _STASH_LOG, rescue.read_all(log))


def _restore_state(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    texts: dict[str, bytes] = {}
    for entry in section["state"]:
        path = entry["path"]
        if not is_state_path(path):
            target.notes.append(f"{path} in the git directory is none that a rescue has; it was left out")
        elif path not in {"HEAD", _STASH_LOG}:
            texts[path] = rescue.read_all(entry["at"])
    config = texts.pop(_CONFIG, None)
    for path, text in texts.items():
        _write_state(target, path, text)
    if config is not None:
        _restore_sparse(target, config)
    for folder in ("rebase-merge", "rebase-apply"):
        _restore_rebased_branch(target, texts, folder)


def _write_state(target: RestoreTarget, path: str, text: bytes) -> None:
    full = os.path.join(target.checkout.git_dir, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(full)
    with open(full, "wb") as file:
        file.write(text)


def _restore_sparse(target: RestoreTarget, config: bytes) -> None:
    has_own = target.run("config", "--type=bool", "--get", "extensions.worktreeConfig").stdout == "true\n"
    if not has_own and not target.checkout.has_own_objects:
        return  # it had no effect before, and would now affect all worktrees
    for name in _SPARSE:
        words = ("config", "--no-includes", "--file", "-", "--type=bool", "--get", name)
        text = target.run(*words, stdin=config).stdout.strip()
        if text:
            target.git_output("config", "--worktree" if has_own else "--local", name, text)


def _restore_rebased_branch(target: RestoreTarget, texts: dict[str, bytes], folder: str) -> None:
    """Create the branch of an unfinished rebase again if it is gone, because the rebase ends by moving it."""
    name = to_text(texts.get(f"{folder}/head-name", b"")).strip()
    before = to_text(texts.get(f"{folder}/orig-head", b"")).strip()
    if not name.startswith("refs/heads/") or not before:
        return
    now = target.resolve(name)
    if not now:
        target.git_output("update-ref", "-m", "rescue: restored", name, before)
    elif now != before:
        target.notes.append(
            f"{name} has moved to {now} since; the rebase cannot end on it before it is at {before}"
        )


def _restore_head(target: RestoreTarget, section: dict[str, Any]) -> str:
    """Put HEAD on its branch, if that is free or at the same commit and not checked out elsewhere."""
    branch, head = section["branch"], section["head"]
    if not branch:
        return ""
    now = target.resolve(branch)
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
    if target.checkout.has_own_objects:
        return False
    root = os.path.realpath(target.checkout.root)
    worktree = ""
    for line in target.git_output("worktree", "list", "--porcelain").splitlines():
        if line.startswith("worktree "):
            worktree = os.path.realpath(line.removeprefix("worktree "))
        elif line == f"branch {branch}" and worktree != root:
            return True
    return False


def restore_submodules(outer: RestoreTarget, sections: list[dict[str, Any]], rescue: RescueReader) -> None:
    """Restore the submodules of a checkout; what is not available is noted.

    Their commits come from the repository, from the rescue's bundle, or from the remote.
    """
    for section in sections:
        try:
            target = _prepare_submodule(outer, section)
            _fetch_commits(target, section, rescue)
            if section["head"] and not target.resolve(f"{section['head']}^{{commit}}"):
                sources = f"neither here nor from {section['url']}"
                outer.notes.append(f"{section['path']}: {section['head']} could be had {sources}")
                continue
            restore_section(target, section, rescue)
        except RepositoryError as error:
            outer.notes.append(f"{section['path']}: {error.message}")


def _prepare_submodule(outer: RestoreTarget, section: dict[str, Any]) -> RestoreTarget:
    """Return the submodule's own repository, created if it is missing."""
    path = section["path"]
    if not is_inside(path):
        raise RepositoryError(f"{path!r} is outside of the tree", code="RESCUE_MALFORMED")
    with TreeWriter(outer.checkout.root) as tree:
        tree.make_folder(path)
    root = os.path.join(outer.checkout.root, path)
    found = checkout_at(root)
    if found is None:
        git_dir = os.path.join(outer.checkout.git_dir, "modules", path)
        os.makedirs(os.path.dirname(git_dir), exist_ok=True)
        algorithm = "sha256" if len(section["head"]) == 64 else "sha1"
        run_git(
            *("init", "--quiet", "--template=", f"--object-format={algorithm}"),
            *(f"--separate-git-dir={git_dir}", root),
            cwd=outer.checkout.root,
        )
        found = checkout_at(root)
    assert found is not None
    checkout = UntrustedCheckout(root=root, git_dir=found.git_dir, kind=SUBMODULE, home=outer.home)
    target = RestoreTarget(checkout, outer.notes)
    if section["url"] and not target.run("config", "--get", "remote.origin.url").stdout:
        target.git_output("config", "remote.origin.url", section["url"])
        target.git_output("config", "remote.origin.fetch", _ALL_REFS[0])
    return target


def _fetch_commits(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> None:
    """Try one source after the other until the commits are here; the remote comes last."""
    if not section["head"]:
        return
    stores = [
        os.path.join(target.home, section["store"]),
        os.path.join(target.home, "modules", section["path"]),
    ]
    for source in (*(store for store in stores if os.path.isdir(store)), section["url"]):
        if _fetch_bundle(target, section, rescue):
            return
        # Never a source that could be a command, whatever the rescued settings said.
        if source and not source.startswith(("ext::", "-")) and "::" not in source:
            refs = _ALL_REFS if source == section["url"] else ("+refs/remotes/*:refs/remotes/*", *_ALL_REFS)
            target.run(*_FETCH, "--", source, *refs)
    _fetch_bundle(target, section, rescue)


def _fetch_bundle(target: RestoreTarget, section: dict[str, Any], rescue: RescueReader) -> bool:
    """Fetch from the bundle, if its prerequisites are here; return whether the commit is here then."""
    if section["bundle"]:
        with tempfile.NamedTemporaryFile(dir=target.checkout.git_dir) as file:
            for chunk in rescue.read(section["bundle"]):
                file.write(chunk)
            file.flush()
            target.run(*_FETCH, file.name, "+refs/rescue/*:refs/landlane/rescued/*")
    return bool(target.resolve(f"{section['head']}^{{commit}}"))
