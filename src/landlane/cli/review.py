"""The commands for reviews: review list, show, give, withdraw, adopt."""

from __future__ import annotations

import json

from landlane.cli.read_file import read_file
from landlane.cli.task_answers import answer_task
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.reviews.close import adopt as adopt_review
from landlane.reviews.close import settle_reviews
from landlane.reviews.give_verdict import get_review, give_verdict, list_reviews, take_back
from landlane.reviews.to_json import review_json, review_text
from landlane.reviews.verdict_model import bad_verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.reviews.model import Review


_LONGEST = 3_000_000


def list_all(call: CommandCall, all: bool) -> int:
    """Show open reviews, or all."""
    call.show_life()
    items = [review_json(review) for review in list_reviews(call.repo, with_all=all)]
    cells = [
        [
            *(item["id"], item["task"], item["state"], (item["head"] or "")[:12], item["author"] or ""),
            ", ".join(f"{one['reviewer'] or 'anybody'} {one['verdict'] or '…'}" for one in item["verdicts"]),
            item["why"] or "",
        ]
        for item in items
    ]
    title = f"{len(items)} review{'' if len(items) == 1 else 's'}"
    columns = ["id", "task", "state", "head", "author", "verdicts", "why"]
    call.terminal.answer({"ok": True, "reviews": items}, call.terminal.table(title, columns, cells))
    return 0


def show(call: CommandCall, id: str) -> int:
    """Show one review in full."""
    call.show_life()
    settle_reviews(call.repo)
    return _answer(call, get_review(call.repo, id))


def _answer(call: CommandCall, review: Review) -> int:
    text = "\n".join(in_one_line(line) for line in review_text(review).split("\n"))
    call.terminal.answer({"ok": True, "review": review_json(review)}, text)
    return 0


def give(call: CommandCall, id: str, verdict: str, summary: str, findings: str, head: str) -> int:
    """Give a verdict on a commit."""
    document = _read_verdict(findings)
    repo = call.repo
    review = give_verdict(
        repo,
        call.session(),
        get_review(repo, id).id,
        verdict=verdict or str(document.get("verdict", "")),
        findings=document.get("findings") or (),
        summary=summary or str(document.get("summary") or ""),
        head=head,
    )
    return _answer(call, review)


def _read_verdict(name: str) -> dict[str, Any]:
    """Read a file of findings: a list, or a complete verdict."""
    if not name:
        return {}
    try:
        found = json.loads(read_file(name, "--findings", _LONGEST))
    except (ValueError, RecursionError) as error:
        raise Malformed(
            f"{name[:80]!r} is no JSON: {error}",
            code="BAD_VERDICT",
            hint='a list such as [{"path": "src/a.py", "line": 3, "severity": "major", "text": "…"}]',
        ) from error
    if isinstance(found, list):
        return {"findings": found}
    if not isinstance(found, dict):
        raise bad_verdict("the file must hold a list of findings, or a verdict")
    given: dict[str, Any] = found  # pyright: ignore[reportUnknownVariableType]
    odd = next((key for key in given if key not in ("verdict", "findings", "summary")), None)
    if odd is not None:
        raise bad_verdict(f"a verdict has no {odd[:40]!r}")
    return given


def withdraw(call: CommandCall, id: str) -> int:
    """Withdraw one's own work from review."""
    repo = call.repo
    return answer_task(call, take_back(repo, call.session(), get_review(repo, id).task))


def adopt(call: CommandCall, id: str) -> int:
    """Take over approved work whose author is gone, in order to land it."""
    return answer_task(call, adopt_review(call.repo, call.session(), id))
