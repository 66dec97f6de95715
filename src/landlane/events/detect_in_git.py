"""Detect new commits on the target branch, and changed dependencies in them.

Nothing is fetched and no ref changes: `git ls-remote` reads the tip of the branch.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, PatternError
from landlane.events.model import DetectedEvent, EventKind, changed_manifests, detected_event
from landlane.events.records import read_progress, record_progress
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target
from landlane.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.events.model import RecordedEvent
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository
    from landlane.settings.model import Settings


_LS_REMOTE_SECONDS = 20.0
_MAX_COMMITS = 20
_MAX_PATHS = 50
_SHA_LENGTH = 40


def record_target_events(repo: Repository, settings: Settings) -> list[RecordedEvent]:
    """Record and return the events on the target branch since the last check."""
    if not repo.home.common_dir:
        return []  # a folder without git has no target branch
    try:
        target = find_target(repo.home, settings)
    except LandlaneError:
        return []  # a repository without commits has no target branch
    tip = _read_tip(repo, target)
    if not tip:
        return []
    source = f"target:{target.remote}/{target.branch}"
    before = repo.store.view(lambda snapshot: read_progress(snapshot, source))
    known, read = str(before.get("tip", "")), str(before.get("read", ""))
    is_here = _is_here(repo, tip)
    if tip == known and (tip == read or not is_here):
        return []
    moves = int(before.get("moves", 0)) + (tip != known)
    detected: list[DetectedEvent] = []
    if known and tip != known:
        detected.append(_detect_commits(repo, target, known, tip, moves))
    if read and is_here:  # commits that are not fetched yet cannot be compared
        detected += _detect_dependencies(repo, settings, target, read, tip)
    after = {"tip": tip, "read": tip if is_here else read or known, "moves": moves}
    return record_progress(repo, settings, source, before, after, detected)


def _read_tip(repo: Repository, target: TargetBranch) -> str:
    """Return the current tip of the target branch; empty if the remote does not answer."""
    if not target.remote:
        return commits_at(repo.home, [target.ref]).get(target.ref, "")
    try:
        listing = run_in(
            repo.home, "ls-remote", "--quiet", target.remote, target.ref, limit_seconds=_LS_REMOTE_SECONDS
        )
    except LandlaneError:
        return ""
    tip = listing.stdout.split("\t")[0].strip()
    return tip if not listing.exit_code and len(tip) >= _SHA_LENGTH else ""


def _is_here(repo: Repository, commit: str) -> bool:
    return try_git_output(repo.home, "cat-file", "-t", commit) == "commit"


def _detect_commits(
    repo: Repository, target: TargetBranch, before: str, after: str, moves: int
) -> DetectedEvent:
    commits: list[str] = []
    number: int | None = None
    is_rewound = False
    if _is_here(repo, before) and _is_here(repo, after):
        commits = try_git_output(
            repo.home, "log", f"-{_MAX_COMMITS}", "--format=%h %an: %s", f"{before}..{after}"
        ).splitlines()
        counted = try_git_output(repo.home, "rev-list", "--count", f"{before}..{after}")
        number = int(counted) if counted.isdecimal() else None
        is_rewound = bool(run_in(repo.home, "merge-base", "--is-ancestor", before, after).exit_code)
    if number is None:
        how = "has new commits"
    elif is_rewound:
        how = "was rewound"
    else:
        how = f"has {number} new commit{'' if number == 1 else 's'}"
    facts: dict[str, Any] = {
        "target": target.branch,
        "remote": target.remote,
        "before": before,
        "after": after,
    }
    facts |= {"count": number, "is_rewound": is_rewound, "commits": [_printable(line) for line in commits]}
    text = _printable(f"{target.branch} {how}: {before[:12]}..{after[:12]}")
    key = f"{target.remote}/{target.branch}:{after}:{moves}"
    return detected_event(EventKind.COMMITS, key, text, facts)


def _detect_dependencies(
    repo: Repository, settings: Settings, target: TargetBranch, before: str, after: str
) -> list[DetectedEvent]:
    listed = try_git_output(repo.home, "diff", "--name-only", "--no-renames", "-z", before, after)
    paths = _select_manifests(repo, settings, [path for path in listed.split("\0") if path])
    if not paths:
        return []
    named = [_printable(path) for path in paths[:_MAX_PATHS]]
    key = f"{target.remote}/{target.branch}:{before}..{after}"
    text = f"{target.branch} depends on other things now: {', '.join(named[:5])} changed"
    facts = {"target": target.branch, "before": before, "after": after, "paths": named}
    return [detected_event(EventKind.DEPENDENCIES, key, text, facts)]


def _select_manifests(repo: Repository, settings: Settings, paths: Sequence[str]) -> list[str]:
    if settings.notify.dependencies is None:
        return changed_manifests(paths)
    globs = settings.notify.dependencies

    def is_wanted(path: str) -> bool:
        try:
            return bool(repo.git.find_glob(globs, path))
        except PatternError:  # a name that no pattern can match
            return False

    return [path for path in paths if is_wanted(path)]


def _printable(text: str) -> str:
    """Replace what a store cannot hold: bytes that are not UTF-8, and NUL."""
    return printable(text).replace("\0", "\ufffd")
