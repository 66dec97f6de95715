"""What a person needs to decide: what exactly is asked about, how much it changes, and if it has moved."""

from __future__ import annotations

import os
import time
from hashlib import sha256

from landlane.errors import (
    LandlaneError,
    Malformed,
    PatternError,
    RepositoryError,
    Stale,
)
from landlane.gates import ask as gates
from landlane.gates.model import WAITING, Gate, risk_of
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.refs import is_oid, read_refs
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target
from landlane.patterns.pattern import covers_alternative
from landlane.sessions.leases import stay_alive
from landlane.store import records
from landlane.tasks.records import get_task
from landlane.usage.totals import spent
from landlane.values import replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


_NAMED = ("command", "amount", "text", "plan", "head", "commit", "hash", "key", "url")
MOST_PATHS = 50
_MOST_BYTES = 64 * 1024 * 1024
_SHA = 40
_LOOK_SECONDS = 1.0  # on another machine nobody wakes us


def ask_person(
    repo: Repository,
    session: Session,
    task_id: str,
    kind: str,
    why: str,
    about: str = "",
    *,
    is_guest: bool = False,
) -> Gate:
    """Ask a person about a task, with what there is to see; the task rests until the answer.

    `about` is a revision, a file or NAME=TEXT; without it, the head of the task's branch. Of a guest behind a
    sandbox neither the files nor the repository of its own checkout are believed.

    Raises:
        Malformed: the question cannot be kept, or nobody knows what it is about.
        Stale: the task is not this session's any more.
    """
    task = get_task(repo, task_id)
    own, repo = repo.checkout, replace(repo, checkout=repo.home) if is_guest else repo
    _bring(repo, own, task)
    meant = about_of(repo, task, about, is_guest=is_guest)
    if is_guest and not about and not meant:
        meant = _head_in(own, task)
    found = evidence_for(repo, task, str(meant.get("head", "")))
    risk = estimate_risk(repo, kind, found, has_checks=bool(task.check) or None)
    return gates.ask(repo, session, task_id, kind, why, meant, risk=risk, evidence=found)


def ask_plainly(repo: Repository, session: Session, task_id: str, kind: str, why: str, about: str) -> Gate:
    """The same in a folder without git: it is about words, or about nothing that could move.

    Raises:
        Malformed: the question cannot be kept.
        Stale: the task is not this session's any more.
    """
    name, equals, rest = about.partition("=")
    meant = {name: rest} if equals and name in _NAMED else {"text": about}
    return gates.ask(repo, session, task_id, kind, why, meant)


def _bring(repo: Repository, own: Checkout, task: Task) -> None:
    """Bring the branch of a task here from its clone, so that a person can look at what it is about."""
    known = repo.store.view(lambda snapshot: records.by_key(snapshot, "workspace", task.id, OPEN))
    try:
        if any(one["path"] == own.root and one["branch"] == task.branch for one in known):
            fetch_clone_branch(repo.home, own.root, task.branch)
    except LandlaneError:
        return  # a person can still decide without seeing it


def _head_in(own: Checkout, task: Task) -> dict[str, Any]:
    """The head of a task's branch in a guest's own clone, read from its file: no git is run there."""
    ref = f"refs/heads/{task.branch}"
    head = (read_refs(own.common_dir, [ref]) or {}).get(ref, "") if task.attempt else ""
    return {"head": head, "branch": task.branch} if is_oid(head) else {}


def wait_for_answer(repo: Repository, session: Session, gate_id: str, wait_ms: int) -> Gate:
    """The gate as it stands once a person has answered it, or when the time is up; waiting shows life."""
    give_up_at = time.monotonic() + wait_ms / 1000
    listener = repo.store.listen()  # before looking, so that no answer in between is missed
    try:
        while True:
            gate = gates.get_gate(repo, gate_id)
            left = give_up_at - time.monotonic()
            if gate.state != WAITING or left <= 0:
                return gate
            stay_alive(repo, session)
            listener.wait(min(left, _LOOK_SECONDS))
    finally:
        listener.close()


def about_of(repo: Repository, task: Task | None, text: str, *, is_guest: bool = False) -> dict[str, Any]:
    """What exactly a person is asked about.

    Raises:
        Malformed: it is no revision, no file and no NAME=TEXT.
    """
    places = (repo.checkout, repo.home)
    if not text:
        branch = task.branch if task is not None and task.attempt else ""
        for place in places if branch else ():
            if head := commits_at(place, [f"refs/heads/{branch}"]).get(f"refs/heads/{branch}"):
                return {"head": head, "branch": branch}
        return {}
    name, equals, rest = text.partition("=")
    if equals and name in _NAMED and rest:
        return {name: rest}
    path = os.path.join(repo.checkout.root, text) if not os.path.isabs(text) else text
    cwd = os.path.abspath(text)
    for place in (cwd, path) if not is_guest else ():
        if os.path.isfile(place):
            return {
                "file": os.path.relpath(place, repo.checkout.root),
                "hash": _hash_of(place),
                "at": repo.checkout.root,
            }
    for checkout in places:
        head = try_git_output(
            checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"
        )
        if len(head) >= _SHA:
            is_branch = bool(commits_at(checkout, [f"refs/heads/{text}"]))
            return {"head": head, **({"branch": text} if is_branch else {})}
    raise Malformed(
        f"{text[:80]!r} is no commit, no file and no NAME=TEXT",
        code="BAD_ABOUT",
        hint=f"--about HEAD, --about plan.toml or --about command='…'; names: {', '.join(_NAMED)}",
    )


