"""Write a rescue: everything at risk goes through one `git fast-import` into one commit."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time

from landlane.errors import RepositoryError
from landlane.files import sync_folder
from landlane.git.run import git_failed
from landlane.git.untrusted_checkout import CLONE, SUBMODULE, read_all_refs, run_home_git
from landlane.git.worktree_files import TreeReader, unreadable_error
from landlane.rescue.block_gc import block_gc
from landlane.rescue.fast_import import MADE_REF, CommitWriter, cheapest_compression
from landlane.rescue.find_unsaved import FILE, LINK, MODE
from landlane.rescue.refs import FORM, find_rescue, get_rescue, rescue_ref
from landlane.rescue.scan_checkout import KEPT_REFS, count_unsaved, find_missing_commits, scan_checkout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from landlane.git.private_git_dir import TemporaryGitDir
    from landlane.git.run import GitResult
    from landlane.git.untrusted_checkout import UntrustedCheckout
    from landlane.rescue.find_unsaved import UnsavedFile
    from landlane.rescue.refs import Rescue
    from landlane.rescue.scan_checkout import CheckoutScan

_TRIES = 3


def take_rescue(
    checkout: UntrustedCheckout,
    rescue_id: str,
    facts: Mapping[str, Any],
    *,
    force: bool = False,
) -> Rescue | None:
    """Save what would be lost with a checkout and return the rescue; None when there is nothing to save.

    An existing rescue of this id is returned. With `force` one is taken in any case.

    Raises:
        RepositoryError: a file cannot be read, or the rescue cannot be written; nothing must be deleted then.
        Malformed: the id is not valid.
    """
    home, ref = checkout.home, rescue_ref(rescue_id)
    for _ in range(_TRIES):
        existing = find_rescue(home, rescue_id)
        if existing is not None:
            return existing
        with scan_checkout(checkout) as scan:
            if not force and not count_unsaved(scan):
                return None
            with block_gc(home):
                _write_commit(scan, rescue_id, facts)
                _create_ref(scan.private, ref)
                is_complete = _is_complete(home, ref)
        if is_complete:
            _sync(home, ref)
            return get_rescue(home, rescue_id)
        # A `git prune` came between the objects and their ref: try again.
        run_home_git(home, "update-ref", "-d", ref)
    raise RepositoryError(
        f"the rescue {rescue_id} was written incompletely", code="RESCUE_FAILED", hint="run `git fsck`"
    )


def _create_ref(private: TemporaryGitDir, ref: str) -> None:
    """Create the ref in the repository; a clone's objects are fetched before, and hashed again."""
    commit = read_all_refs(private.folder)[MADE_REF]
    # Old or odd objects may fail git's checks; they must be saved anyway.
    if private.checkout.kind == CLONE and _fetch(private, is_strict=True).exit_code:
        fetched = _fetch(private, is_strict=False)
        if fetched.exit_code:
            raise git_failed(("fetch",), fetched)
    # It must be new: of two processes that take the same rescue at once, the second finds that of the first.
    # Whether it exists then, and is complete, is checked afterwards.
    run_home_git(private.home, "update-ref", "-m", "rescue", ref, commit, private.zero)


def _fetch(private: TemporaryGitDir, *, is_strict: bool) -> GitResult:
    check = f"fetch.fsckObjects={'true' if is_strict else 'false'}"
    return run_home_git(
        private.home,
        *("-c", "protocol.file.allow=always", "-c", check, "-c", "fetch.unpackLimit=50"),
        *("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance"),
        *("--no-recurse-submodules", private.folder, MADE_REF),
    )


def _is_complete(home: str, ref: str) -> bool:
    known = ("--not", f"--exclude={ref}", "--all")
    return not run_home_git(home, "rev-list", "--objects", "--quiet", ref, *known).exit_code


def _sync(home: str, ref: str) -> None:
    """Sync the folders of new files: git syncs their content, but not the folders."""
    for name in (os.path.dirname(ref), "objects/pack", "", "objects", "refs", "refs/landlane"):
        with contextlib.suppress(OSError):
            sync_folder(os.path.join(home, name))


