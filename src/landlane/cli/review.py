"""The commands about reviews: review list, show, give, withdraw, adopt."""

from __future__ import annotations

from landlane.cli.read_file import read_file
from landlane.cli.task import answer_task
from landlane.cli.terminal import in_one_line
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk
    from landlane.reviews.model import Review


_LONGEST = 3_000_000


def list_all(desk: Desk, all: bool) -> int:
    """Show the reviews that go on, or all."""
    from landlane.reviews.give_verdict import list_reviews
    from landlane.reviews.to_json import review_json

    desk.show_life()
    rows = [review_json(one) for one in list_reviews(desk.house.context, with_all=all)]
    cells = [
        [
            *(row["id"], row["task"], row["state"], (row["head"] or "")[:12], row["author"] or ""),
            ", ".join(f"{one['reviewer'] or 'anybody'} {one['verdict'] or '…'}" for one in row["verdicts"]),
            row["why"] or "",
        ]
        for row in rows
    ]
    title = f"{len(rows)} review{'' if len(rows) == 1 else 's'}"
    columns = ["id", "task", "state", "head", "author", "verdicts", "why"]
    desk.terminal.answer({"ok": True, "reviews": rows}, desk.terminal.table(title, columns, cells))
    return 0


def show(desk: Desk, id: str) -> int:
    """Show one review whole."""
    from landlane.reviews.close import settle_reviews
    from landlane.reviews.give_verdict import get_review

    desk.show_life()
    settle_reviews(desk.house.context)
    return _answer(desk, get_review(desk.house.context, id))


def _answer(desk: Desk, review: Review) -> int:
    from landlane.reviews.to_json import review_json, review_text

    text = "\n".join(in_one_line(line) for line in review_text(review).split("\n"))
    desk.terminal.answer({"ok": True, "review": review_json(review)}, text)
    return 0


def give(desk: Desk, id: str, verdict: str, summary: str, findings: str, head: str) -> int:
    """Say what one thinks of a commit."""
    from landlane.reviews.give_verdict import get_review, give_verdict

    document = _read_verdict(findings)
    context = desk.house.context
    review = give_verdict(
        context,
        desk.session(),
        get_review(context, id).id,
        verdict=verdict or str(document.get("verdict", "")),
        findings=document.get("findings") or (),
        summary=summary or str(document.get("summary") or ""),
        head=head,
    )
    return _answer(desk, review)


def _read_verdict(name: str) -> dict[str, Any]:
    """A file with findings: a list of them, or a whole verdict."""
    if not name:
        return {}
    import json

    from landlane.reviews.verdict_model import bad_verdict

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


def withdraw(desk: Desk, id: str) -> int:
    """Take one's own work back from review, to go on with it."""
    from landlane.reviews.give_verdict import get_review, take_back

    context = desk.house.context
    return answer_task(desk, take_back(context, desk.session(), get_review(context, id).task))


def adopt(desk: Desk, id: str) -> int:
    """Take over approved work whose author is gone, to land it."""
    from landlane.reviews.close import adopt as adopt_review

    return answer_task(desk, adopt_review(desk.house.context, desk.session(), id))