def _hash_of(path: str) -> str:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            raise Malformed(
                f"{path} is too big to be asked about",
                code="FILE_TOO_BIG",
                hint="commit it, and name the commit",
            )
        with open(path, "rb") as file:
            return sha256(file.read()).hexdigest()
    except OSError as error:
        raise Malformed(
            f"{path} cannot be read: {error.strerror}",
            code="FILE_UNREADABLE",
            hint="name a file you can read",
        ) from error


def what_moved(repo: Repository, gate: Gate) -> str:
    """What is no longer as it was when a person was asked; empty when nothing is known to have moved."""
    about = gate.about
    branch, head = str(about.get("branch", "")), str(about.get("head", ""))
    if branch and head:
        ref = f"refs/heads/{branch}"
        places = [commits_at(place, [ref]) for place in (repo.checkout, repo.home)]
        places += [read_refs(folder, [ref]) or {} for folder in _clones(repo, gate, branch)]
        for now in (place.get(ref, head) for place in places):
            if now != head:
                return f"{branch} is at {now[:12]} by now, and was at {head[:12]} when it was asked"
    if about.get("file") and about.get("at"):
        path = os.path.join(str(about["at"]), str(about["file"]))
        if not os.path.isfile(path):
            return f"{about['file']} is gone" if os.path.isdir(str(about["at"])) else ""
        if _hash_of(path) != about.get("hash"):
            return f"{about['file']} was changed since it was asked"
    return ""


def _clones(repo: Repository, gate: Gate, branch: str) -> list[str]:
    """The git folders of the workspaces of a task that have its branch for themselves."""
    known = repo.store.view(lambda snapshot: records.by_key(snapshot, "workspace", gate.task, OPEN))
    folders = [os.path.join(one["path"], ".git") for one in known if one["branch"] == branch]
    return [folder for folder in folders if os.path.isdir(folder)]


def check_unmoved(repo: Repository, gate: Gate) -> None:
    """Refuse to approve what is another thing by now.

    Raises:
        Stale: it has moved.
    """
    if moved := what_moved(repo, gate):
        raise Stale(
            f"{gate.id} cannot be approved: {moved}",
            code="HEAD_MOVED",
            hint=f"reject it with a reason, so that {gate.agent or 'its owner'} asks again about that",
        )


# ------------------------------------------------------------------------------------------ deploys


# ------------------------------------------------------------------------------------------ evidence


def evidence_for(repo: Repository, task: Task | None, head: str) -> dict[str, Any]:
    """What helps a person to decide: the size of the change, its paths, and what it cost so far."""
    found = describe_change(repo, head) if head else {}
    if task is not None:
        found |= {"title": task.title, "attempt": task.attempt, "check": task.check or None}
        found["cost"] = cost_of(repo, task.lineage)
    return found


def cost_of(repo: Repository, lineage: str) -> dict[str, Any] | None:
    """What a lineage has cost; nothing when nobody knows anything of it."""
    total = repo.store.view(lambda snapshot: spent(snapshot, lineage=lineage))
    if not total.entries:
        return None
    return {"usd": total.cost_micros / 1_000_000, "is_known": total.is_known, "attempts": total.entries}


def describe_change(repo: Repository, head: str) -> dict[str, Any]:
    """What a commit would bring to the target: files and lines, by git's own count."""
    try:
        target = find_target(repo.home, repo.settings)
    except LandlaneError:
        return {}
    refs = commits_at(repo.home, [ref for ref in (target.remote_ref, target.ref) if ref])
    tip = refs.get(target.remote_ref) or refs.get(target.ref, "")
    for place in (repo.home, repo.checkout):
        try:
            listed = run_in(place, "diff", "--numstat", "--no-renames", "-z", f"{tip}...{head}")
        except RepositoryError:
            continue
        if tip and not listed.exit_code:
            counted = try_git_output(place, "rev-list", "--count", f"{tip}..{head}")
            return {
                **_counted(listed.stdout),
                "commits": int(counted) if counted.isdecimal() else None,
                "base": tip,
            }
    return {}


def _counted(text: str) -> dict[str, Any]:
    rows = [line.split("\t", 2) for line in text.split("\0") if line.count("\t") >= 2]
    paths = [path.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for _, _, path in rows]
    return {
        "files": len(rows),
        "added": sum(int(added) for added, _, _ in rows if added.isdecimal()),
        "removed": sum(int(removed) for _, removed, _ in rows if removed.isdecimal()),
        "paths": paths[:MOST_PATHS],
    }


def estimate_risk(repo: Repository, kind: str, found: Mapping[str, Any], *, has_checks: bool | None) -> int:
    """Estimate the risk of what a person is asked about."""
    paths: Sequence[str] = found.get("paths", ())
    return risk_of(
        kind,
        paths=paths,
        protected=_protected(repo, paths),
        lines=found["added"] + found["removed"] if "added" in found else None,
        has_checks=has_checks,
    )


def _protected(repo: Repository, paths: Sequence[str]) -> int:
    """How many of these paths the settings protect, gate or call shared surface."""
    settings, pattern_of = repo.settings, repo.git.pattern_of
    guarded = [
        branch
        for text in (*settings.landing.gate, *settings.paths.protected, *settings.claims.required)
        for branch in pattern_of(text, "glob").alternatives
    ]
    return sum(_is_inside(repo, path, guarded) for path in paths) if guarded else 0


def _is_inside(repo: Repository, path: str, guarded: Sequence[Any]) -> bool:
    try:
        branches = repo.git.pattern_of(path, "literal").alternatives
    except PatternError:
        return True  # a name that no pattern can mean: better to look at it
    return any(covers_alternative(one, branch) for branch in branches for one in guarded)
