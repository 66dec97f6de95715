"""Write a rescue: everything at risk goes through one `git fast-import` into one commit."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time

from landlane.errors import RepositoryError
from landlane.git.run import git_failed
from landlane.git.untrusted_checkout import CLONE, SUBMODULE, read_refs, run_home_git
from landlane.git.worktree_reader import TreeReader, unreadable_error
from landlane.rescue.at_risk import count_unsaved, scan_checkout
from landlane.rescue.block_gc import block_gc
from landlane.rescue.fast_import import MADE_REF, CommitWriter, cheapest_compression
from landlane.rescue.find_unsaved import FILE, LINK, MODE
from landlane.rescue.git_state import KEPT_REFS, commits_missing_at
from landlane.rescue.refs import FORM, find_rescue, get_rescue, rescue_ref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from landlane.git.private_dir.temporary import Shadow
    from landlane.git.run import GitResult
    from landlane.git.untrusted_checkout import UntrustedCheckout
    from landlane.rescue.at_risk import CheckoutScan
    from landlane.rescue.find_unsaved import UnsavedFile
    from landlane.rescue.refs import Rescue

_TRIES = 3


def take_rescue(
    home: str,
    place: UntrustedCheckout,
    rescue_id: str,
    facts: Mapping[str, Any],
    *,
    kept_refs: Sequence[str] = KEPT_REFS,
    lost_refs: Sequence[str] = (),
    force: bool = False,
) -> Rescue | None:
    """Save what is at stake in a checkout, and say what was saved; nothing when there was nothing to save.

    Asked again with the same id, it gives the rescue that is there. With `force` one is taken in any case.

    Raises:
        RepositoryError: a file cannot be read, or the rescue cannot be written; nothing must be deleted then.
        Malformed: no rescue can have such an id.
    """
    ref = rescue_ref(rescue_id)
    for _ in range(_TRIES):
        there = find_rescue(home, rescue_id)
        if there is not None:
            return there
        with scan_checkout(home, place) as look:
            if not force and not count_unsaved(look, kept_refs, lost_refs):
                return None
            with block_gc(home):
                _write_commit(look, rescue_id, facts, lost_refs)
                _bring_home(look.shadow, ref)
                is_whole = _is_whole(home, ref)
        if is_whole:
            _sync(home, ref)
            return get_rescue(home, rescue_id)
        # Somebody's `git prune` came between the objects and their ref: once more.
        run_home_git(home, "update-ref", "-d", ref)
    raise RepositoryError(
        f"the rescue {rescue_id} was written and is not whole", code="RESCUE_FAILED", hint="run `git fsck`"
    )


def _bring_home(shadow: Shadow, ref: str) -> None:
    """Create the ref at home; before that a clone's objects are copied, each of them hashed again."""
    commit = read_refs(shadow.folder)[MADE_REF]
    # Old or odd objects may fail git's examination; they are nonetheless what is to be saved.
    if shadow.place.kind == CLONE and _fetch(shadow, is_strict=True).exit_code:
        fetched = _fetch(shadow, is_strict=False)
        if fetched.exit_code:
            raise git_failed(("fetch",), fetched)
    # Only from nothing: of two who take the same rescue at once, the second finds that of the first. Whether
    # there is one then, and a whole one, is looked at afterwards.
    run_home_git(shadow.home, "update-ref", "-m", "rescue", ref, commit, shadow.zero)


def _fetch(shadow: Shadow, *, is_strict: bool) -> GitResult:
    examine = "true" if is_strict else "false"
    return run_home_git(
        shadow.home,
        *(
            "-c",
            "protocol.file.allow=always",
            "-c",
            f"fetch.fsckObjects={examine}",
            "-c",
            "fetch.unpackLimit=50",
        ),
        *("fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head", "--no-auto-maintenance"),
        *("--no-recurse-submodules", shadow.folder, MADE_REF),
    )


def _is_whole(home: str, ref: str) -> bool:
    known = ("--not", f"--exclude={ref}", "--all")
    return not run_home_git(home, "rev-list", "--objects", "--quiet", ref, *known).exit_code


