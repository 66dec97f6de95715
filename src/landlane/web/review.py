"""Review in the page: the diff, comments that become findings, and what changed since the last look."""

from __future__ import annotations

import re

from landlane.git.run import try_git_output
from landlane.reviews.close import settle_reviews
from landlane.reviews.model import PERSON
from landlane.reviews.records import get_review
from landlane.reviews.to_json import review_json
from landlane.tasks.records import get_task
from landlane.web.diffs import Diff, read_changes, read_diff, side_by_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.reviews.model import Review
    from landlane.web.visit import Visit

_COMMIT = re.compile(r"[0-9a-f]{40}")


def show_review(visit: Visit) -> dict[str, Any]:
    """Return a review with its diff."""
    repo = visit.repo
    settle_reviews(repo)
    review = get_review(repo, visit.parameters["id"].upper())
    task = get_task(repo, review.task)
    home, head = repo.home, review.head
    diff = read_diff(home, review.base, head) if review.base and head and repo.common_dir else Diff(files=())
    since = visit.query.get("since", "")
    seen = since if _COMMIT.fullmatch(since) and since != head else ""
    new_lines = _new_lines(read_changes(home, seen, head)) if seen else {}
    found = review_json(review)
    return {
        "title": f"{review.id} {task.title}",
        "current": "overview",
        "review": review,
        "task": task,
        "diff": diff,
        "rows": side_by_side,
        "found": found,
        "by_place": _by_place(found),
        "since": seen,
        "new_lines": new_lines,
        "new_commits": _count_commits(home, seen, head) if seen else 0,
        "is_mine": _is_asked(visit, review),
        "view": "unified" if visit.query.get("view") == "unified" else "side",
    }


def _is_asked(visit: Visit, review: Review) -> bool:
    """Return whether the person who looks is asked for a verdict."""
    if review.ended_at or review.gate:
        return False
    return any(entry.name in (PERSON, visit.person, "") for entry in review.awaited)


def _by_place(found: Any) -> dict[tuple[str, int], list[Any]]:
    """Return the findings so far by path and line."""
    places: dict[tuple[str, int], list[Any]] = {}
    for one in found["findings"]:
        places.setdefault((one["path"] or "", one["line"] or 0), []).append(one)
    return places


def _new_lines(diff: Diff) -> dict[str, set[int]]:
    return {file.path: {line.new for line in file.lines if line.sign == "+"} for file in diff.files}


def _count_commits(home: Checkout, since: str, head: str) -> int:
    counted = try_git_output(home, "rev-list", "--count", f"{since}..{head}", "--")
    return int(counted) if counted.isdecimal() else 0
