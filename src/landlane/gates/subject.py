"""Ask a person about a task: resolve the subject of the question, collect evidence, detect changes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from hashlib import sha256

from landlane.errors import (
    LandlaneError,
    Malformed,
    PatternError,
    RepositoryError,
    Stale,
)
from landlane.gates.model import WAITING, Gate, score_risk
from landlane.gates.open import open_task_gate
from landlane.gates.records import get_gate
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.refs import is_oid, read_refs
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target
from landlane.sessions.leases import stay_alive
from landlane.store import records
from landlane.tasks.records import get_task
from landlane.text import printable
from landlane.usage.model import add_up
from landlane.usage.totals import of_lineage
from landlane.values import replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.gates.json_types import GateEvidenceJson, SpentJson
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


_NAMES = ("command", "amount", "text", "plan", "head", "commit", "hash", "key", "url")
MOST_PATHS = 50
_MOST_BYTES = 64 * 1024 * 1024
_SHA_LENGTH = 40
_POLL_SECONDS = 1.0  # changes made on other machines do not wake the listener


def ask_person(
    repo: Repository,
    session: Session,
    task_id: str,
    kind: str,
    why: str,
    about: str = "",
    *,
    is_sandboxed: bool = False,
) -> Gate:
    """Ask a person about a task, with the evidence there is; the task is paused until the answer.

    `about` is a revision, a file or NAME=TEXT; without it, the head of the task's branch. Without git it is
    only text. The files and the git config of a sandboxed caller's own checkout are not trusted.

    Raises:
        Malformed: the question cannot be stored, or its subject does not exist.
        Stale: the task no longer belongs to this session.
    """
    if not repo.checkout.common_dir:
        name, equals, rest = about.partition("=")
        subject = {name: rest} if equals and name in _NAMES else {"text": about}
        return open_task_gate(repo, session, task_id, kind, why, subject)
    repo = repo.require_git()
    task = get_task(repo, task_id)
    own, repo = repo.checkout, replace(repo, checkout=repo.home) if is_sandboxed else repo
    _fetch_task_branch(repo, own, task)
    subject = resolve_subject(repo, task, about, is_sandboxed=is_sandboxed)
    if is_sandboxed and not about and not subject:
        subject = _head_in_clone(own, task)
    evidence = collect_evidence(repo, task, str(subject.get("head", "")))
    risk = estimate_risk(repo, kind, evidence, has_checks=bool(task.check) or None)
    return open_task_gate(repo, session, task_id, kind, why, subject, risk=risk, evidence=evidence)


def _fetch_task_branch(repo: Repository, own: Checkout, task: Task) -> None:
    """Fetch the branch of a task from the caller's clone, so that a person can look at it."""
    if any(one["path"] == own.root for one in _open_workspaces(repo, task.id, task.branch)):
        with suppress(LandlaneError):  # a person can still decide without seeing it
            fetch_clone_branch(repo.home, own.root, task.branch)


def _open_workspaces(repo: Repository, task_id: str, branch: str) -> list[records.Document]:
    found = repo.store.view(lambda snapshot: records.find_by_key(snapshot, "workspace", task_id, OPEN))
    return [document for document in found if document["branch"] == branch]


def _head_in_clone(own: Checkout, task: Task) -> dict[str, Any]:
    """Return the head of a task's branch in an untrusted clone; read from its ref file, without git."""
    ref = f"refs/heads/{task.branch}"
    head = (read_refs(own.common_dir, [ref]) or {}).get(ref, "") if task.attempt else ""
    return {"head": head, "branch": task.branch} if is_oid(head) else {}


def wait_for_answer(repo: Repository, session: Session, gate_id: str, wait_ms: int) -> Gate:
    """Return the gate once a person has answered it, or when the time is up; waiting renews the session."""
    timeout_at = time.monotonic() + wait_ms / 1000
    listener = repo.store.listen()  # before the first read, so that no answer is missed
    try:
        while True:
            gate = get_gate(repo, gate_id)
            left_seconds = timeout_at - time.monotonic()
            if gate.state != WAITING or left_seconds <= 0:
                return gate
            stay_alive(repo, session)
            listener.wait(min(left_seconds, _POLL_SECONDS))
    finally:
        listener.close()


def resolve_subject(
    repo: Repository, task: Task | None, text: str, *, is_sandboxed: bool = False
) -> dict[str, Any]:
    """Return what exactly a person is asked about.

    Raises:
        Malformed: it is not a revision, a file or NAME=TEXT.
    """
    checkouts = (repo.checkout, repo.home)
    if not text:
        branch = task.branch if task is not None and task.attempt else ""
        for checkout in checkouts if branch else ():
            if head := commits_at(checkout, [f"refs/heads/{branch}"]).get(f"refs/heads/{branch}"):
                return {"head": head, "branch": branch}
        return {}
    name, equals, rest = text.partition("=")
    if equals and name in _NAMES and rest:
        return {name: rest}
    root = repo.checkout.root
    for path in (os.path.abspath(text), os.path.join(root, text)) if not is_sandboxed else ():
        if os.path.isfile(path):
            return {"file": os.path.relpath(path, root), "hash": _hash_file(path), "at": root}
    for checkout in checkouts:
        head = try_git_output(
            checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"
        )
        if len(head) >= _SHA_LENGTH:
            is_branch = bool(commits_at(checkout, [f"refs/heads/{text}"]))
            return {"head": head, **({"branch": text} if is_branch else {})}
    raise Malformed(
        f"{text[:80]!r} is not a commit, a file or NAME=TEXT",
        code="BAD_ABOUT",
        hint=f"--about HEAD, --about plan.toml or --about command='…'; names: {', '.join(_NAMES)}",
    )


