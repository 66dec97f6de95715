"""The command `inbox`: what waits for you, and one item in full."""

from __future__ import annotations

from landlane.app.open import person_name
from landlane.cli import gate
from landlane.cli.person import why_no_person
from landlane.cli.review import show as show_review
from landlane.cli.table import align
from landlane.cli.terminal import cut_width, in_one_line
from landlane.gates.model import digest_in
from landlane.inbox.card import card_text
from landlane.inbox.items import list_items
from landlane.status.headline import headline_json, headline_text, read_headline
from landlane.units import rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.cli.command import CommandCall

_REVIEW = "V"  # prefix of review ids
_GAP = "   "
_QUESTION = "Approve, reject, diff or later? [a/r/d/L]"


def inbox(call: CommandCall, id: str = "") -> int:
    """Show what waits for a person, or show one item of any kind and ask for the answer."""
    if id.upper().startswith(_REVIEW):
        return show_review(call, id.upper())
    if id:
        return _show_item(call, id.upper())
    call.renew_session()
    person = person_name()
    items = list_items(call.repo, person)
    headline = read_headline(call.repo, person)
    lines = [in_one_line(headline_text(headline)), *item_lines(items)]
    answer = {"ok": True, "headline": headline_json(headline), "items": items}
    return call.terminal.answer(answer, "\n".join(lines), quiet="\n".join(item["id"] for item in items))


def _show_item(call: CommandCall, id: str) -> int:
    """Show an item; a person at the terminal is asked for the answer."""
    if not call.terminal.can_ask or why_no_person(call):
        return gate.show(call, id)
    item = gate.read_item(call, id)
    call.terminal.answer({}, "\n".join(map(in_one_line, card_text(item).split("\n"))))
    while item["state"] == "waiting":
        choice = call.terminal.ask(_QUESTION)[:1].lower()
        if choice == "a":
            return gate.approve(call, id, head=digest_in(item["about"]))
        if choice == "r" and (why := call.terminal.ask("Why?")):
            return gate.reject(call, id, why)
        if choice != "d":
            break
        call.terminal.note(gate.diff_of(call, item))
    return 0


def item_lines(items: Sequence[dict[str, Any]]) -> list[str]:
    """Return the items as lines: id, what is asked, for how long it waits, and the command that shows it."""
    width = max((len(item["id"]) for item in items), default=0)
    rows = [
        [
            f"{item['id']:<{width}}  {in_one_line(item['what'])}",
            rough_duration(item["waited_seconds"] * 1000),
            item["command"],
        ]
        for item in items
    ]
    return align(rows, cut=0, width=cut_width(), right=(1,), gap=_GAP)
