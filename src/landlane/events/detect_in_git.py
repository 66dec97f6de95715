"""What a watcher sees in git: new commits on the target branch, and changed dependencies among them.

Nothing is fetched and no ref is moved: the remote is only asked where its branch stands.
"""

from __future__ import annotations

from landlane.errors import LandlaneError, PatternError
from landlane.events.kinds import COMMITS, DEPENDENCIES
from landlane.events.model import Fact, changed_manifests
from landlane.events.records import marks_in, write_moved
from landlane.git.run import run_in, try_git_output
from landlane.git.target import commits_at, find_target
from landlane.patterns.pattern import covers_alternative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.events.model import Event
    from landlane.git.target import TargetBranch
    from landlane.repository import Repository
    from landlane.settings.model import Settings


_ASK_SECONDS = 20.0
_MOST_COMMITS = 20
_SHA = 40


def observe_target(repo: Repository, settings: Settings) -> list[Event]:
    """Look where the target branch stands, and write down what came since the last look; tells that."""
    if not repo.home.common_dir:
        return []  # no git, no target: the store is watched all the same
    try:
        target = find_target(repo.home, settings)
    except LandlaneError:
        return []  # a repository without a commit has nothing to be watched
    tip = _tip(repo, target)
    if not tip:
        return []
    name = f"target:{target.remote}/{target.branch}"
    before = repo.store.view(lambda snapshot: marks_in(snapshot, name))
    known, read = str(before.get("tip", "")), str(before.get("read", ""))
    is_here = _is_here(repo, tip)
    if tip == known and (tip == read or not is_here):
        return []
    count = int(before.get("moves", 0)) + (tip != known)
    facts: list[Fact] = []
    if known and tip != known:
        facts.append(_commits(repo, target, known, tip, count))
    if read and is_here:  # what is not here yet can only be read when somebody has fetched it
        facts += _dependencies(repo, settings, target, read, tip)
    after = {"tip": tip, "read": tip if is_here else read or known, "moves": count}
    return write_moved(repo, settings, name, before, after, facts)


def _tip(repo: Repository, target: TargetBranch) -> str:
    """Where the target stands, by the word of whoever has it; empty when nobody answers."""
    if not target.remote:
        return commits_at(repo.home, [target.ref]).get(target.ref, "")
    try:
        found = run_in(
            repo.home, "ls-remote", "--quiet", target.remote, target.ref, limit_seconds=_ASK_SECONDS
        )
    except LandlaneError:
        return ""
    tip = found.stdout.split("\t")[0].strip()
    return tip if not found.exit_code and len(tip) >= _SHA else ""


def _is_here(repo: Repository, commit: str) -> bool:
    return try_git_output(repo.home, "cat-file", "-t", commit) == "commit"


def _commits(repo: Repository, target: TargetBranch, before: str, after: str, count: int) -> Fact:
    is_here = _is_here(repo, before) and _is_here(repo, after)
    listed: list[str] = []
    number: int | None = None
    is_rewound = False
    if is_here:
        listed = try_git_output(
            repo.home, "log", f"-{_MOST_COMMITS}", "--format=%h %an: %s", f"{before}..{after}"
        ).splitlines()
        counted = try_git_output(repo.home, "rev-list", "--count", f"{before}..{after}")
        number = int(counted) if counted.isdecimal() else None
        is_rewound = bool(run_in(repo.home, "merge-base", "--is-ancestor", before, after).exit_code)
    how = "was rewound" if is_rewound else f"has {number if number is not None else 'new'} new commits"
    how = "has 1 new commit" if number == 1 and not is_rewound else how
    how = "has new commits" if number is None else how
    facts = {"target": target.branch, "remote": target.remote, "before": before, "after": after}
    return Fact(
        kind=COMMITS,
        about=f"{COMMITS}:{target.remote}/{target.branch}:{after}:{count}",
        text=_printable(f"{target.branch} {how}: {before[:12]}..{after[:12]}"),
        facts={
            **facts,
            "count": number,
            "is_rewound": is_rewound,
            "commits": [_printable(one) for one in listed],
        },
    )


def _dependencies(
    repo: Repository, settings: Settings, target: TargetBranch, before: str, after: str
) -> list[Fact]:
    changed = try_git_output(repo.home, "diff", "--name-only", "--no-renames", "-z", before, after).split(
        "\0"
    )
    paths = _depending(repo, settings, [path for path in changed if path])
    if not paths:
        return []
    named = [_printable(path) for path in paths[:50]]
    return [
        Fact(
            kind=DEPENDENCIES,
            about=f"{DEPENDENCIES}:{target.remote}/{target.branch}:{before}..{after}",
            text=f"{target.branch} depends on other things now: {', '.join(named[:5])} changed",
            facts={"target": target.branch, "before": before, "after": after, "paths": named},
        )
    ]


def _depending(repo: Repository, settings: Settings, paths: Sequence[str]) -> list[str]:
    if settings.notify.dependencies is None:
        return changed_manifests(paths)
    pattern_of = repo.git.pattern_of
    known = [
        branch for text in settings.notify.dependencies for branch in pattern_of(text, "glob").alternatives
    ]

    def is_meant(path: str) -> bool:
        try:
            branches = pattern_of(path, "literal").alternatives
        except PatternError:
            return False
        return any(covers_alternative(one, branch) for branch in branches for one in known)

    return [path for path in paths if is_meant(path)]


def _printable(text: Any) -> str:
    """What every store can hold: what is no text shows as question marks."""
    return str(text).encode("utf-8", "surrogateescape").decode("utf-8", "replace").replace("\0", "\ufffd")