def _write_commit(scan: CheckoutScan, rescue_id: str, facts: Mapping[str, Any]) -> None:
    private = scan.private
    taken_at = time.time_ns() // 1_000_000
    with TreeReader(private.checkout.root) as tree:
        level = cheapest_compression(tree, (file.path for file in scan.unsaved.files if file.type == FILE))
    words = ("-c", f"core.compression={level}", "fast-import", "--quiet", "--done", "--force", "--depth=0")
    with private.stream(*words) as stream:
        writer = CommitWriter(stream)
        sections = [_save(writer, inner) for inner in _with_submodules(scan)]
        parents, notes = _parents(scan)
        for oid, (kind, _) in private.kinds_of((*scan.unsaved.staged_blobs, *scan.state.mentioned)).items():
            if kind == "blob":
                writer.refer(f"staged/{oid}", oid)
            elif kind == "tree":
                writer.refer(f"trees/{oid}", oid, mode="040000")
        unsaved = count_unsaved(scan)
        manifest = {
            "form": FORM,
            "id": rescue_id,
            "facts": dict(facts),
            "taken_at": taken_at,
            "root": private.checkout.root,
            "kind": private.checkout.kind,
            "head": private.head,
            "branch": private.branch,
            "operation": scan.state.operation,
            "counts": {
                "files": sum(entry["type"] != MODE for section in sections for entry in section["files"]),
                "modified": unsaved.modified,
                "staged": unsaved.staged,
                "untracked": unsaved.untracked,
                "deleted": unsaved.deleted,
                "commits": unsaved.unpushed_commits,
                "stash": unsaved.stash_entries,
                "submodules": len(sections) - 1,
            },
            "bytes": writer.bytes,
            "notes": [*notes, *(note for section in sections for note in section["notes"])],
        }
        writer.add("contents.json", json.dumps({"form": FORM, "sections": sections}).encode())
        writer.add("manifest.json", json.dumps(manifest, indent=1, sort_keys=True).encode())
        writer.commit(f"rescue: {rescue_id}\n", taken_at // 1000, parents)
        stream.finish()


def _with_submodules(scan: CheckoutScan) -> Iterable[CheckoutScan]:
    yield scan
    for inner in scan.submodules:
        yield from _with_submodules(inner)


def _parents(scan: CheckoutScan) -> tuple[list[str], list[str]]:
    """Return the commits that a rescue must keep, HEAD first, and notes about damage.

    The commits of its refs, its stash and an unfinished operation are kept in any case, since branches may be
    deleted later. Of the many in the reflogs, only those that no ref contains.
    """
    private, state = scan.private, scan.state
    named = _commits_among(private, (*(oid for _, oid in state.refs), *state.stashed, *state.mentioned))
    if private.head:
        named.insert(0, private.head)
    notes: list[str] = []
    if find_missing_commits(private, named) is None:
        damaged = [oid for oid in named if find_missing_commits(private, [oid]) is None]
        notes = [f"the history of {oid} is damaged and was not saved" for oid in damaged]
        named = [oid for oid in named if oid not in damaged]
    logged = _commits_among(private, state.logged)
    only_logged = find_missing_commits(private, logged, KEPT_REFS, private.branch, *named)
    if only_logged is None:
        notes.append("the reflog names damaged commits; what only it leads to was not saved")
    missing = set(only_logged or ())
    return list(dict.fromkeys((*named, *(oid for oid in logged if oid in missing)))), notes


def _commits_among(private: TemporaryGitDir, oids: Iterable[str]) -> list[str]:
    """Return the commits among these objects; of a tag, its commit."""
    wanted = list(dict.fromkeys(oids))
    kinds = private.kinds_of(wanted)
    tags = {oid: _peel(private, oid) for oid, (kind, _) in kinds.items() if kind == "tag"}
    commits = (tags.get(oid, oid) for oid in wanted if kinds.get(oid, ("", 0))[0] in {"commit", "tag"})
    return [oid for oid in commits if oid]


def _peel(private: TemporaryGitDir, oid: str) -> str:
    return private.run("rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}").stdout.strip()


def _save(writer: CommitWriter, scan: CheckoutScan) -> dict[str, Any]:
    """Save one checkout, the outermost or a submodule; return its section of `contents.json`."""
    private, unsaved = scan.private, scan.unsaved
    is_inner = private.checkout.kind == SUBMODULE
    notes = [*scan.notes, *unsaved.notes]
    with TreeReader(private.checkout.root) as tree:
        saved = [_save_file(writer, tree, file, is_inner, notes) for file in unsaved.files]
    index = "index" if not is_inner else writer.next_name("indexes")
    if os.path.exists(private.index):
        with open(private.index, "rb") as file:
            writer.add_stream(index, file.fileno())
    else:
        index = ""
    return {
        "path": scan.path,
        "kind": private.checkout.kind,
        "head": private.head,
        "branch": private.branch,
        "gitlink": scan.gitlink,
        "files": [entry for entry in saved if entry is not None],
        "deleted": list(unsaved.deleted),
        "converted": dict(unsaved.converted),
        "folders": [list(folder) for folder in unsaved.folders],
        "empty_folders": list(unsaved.empty_folders),
        "index": index,
        "state": [
            {"path": path, "at": writer.add_numbered("state", text)} for path, text in scan.state.files
        ],
        "refs": dict(scan.state.refs),
        "objects": _save_objects(writer, scan, is_inner=is_inner),
        "bundle": _save_bundle(writer, scan, notes) if is_inner else "",
        "url": _url(private) if is_inner else "",
        "store": os.path.relpath(private.checkout.git_dir, private.home) if is_inner else "",
        "notes": notes,
    }


def _save_file(
    writer: CommitWriter, tree: TreeReader, file: UnsavedFile, is_inner: bool, notes: list[str]
) -> dict[str, Any] | None:
    entry: dict[str, Any] = {"path": file.path, "type": file.type, "mode": file.mode}
    if file.type == MODE:
        return entry
    if file.type == LINK:
        target = tree.read_link(file.path)
        return None if target is None else {**entry, "at": writer.add_numbered("files", target)}
    assert file.type == FILE
    if file.oid and not is_inner:
        name = writer.next_name("files")
        writer.refer(name, file.oid)
        return {**entry, "at": name, "size": -1}
    handle = tree.open(file.path)
    if handle is None:
        notes.append(f"{file.path}: was removed while it was looked at")
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        name = writer.next_name("files")
        return {**entry, "at": name, "size": writer.add_stream(name, handle)}
    except OSError as error:
        raise unreadable_error(file.path, error) from error
    finally:
        os.close(handle)


def _save_objects(writer: CommitWriter, scan: CheckoutScan, *, is_inner: bool) -> list[dict[str, str]]:
    """Save objects that are neither parents nor part of the tree: tags, and staged blobs of submodules."""
    private = scan.private
    tags = [
        oid for oid, (kind, _) in private.kinds_of(oid for _, oid in scan.state.refs).items() if kind == "tag"
    ]
    wanted = [(oid, "tag") for oid in tags]
    if is_inner:
        wanted += [(oid, "blob") for oid in scan.unsaved.staged_blobs]
    saved: list[dict[str, str]] = []
    with private.stream("cat-file", "--batch") as stream:
        for oid, kind in wanted:
            stream.write(f"{oid}\n".encode())
            stream.flush()
            size = int(stream.read_line().split(b" ")[2])
            content = stream.read(size + 1)[:-1]
            saved.append({"oid": oid, "type": kind, "at": writer.add_numbered("objects", content)})
    return saved


def _save_bundle(writer: CommitWriter, scan: CheckoutScan, notes: list[str]) -> str:
    """Save the commits of a submodule that its remote-tracking refs do not contain, as a bundle."""
    private = scan.private
    kinds = private.kinds_of((*scan.commits(), *scan.state.mentioned, *scan.state.logged))
    commits = [oid for oid, (kind, _) in kinds.items() if kind == "commit"]
    missing = find_missing_commits(private, commits)
    if missing is None:
        notes.append(f"{scan.path}: its history is damaged and was not saved")
    if not missing:
        return ""
    private.write_refs({f"refs/rescue/{oid}": oid for oid in commits if oid in set(missing)})
    known = {oid for name, oid in private.refs.items() if name.startswith("refs/remotes/")}
    path = private.path("bundle")
    words = ("bundle", "create", "--quiet", path, "--glob=refs/rescue", "--stdin")
    private.git_output(*words, stdin="".join(f"^{oid}\n" for oid in sorted(known)).encode())
    name = writer.next_name("bundles")
    with open(path, "rb") as file:
        writer.add_stream(name, file.fileno())
    return name


def _url(private: TemporaryGitDir) -> str:
    config = os.path.join(private.checkout.git_dir, "config")
    asked = ("config", "--no-includes", "--file", config, "--get", "remote.origin.url")
    return run_home_git(private.home, *asked).stdout.removesuffix("\n")