def _hash_file(path: str) -> str:
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


def describe_subject_change(repo: Repository, gate: Gate) -> str:
    """Return how the subject of a gate has changed since the question; empty if no change is known."""
    about = gate.about
    branch, head = str(about.get("branch", "")), str(about.get("head", ""))
    if branch and head:
        ref = f"refs/heads/{branch}"
        found = [commits_at(checkout, [ref]) for checkout in (repo.checkout, repo.home)]
        folders = [os.path.join(one["path"], ".git") for one in _open_workspaces(repo, gate.task, branch)]
        found += [read_refs(folder, [ref]) or {} for folder in folders if os.path.isdir(folder)]
        for commit in (heads.get(ref, head) for heads in found):
            if commit != head:
                return f"{branch} is at {commit[:8]} now; the question was about {head[:8]}"
    if about.get("file") and about.get("at"):
        path = os.path.join(str(about["at"]), str(about["file"]))
        if not os.path.isfile(path):
            return f"{about['file']} is gone" if os.path.isdir(str(about["at"])) else ""
        if _hash_file(path) != about.get("hash"):
            return f"{about['file']} was changed since it was asked"
    return ""


def check_subject_unchanged(repo: Repository, gate: Gate) -> None:
    """Refuse to approve a subject that has changed since the question.

    Raises:
        Stale: it has changed.
    """
    if change := describe_subject_change(repo, gate):
        raise Stale(
            f"{gate.id} cannot be approved: {change}",
            code="HEAD_MOVED",
            hint=f"reject it with a reason, so that {gate.agent or 'its owner'} asks again about that",
        )


def collect_evidence(repo: Repository, task: Task | None, head: str) -> GateEvidenceJson:
    """Return what helps a person to decide: size and paths of the change, and its cost so far."""
    evidence: GateEvidenceJson = diff_size(repo, head) if head else {}
    if task is not None:
        evidence |= {"title": task.title, "attempt": task.attempt, "check": task.check or None}
        evidence["cost"] = lineage_cost(repo, task.lineage)
    return evidence


def lineage_cost(repo: Repository, lineage: str) -> SpentJson | None:
    """Return what a lineage has cost so far; None if nothing was reported."""
    total = add_up(repo.store.view(lambda snapshot: of_lineage(snapshot, lineage)))
    if not total.entries:
        return None
    return {"usd": total.cost_micros / 1_000_000, "is_known": total.is_known, "attempts": total.entries}


def diff_size(repo: Repository, head: str) -> GateEvidenceJson:
    """Return the files, lines and commits that a commit adds to the target branch; empty if unknown."""
    try:
        target = find_target(repo.home, repo.settings)
    except LandlaneError:
        return {}
    refs = commits_at(repo.home, [ref for ref in (target.remote_ref, target.ref) if ref])
    tip = refs.get(target.remote_ref) or refs.get(target.ref, "")
    for checkout in (repo.home, repo.checkout):
        try:
            listed = run_in(checkout, "diff", "--numstat", "--no-renames", "-z", f"{tip}...{head}")
        except RepositoryError:
            continue
        if tip and not listed.exit_code:
            counted = try_git_output(checkout, "rev-list", "--count", f"{tip}..{head}")
            return {
                **_count_lines(listed.stdout),
                "commits": int(counted) if counted.isdecimal() else None,
                "base": tip,
            }
    return {}


def _count_lines(numstat: str) -> GateEvidenceJson:
    rows = [line.split("\t", 2) for line in numstat.split("\0") if line.count("\t") >= 2]
    paths = [printable(path) for _, _, path in rows]
    return {
        "files": len(rows),
        "added": sum(int(added) for added, _, _ in rows if added.isdecimal()),
        "removed": sum(int(removed) for _, removed, _ in rows if removed.isdecimal()),
        "paths": paths[:MOST_PATHS],
    }


def estimate_risk(
    repo: Repository, kind: str, evidence: Mapping[str, Any], *, has_checks: bool | None
) -> int:
    """Estimate the risk of a change from its evidence."""
    paths: Sequence[str] = evidence.get("paths", ())
    return score_risk(
        kind,
        paths=paths,
        protected=_count_protected(repo, paths),
        lines=evidence["added"] + evidence["removed"] if "added" in evidence else None,
        has_checks=has_checks,
    )


def _count_protected(repo: Repository, paths: Sequence[str]) -> int:
    """Count the paths that the settings protect, gate or require a claim for."""
    settings = repo.settings
    globs = (*settings.landing.gate, *settings.paths.protected, *settings.claims.required)

    def is_protected(path: str) -> bool:
        try:
            return bool(repo.git.find_glob(globs, path))
        except PatternError:
            return True  # no pattern can name this path, so none can show that it is harmless

    return sum(map(is_protected, paths)) if globs else 0
