"""Rescues: everything a checkout had that was nowhere else, kept as one commit under a ref of its own.

The commit's tree holds `manifest.json` (what, when, where from), `contents.json` (every path with its type,
permissions and where its bytes are), the bytes in numbered files, the index, and the state of the checkout's
git directory. Its parents are the commits that the checkout was on or mentioned, so that git keeps them. Only
`drop_rescue` removes one.
"""

from __future__ import annotations

import json
import re

from landlane.errors import Malformed, RepositoryError
from landlane.git.refs import read_refs
from landlane.git.untrusted_checkout import home_git_output, run_home_git, to_bytes
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RESCUE_REFS = "refs/landlane/rescue/"
FORM = 1
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_-])){0,199}")


@value
class Rescue:
    """One rescue, without its contents."""

    id: str
    ref: str
    commit: str
    facts: dict[str, Any]
    at: int
    root: str
    kind: str
    head: str
    branch: str
    operation: str
    files: int
    bytes: int
    notes: tuple[str, ...]
    commits: int = 0  # that no branch contains


def rescue_ref(rescue_id: str) -> str:
    """Return the ref of a rescue.

    Raises:
        Malformed: the id is not valid.
    """
    if not _ID.fullmatch(rescue_id) or rescue_id.endswith(".lock"):
        raise Malformed(
            f"{rescue_id!r} is not the id of a rescue",
            code="RESCUE_ID",
            hint="an id looks like R9: landlane rescue list",
        )
    return RESCUE_REFS + rescue_id


def list_rescues(home: str) -> list[Rescue]:
    """Return all rescues, the oldest first."""
    listed = home_git_output(home, "for-each-ref", "--format=%(objectname) %(refname)", RESCUE_REFS)
    pairs = [(line.partition(" ")[0], line.partition(" ")[2]) for line in listed.splitlines()]
    return sorted(_read(home, pairs), key=lambda rescue: (rescue.at, rescue.id))


def find_rescue(home: str, rescue_id: str) -> Rescue | None:
    """Return the rescue of this id, if there is one."""
    ref = rescue_ref(rescue_id)
    known = read_refs(home, [ref])
    if known is not None:
        commit = known.get(ref, "")
    else:
        commit = run_home_git(home, "rev-parse", "--verify", "--quiet", ref).stdout.strip()
    return next(iter(_read(home, [(commit, ref)])), None) if commit else None


def get_rescue(home: str, rescue_id: str) -> Rescue:
    """Return the rescue of this id.

    Raises:
        RepositoryError: there is none.
    """
    rescue = find_rescue(home, rescue_id)
    if rescue is None:
        raise RepositoryError(
            f"no rescue {rescue_id}",
            code="NO_RESCUE",
            hint="landlane rescue list",
        )
    return rescue


def _read(home: str, pairs: list[tuple[str, str]]) -> list[Rescue]:
    asked = "".join(f"{commit}:manifest.json\n" for commit, _ in pairs).encode()
    answer = to_bytes(home_git_output(home, "cat-file", "--batch", "--buffer", stdin=asked))
    rescues: list[Rescue] = []
    at = 0
    for commit, ref in pairs:
        end = answer.index(b"\n", at)
        head = answer[at:end].split(b" ")
        at = end + 1
        if len(head) != 3 or head[1] != b"blob":
            continue  # not one of ours, or damaged
        size = int(head[2])
        text, at = answer[at : at + size], at + size + 1
        try:
            rescues.append(_from_manifest(commit, ref, json.loads(text)))
        except (ValueError, KeyError, TypeError):
            continue
    return rescues


def _from_manifest(commit: str, ref: str, manifest: dict[str, Any]) -> Rescue:
    return Rescue(
        id=ref.removeprefix(RESCUE_REFS),
        ref=ref,
        commit=commit,
        facts=manifest["facts"],
        at=manifest["taken_at"],
        root=manifest["root"],
        kind=manifest["kind"],
        head=manifest["head"],
        branch=manifest["branch"],
        operation=manifest["operation"],
        files=manifest["counts"]["files"],
        bytes=manifest["bytes"],
        notes=tuple(manifest["notes"]),
        commits=manifest["counts"].get("commits", 0),
    )


def drop_rescue(home: str, rescue_id: str) -> None:
    """Delete a rescue for good; what only it held is removed by the next `git gc`.

    Raises:
        RepositoryError: there is none, or git refuses.
    """
    rescue = get_rescue(home, rescue_id)
    home_git_output(home, "update-ref", "-d", rescue.ref, rescue.commit)


def pack_rescues(home: str, older_than_ms: int) -> int:
    """Put the objects of rescues taken before this instant into one pack; return how many rescues.

    Nothing is lost: objects are copied first, and only loose copies of packed ones are removed.

    Raises:
        RepositoryError: git refuses.
    """
    form = "--format=%(committerdate:unix) %(objectname)"
    rows = [line.split(" ") for line in home_git_output(home, "for-each-ref", form, RESCUE_REFS).splitlines()]
    old = [commit for at, commit in rows if int(at) * 1000 < older_than_ms]
    if not old:
        return 0
    kept = home_git_output(
        home, "for-each-ref", "--format=^%(objectname)", "refs/heads", "refs/remotes", "refs/tags"
    )
    asked = "".join(f"{commit}\n" for commit in old) + kept
    home_git_output(
        home,
        *("pack-objects", "--quiet", "--revs", "--incremental", "--non-empty"),
        *("--delta-base-offset", "--local"),
        f"{home}/objects/pack/pack",
        stdin=asked.encode(),
    )
    home_git_output(home, "prune-packed", "--quiet")
    home_git_output(home, "pack-refs", "--all")
    return len(old)
