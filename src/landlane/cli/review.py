"""The commands for reviews: review list, show, give, withdraw, adopt."""

from __future__ import annotations

import json

from landlane.cli.arguments import read_file
from landlane.cli.table import empty_text
from landlane.cli.task_text import answer_task
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed
from landlane.inbox.decisions import note_answered
from landlane.reviews.close import adopt as adopt_review
from landlane.reviews.close import list_reviews, settle_reviews
from landlane.reviews.give_verdict import give_verdict
from landlane.reviews.open import withdraw_from_review
from landlane.reviews.read_verdict import bad_verdict, verdict_fields
from landlane.reviews.records import get_review
from landlane.reviews.to_json import review_json, review_lines, verdict_text
from landlane.tasks.records import get_task, list_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall


_LONGEST = 3_000_000
_MARKS = {"approve": "✓", "reject": "✗", "": "…"}


def list_all(call: CommandCall, all: bool) -> int:
    """Show open reviews, or all."""
    call.renew_session()
    items = [review_json(review) for review in list_reviews(call.repo, with_all=all)]
    titles = {task.id: task.title for task in list_tasks(call.repo)} if items else {}
    rows = [
        [
            *(item["id"], f"{item['task']} {titles.get(item['task'], '')}", item["state"]),
            *((item["head"] or "")[:8], item["author"] or ""),
            ", ".join(
                f"{one['reviewer'] or 'any agent'} {_MARKS[one['verdict'] or '']}" for one in item["verdicts"]
            ),
        ]
        for item in items
    ]
    columns = ["review", "task", "state", "commit", "author", "verdicts"]
    empty = empty_text("review" if all else "open review")
    table = call.terminal.table("", columns, rows, cut="TASK") or empty
    quiet = "\n".join(item["id"] for item in items)
    return call.terminal.answer({"ok": True, "reviews": items}, table, quiet=quiet)


def show(call: CommandCall, id: str) -> int:
    """Show one review in full."""
    return show_review(call, id)


def show_review(call: CommandCall, id: str, *, has_commands: bool = True) -> int:
    """Show one review in full, with or without the commands that answer it."""
    call.renew_session()
    settle_reviews(call.repo)
    review = get_review(call.repo, id)
    lines = review_lines(review, get_task(call.repo, review.task).title, call.wall_now())
    if has_commands and review.awaited and not review.ended_at:
        give = ("review", "give", review.id, "--verdict")
        lines += ["", f"approve: {call.command_text(*give, 'approve')}"]
        lines += [f"reject:  {call.command_text(*give, 'reject', '--summary', 'reason')}"]
    return call.terminal.answer_card({"ok": True, "review": review_json(review)}, "\n".join(lines))


def give(call: CommandCall, id: str, verdict: str, summary: str, findings: str, head: str) -> int:
    """Give a verdict on a commit."""
    document = _read_verdict(findings)
    repo = call.repo
    findings_given = document.get("findings") or ()
    word = verdict or str(document.get("verdict", ""))
    session = call.session()
    review = give_verdict(
        repo,
        session,
        get_review(repo, id.upper()).id,
        verdict=word,
        findings=findings_given,
        summary=summary or str(document.get("summary") or ""),
        head=head,
    )
    note_answered(repo, session, review.id)
    title = get_task(repo, review.task).title
    text = verdict_text(review, title, word, len(findings_given))
    return call.terminal.answer({"ok": True, "review": review_json(review)}, f"✓ {in_one_line(text)}")


def _read_verdict(name: str) -> dict[str, Any]:
    """Read a file of findings: a list, or a complete verdict."""
    if not name:
        return {}
    try:
        document = json.loads(read_file(name, "--findings", _LONGEST))
    except (ValueError, RecursionError) as error:
        raise Malformed(
            f"{name[:80]} is not valid JSON: {error}",
            code="BAD_VERDICT",
            hint='a list such as [{"path": "src/a.py", "line": 3, "severity": "major", "text": "…"}]',
        ) from error
    if isinstance(document, list):
        return {"findings": document}
    if not isinstance(document, dict):
        raise bad_verdict("the file must hold a list of findings, or a verdict")
    return verdict_fields(document)  # pyright: ignore[reportUnknownArgumentType]


def withdraw(call: CommandCall, id: str) -> int:
    """Withdraw one's own work from review."""
    repo = call.repo
    return answer_task(call, withdraw_from_review(repo, call.session(), get_review(repo, id).task))


def adopt(call: CommandCall, id: str) -> int:
    """Take over approved work whose author is gone, in order to land it."""
    return answer_task(call, adopt_review(call.repo, call.session(), id))