def _sync(home: str, ref: str) -> None:
    """Make the names of new files last: git writes their content through, but not the folders they are in."""
    folders = [os.path.dirname(os.path.join(home, ref)), os.path.join(home, "objects", "pack")]
    folders += [
        home,
        os.path.join(home, "objects"),
        os.path.join(home, "refs"),
        os.path.join(home, "refs/landlane"),
    ]
    for folder in folders:
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _write_commit(
    look: CheckoutScan, rescue_id: str, facts: Mapping[str, Any], lost_refs: Sequence[str]
) -> None:
    shadow = look.shadow
    taken_at = time.time_ns() // 1_000_000
    with TreeReader(shadow.place.root) as tree:
        level = cheapest_compression(tree, (found.path for found in look.survey.files if found.type == FILE))
    how = ("-c", f"core.compression={level}", "fast-import", "--quiet", "--done", "--force", "--depth=0")
    with shadow.stream(*how) as stream:
        writer = CommitWriter(stream)
        sections = [_save(writer, one) for one in _with_submodules(look)]
        parents, notes = _parents(look, lost_refs)
        for oid, (kind, _) in shadow.kinds_of((*look.survey.staged_blobs, *look.state.mentioned)).items():
            if kind == "blob":
                writer.refer(f"staged/{oid}", oid)
            elif kind == "tree":
                writer.refer(f"trees/{oid}", oid, mode="040000")
        stakes = count_unsaved(look)
        manifest = {
            "form": FORM,
            "id": rescue_id,
            "facts": dict(facts),
            "taken_at": taken_at,
            "root": look.shadow.place.root,
            "kind": look.shadow.place.kind,
            "head": shadow.head,
            "branch": shadow.branch,
            "operation": look.state.operation,
            "counts": {
                "files": sum(entry["type"] != MODE for section in sections for entry in section["files"]),
                "modified": stakes.modified,
                "staged": stakes.staged,
                "untracked": stakes.untracked,
                "deleted": stakes.deleted,
                "commits": stakes.unpushed_commits,
                "stash": stakes.stash_entries,
                "submodules": len(sections) - 1,
            },
            "bytes": writer.bytes,
            "notes": [*notes, *(note for section in sections for note in section["notes"])],
        }
        writer.add("contents.json", json.dumps({"form": FORM, "sections": sections}).encode())
        writer.add("manifest.json", json.dumps(manifest, indent=1, sort_keys=True).encode())
        writer.commit(f"rescue: {rescue_id}\n", taken_at // 1000, parents)
        stream.finish()


def _with_submodules(look: CheckoutScan) -> Iterable[CheckoutScan]:
    yield look
    for inner in look.submodules:
        yield from _with_submodules(inner)


def _parents(look: CheckoutScan, lost_refs: Sequence[str]) -> tuple[list[str], list[str]]:
    """The commits that a rescue must keep, HEAD first, and what is damaged.

    What its refs, its stash and an operation in progress name is kept in any case, since branches may be
    deleted later. Of the many that the log of HEAD names, only those are that no ref leads to.
    """
    shadow, state = look.shadow, look.state
    named = _commits_among(shadow, (*(oid for _, oid in state.refs), *state.stashed, *state.mentioned))
    if shadow.head:
        named.insert(0, shadow.head)
    notes: list[str] = []
    if commits_missing_at(shadow, named) is None:
        damaged = [oid for oid in named if commits_missing_at(shadow, [oid]) is None]
        notes = [f"the history of {oid} is damaged and was not saved" for oid in damaged]
        named = [oid for oid in named if oid not in damaged]
    lost = (*lost_refs, shadow.branch) if shadow.branch else lost_refs
    logged = _commits_among(shadow, state.logged)
    only_logged = commits_missing_at(shadow, logged, KEPT_REFS, lost, *named)
    if only_logged is None:
        notes.append("the log of HEAD names damaged commits; what only it leads to was not saved")
    there = set(only_logged or ())
    return list(dict.fromkeys((*named, *(oid for oid in logged if oid in there)))), notes


def _commits_among(shadow: Shadow, oids: Iterable[str]) -> list[str]:
    """The commits that these are or, being tags, stand for."""
    wanted = list(dict.fromkeys(oids))
    kinds = shadow.kinds_of(wanted)
    tags = {oid: _peeled(shadow, oid) for oid, (kind, _) in kinds.items() if kind == "tag"}
    commits = (tags.get(oid, oid) for oid in wanted if kinds.get(oid, ("", 0))[0] in {"commit", "tag"})
    return [oid for oid in commits if oid]


def _peeled(shadow: Shadow, oid: str) -> str:
    return shadow.run("rev-parse", "--verify", "--quiet", f"{oid}^{{commit}}").stdout.strip()


# ------------------------------------------------------------------------------------------ one section


def _save(writer: CommitWriter, look: CheckoutScan) -> dict[str, Any]:
    """Save one checkout, the outermost or a submodule, and describe what was saved."""
    shadow, seen = look.shadow, look.survey
    is_inner = shadow.place.kind == SUBMODULE
    notes = [
        *look.notes,
        *(f"{path}: left out, since it is no file, link or folder of this checkout" for path in seen.skipped),
    ]
    with TreeReader(shadow.place.root) as tree:
        saved = [_save_file(writer, tree, found, is_inner, notes) for found in seen.files]
    index = "index" if not is_inner else writer.next_name("indexes")
    if os.path.exists(shadow.index):
        with open(shadow.index, "rb") as file:
            writer.add_stream(index, file.fileno())
    else:
        index = ""
    return {
        "path": look.path,
        "kind": shadow.place.kind,
        "head": shadow.head,
        "branch": shadow.branch,
        "gitlink": look.gitlink,
        "files": [entry for entry in saved if entry is not None],
        "deleted": list(seen.deleted),
        "folders": [list(folder) for folder in seen.folders],
        "empty_folders": list(seen.empty_folders),
        "index": index,
        "state": [
            {"path": path, "at": writer.add_numbered("state", text)} for path, text in look.state.files
        ],
        "refs": dict(look.state.refs),
        "objects": _save_objects(writer, look, is_inner=is_inner),
        "bundle": _save_bundle(writer, look, notes) if is_inner else "",
        "url": _url(shadow) if is_inner else "",
        "store": os.path.relpath(shadow.place.git_dir, shadow.home) if is_inner else "",
        "notes": notes,
    }


def _save_file(
    writer: CommitWriter, tree: TreeReader, found: UnsavedFile, is_inner: bool, notes: list[str]
) -> dict[str, Any] | None:
    entry: dict[str, Any] = {"path": found.path, "type": found.type, "mode": found.mode}
    if found.type == MODE:
        return entry
    if found.type == LINK:
        target = tree.read_link(found.path)
        return None if target is None else {**entry, "at": writer.add_numbered("files", target)}
    assert found.type == FILE
    if found.oid and not is_inner:
        name = writer.next_name("files")
        writer.refer(name, found.oid)
        return {**entry, "at": name, "size": -1}
    handle = tree.open(found.path)
    if handle is None:
        notes.append(f"{found.path}: was removed while it was looked at")
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        name = writer.next_name("files")
        return {**entry, "at": name, "size": writer.add_stream(name, handle)}
    except OSError as error:
        raise unreadable_error(found.path, error) from error
    finally:
        os.close(handle)


def _save_objects(writer: CommitWriter, look: CheckoutScan, *, is_inner: bool) -> list[dict[str, str]]:
    """Objects that can be neither parent nor part of our tree: tags, and the staged blobs of a submodule."""
    shadow = look.shadow
    tags = [
        oid for oid, (kind, _) in shadow.kinds_of(oid for _, oid in look.state.refs).items() if kind == "tag"
    ]
    wanted = [(oid, "tag") for oid in tags]
    if is_inner:
        wanted += [(oid, "blob") for oid in look.survey.staged_blobs]
    saved: list[dict[str, str]] = []
    with shadow.stream("cat-file", "--batch") as stream:
        for oid, kind in wanted:
            stream.write(f"{oid}\n".encode())
            stream.flush()
            size = int(stream.read_line().split(b" ")[2])
            content = stream.read(size + 1)[:-1]
            saved.append({"oid": oid, "type": kind, "at": writer.add_numbered("objects", content)})
    return saved


def _save_bundle(writer: CommitWriter, look: CheckoutScan, notes: list[str]) -> str:
    """The commits of a submodule that are on none of its remote-tracking refs, as a bundle."""
    shadow = look.shadow
    kinds = shadow.kinds_of((*look.commits(), *look.state.mentioned, *look.state.logged))
    commits = [oid for oid, (kind, _) in kinds.items() if kind == "commit"]
    lone = commits_missing_at(shadow, commits)
    if lone is None:
        notes.append(f"{look.path}: its history is damaged and was not saved")
    if not lone:
        return ""
    there = set(lone)
    shadow.write_refs({f"refs/rescue/{oid}": oid for oid in commits if oid in there})
    known = {oid for name, oid in shadow.refs.items() if name.startswith("refs/remotes/")}
    path = os.path.join(shadow.folder, "bundle")
    asked = "".join(f"^{oid}\n" for oid in sorted(known))
    shadow.git_output(
        "bundle", "create", "--quiet", path, "--glob=refs/rescue", "--stdin", stdin=asked.encode()
    )
    name = writer.next_name("bundles")
    with open(path, "rb") as file:
        writer.add_stream(name, file.fileno())
    return name


def _url(shadow: Shadow) -> str:
    config = os.path.join(shadow.place.git_dir, "config")
    asked = ("config", "--no-includes", "--file", config, "--get", "remote.origin.url")
    return run_home_git(shadow.home, *asked).stdout.removesuffix("\n")
