"""The command `inbox`: what waits for you, and one item in full, with the question that it asks."""

from __future__ import annotations

from landlane.app.open import person_name
from landlane.cli import gate
from landlane.cli.handoff import show as show_handoff
from landlane.cli.person import why_no_person
from landlane.cli.review import show_review
from landlane.cli.table import align
from landlane.cli.terminal import cut_width, in_one_line
from landlane.errors import Malformed
from landlane.gates.model import digest_in
from landlane.git.run import try_git_output
from landlane.inbox.card import card_text, dead_task_text, is_retry
from landlane.inbox.decisions import note_shown
from landlane.inbox.items import list_items
from landlane.reviews.records import get_review
from landlane.status.headline import headline_json, headline_text, read_headline
from landlane.status.overview import read_overview
from landlane.status.troubles import trouble_lines
from landlane.tasks.model import DEAD, FAILED
from landlane.tasks.records import get_task
from landlane.tasks.to_json import task_json
from landlane.units import rough_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.inbox.json_types import InboxItemJson

_GAP = "   "
_APPROVE = "Approve, reject or later? [a/r/L]"
_APPROVE_DIFF = "Approve, reject, diff or later? [a/r/d/L]"
_TRY_AGAIN = "Retry, stop or later? [r/s/L]"
_ACCEPT = "Accept, decline or later? [a/d/L]"
_RETRY = "Retry, drop or later? [r/d/L]"
_WORKERS = "workers"  # in place of an id: why no workers are started


def inbox(call: CommandCall, id: str = "") -> int:
    """Show what waits for a person, or show one item of any kind and ask for the answer."""
    if not id:
        return _list(call)
    headline = read_headline(call.repo, person_name())
    if id.lower() == _WORKERS:
        return _show_workers(call, is_paused=headline.is_paused)
    if id == headline.target:
        return call.run("queue", "show", *_output(call))
    kinds = {"V": _show_review, "H": _show_handoff, "T": _show_dead_task, "G": _show_gate, "L": _show_gate}
    show = kinds.get(id[:1].upper())
    if show is None:
        raise Malformed(f"no item {id[:40]}", code="UNKNOWN_ITEM", hint="see all: landlane inbox")
    return show(call, id.upper())


def _list(call: CommandCall) -> int:
    call.renew_session()
    repo, person = call.repo, person_name()
    items, headline = list_items(repo, person), read_headline(repo, person)
    troubles = trouble_lines(repo, read_overview(repo), call.wall_now())
    lines = [headline_text(headline), *(["", *troubles, ""] if troubles else [])]
    answer = {"ok": True, "headline": headline_json(headline), "troubles": troubles, "items": items}
    text = "\n".join([*map(in_one_line, lines), *item_lines(items)]).rstrip()
    return call.terminal.answer(answer, text, quiet="\n".join(item["id"] for item in items))


def _is_asked(call: CommandCall, id: str) -> bool:
    """Return whether a person at a terminal sees this and can answer; then it counts as shown."""
    if not call.terminal.can_ask or why_no_person(call):
        return False
    note_shown(call.repo, person_name(), id)
    return True


def _ask(call: CommandCall, question: str) -> str:
    """Return the first letter of the answer; no answer means later."""
    return call.terminal.ask(question)[:1].lower()


def _show(call: CommandCall, text: str) -> None:
    call.terminal.answer_card({}, text)


def _output(call: CommandCall) -> list[str]:
    return ["--json"] if call.terminal.is_json else []


def _show_gate(call: CommandCall, id: str) -> int:
    """Show a question or a landing that waits for approval."""
    if not _is_asked(call, id):
        return gate.show(call, id)
    item = gate.read_item(call, id)
    _show(call, card_text(item))
    if item["state"] != "waiting":
        return 0
    return _ask_retry(call, id) if is_retry(item) else _ask_approval(call, id, item)


def _ask_retry(call: CommandCall, id: str) -> int:
    """Ask whether a task that failed is tried again, and what its next attempt should know."""
    choice = _ask(call, _TRY_AGAIN)
    if choice == "r":
        advice = call.terminal.ask("What should it do differently? (Enter for nothing)")
        return gate.approve(call, id, head="", why=advice)
    if choice == "s" and (why := call.terminal.ask("Why?")):
        return gate.reject(call, id, why)
    return 0


def _ask_approval(call: CommandCall, id: str, item: dict[str, Any]) -> int:
    """Ask for an approval; the diff can be looked at first if there is one."""
    has_diff = bool(item["about"].get("head") and item["evidence"].get("base"))
    while True:
        choice = _ask(call, _APPROVE_DIFF if has_diff else _APPROVE)
        if choice == "a":
            return gate.approve(call, id, head=digest_in(item["about"]))
        if choice == "r" and (why := call.terminal.ask("Why?")):
            return gate.reject(call, id, why)
        if choice != "d" or not has_diff:
            return 0
        call.terminal.note(gate.diff_of(call, item))


def _show_review(call: CommandCall, id: str) -> int:
    """Show a review, and take the verdict of a person who is asked for one."""
    if not _is_asked(call, id):
        return show_review(call, id)
    show_review(call, id, has_commands=False)
    review = get_review(call.repo, id)
    names = {entry.name for entry in review.awaited}
    while not review.ended_at and not review.gate and names & {"person", person_name(), ""}:
        choice = _ask(call, _APPROVE_DIFF)
        head = ("--head", review.head) if review.head else ()
        if choice == "a":
            return call.run("review", "give", id, "--verdict", "approve", *head)
        if choice == "r" and (why := call.terminal.ask("Why?")):
            return call.run("review", "give", id, "--verdict", "reject", "--summary", why, *head)
        if choice != "d":
            break
        diff = try_git_output(call.repo.home, "diff", f"{review.base}...{review.head}") if review.base else ""
        call.terminal.note(gate.printable_diff(diff) or "There is no diff to show.")
    return 0


def _show_handoff(call: CommandCall, id: str) -> int:
    """Show a handoff, and take the answer of the person that it was sent to."""
    is_mine = any(item["id"] == id for item in list_items(call.repo, person_name()))
    is_asked = is_mine and _is_asked(call, id)
    code = show_handoff(call, id)
    choice = _ask(call, _ACCEPT) if is_asked else ""
    if choice == "a":
        return call.run("handoff", "accept", _task_of(call, id))
    if choice == "d" and (why := call.terminal.ask("Why?")):
        return call.run("handoff", "decline", _task_of(call, id), "--why", why)
    return code


def _task_of(call: CommandCall, id: str) -> str:
    items = list_items(call.repo, person_name())
    return next(str(item["task"]) for item in items if item["id"] == id)


def _show_dead_task(call: CommandCall, id: str) -> int:
    """Show why a task has failed for good, and retry or drop it."""
    task = get_task(call.repo, id)
    if task.state not in (DEAD, FAILED):
        raise Malformed(
            f"{task.id} {task.title} does not wait for a person",
            code="NOT_WAITING",
            hint=f"see where it stands: landlane task show {task.id}",
        )
    text = dead_task_text(call.repo, task, call.wall_now())
    if not _is_asked(call, id):
        commands = f"\nretry: landlane task retry {id}\ndrop:  landlane task drop {id} --why 'reason'"
        return call.terminal.answer_card(
            {"ok": True, "task": task_json(task, call.repo.store)}, text + commands
        )
    _show(call, text)
    choice = _ask(call, _RETRY)
    if choice == "r":
        return call.run("task", "retry", id)
    if choice == "d" and (why := call.terminal.ask("Why?")):
        return call.run("task", "drop", id, "--why", why)
    return 0


def _show_workers(call: CommandCall, *, is_paused: bool) -> int:
    """Show why no workers are started, and start them again."""
    lines = trouble_lines(call.repo, read_overview(call.repo), call.wall_now()) if is_paused else []
    text = "\n".join(lines) or "The workers are not paused."
    if not is_paused or not _is_asked(call, _WORKERS):
        return call.terminal.answer({"ok": True, "is_paused": is_paused, "troubles": lines}, text)
    _show(call, text)
    return call.run("run", "resume") if _ask(call, "Resume or later? [r/L]") == "r" else 0


def item_lines(items: Sequence[InboxItemJson]) -> list[str]:
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
