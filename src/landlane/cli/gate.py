"""The commands for questions to a person: gate list, show, ask, approve, reject, withdraw."""

from __future__ import annotations

import shlex

from landlane.app.open import person_name
from landlane.cli.arguments import read_wait
from landlane.cli.command import stop_on_signals
from landlane.cli.person import person_at, why_no_person
from landlane.cli.terminal import in_one_line
from landlane.errors import NotAllowed, WaitsForPerson
from landlane.gates.decide import withdraw_gate
from landlane.gates.model import APPROVAL, APPROVED, REJECTED, WAITING
from landlane.gates.records import get_gate, list_gates
from landlane.gates.subject import (
    ask_person,
    describe_subject_change,
    wait_for_answer,
)
from landlane.gates.to_json import gate_json
from landlane.git.run import try_git_output
from landlane.inbox.answer import answer_held_landing, answer_question
from landlane.inbox.card import card_text, change_text, is_retry, question
from landlane.inbox.decisions import note_shown
from landlane.inbox.held_landings import landing_gate_json
from landlane.inbox.outcome import gate_outcome, landing_outcome
from landlane.inbox.unblocks import find_unblocked
from landlane.landing.model import HELD
from landlane.landing.records import get_landing, list_landings
from landlane.landing.submit import diff_stat
from landlane.landing.to_json import landing_json
from landlane.tasks.model import check_reason
from landlane.tasks.records import list_tasks
from landlane.units import rough_duration
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.gates.model import Gate
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_LANDING = "L"  # prefix of landing ids
_KIND_LANDING = "landing"
_COLUMNS = ["id", "question", "agent", "change", "risk", "waits", "state"]
_MOST_WHY = 200


def list_all(call: CommandCall, all: bool = False) -> int:
    """Show what waits for a person, riskiest first."""
    call.renew_session()
    repo = call.repo
    now = call.wall_now()
    gates = list_gates(repo, () if all else (WAITING,))
    items: list[dict[str, Any]] = [{**gate_json(gate, now)} for gate in gates]
    items += [_landing_item(call, landing, now) for landing in list_landings(repo, (HELD,))]
    overdue = repo.settings.gates.overdue_ms // 1000
    items = [
        {**item, "is_overdue": item["state"] == WAITING and item["waited_seconds"] >= overdue}
        for item in items
    ]
    items.sort(key=lambda item: (item["state"] != WAITING, -item["risk"], item["asked_at"]))
    if not items:
        return call.terminal.answer({"ok": True, "gates": []}, "Nothing waits for a person.")
    rows = [_row(item, is_all=all) for item in items]
    text = call.terminal.table("", _COLUMNS, rows, right=("RISK", "WAITS"), cut="QUESTION")
    quiet = "\n".join(item["id"] for item in items)
    return call.terminal.answer({"ok": True, "gates": items}, text, quiet=quiet)


def _row(item: dict[str, Any], *, is_all: bool) -> list[str]:
    asked = question(item) if item["kind"] == _KIND_LANDING else " ".join(item["why"].split())[:_MOST_WHY]
    is_named = not item["task"] or item["kind"] == _KIND_LANDING or asked.startswith(f"{item['task']} ")
    task = "" if is_named else f"{item['task']}: "
    waits = rough_duration(item["waited_seconds"] * 1000) + (", overdue" if item["is_overdue"] else "")
    return [
        item["id"],
        task + asked,
        item["agent"] or "",
        change_text({**item["evidence"], "paths": ()}).rstrip(": "),
        str(item["risk"]),
        waits if item["state"] == WAITING else "",
        item["state"] if is_all else "",
    ]


def _trusted_repository(call: CommandCall) -> Repository | None:
    """Return the repository to run git in, or None without git.

    For a sandboxed caller only the main checkout's git config is trusted.
    """
    repo = call.repo
    if not repo.checkout.common_dir:
        return None
    return replace(repo, checkout=repo.home) if call.is_sandboxed else repo


def _landing_item(call: CommandCall, landing: Landing, now: int) -> dict[str, Any]:
    """Return a held landing in the form of a gate."""
    return {**landing_gate_json(_trusted_repository(call) or call.repo, landing, now)}


def show(call: CommandCall, id: str) -> int:
    """Show everything a person needs to decide, and the commands that answer."""
    call.renew_session()
    item = read_item(call, id.upper())
    if item["state"] == WAITING and not call.terminal.is_json and not why_no_person(call):
        note_shown(repo=call.repo, person=person_name(), item=item["id"])
    text = card_text(item)
    if item["state"] == WAITING:
        text += "\n" + "\n".join(answer_commands(item))
    output = item["diffstat"] or "" if call.terminal.is_verbose else ""
    return call.terminal.answer_card({"ok": True, "gate": item}, text, output=output)


def answer_commands(item: dict[str, Any]) -> list[str]:
    """Return the two commands that answer an item, each after what it does."""
    yes, no = f"landlane gate approve {item['id']}", f"landlane gate reject {item['id']} --why 'reason'"
    if is_retry(item):
        return [f"retry: {yes} --why 'what to do differently'", f"stop:  {no}"]
    return [f"approve: {yes}", f"reject:  {no}"]


def read_item(call: CommandCall, id: str) -> dict[str, Any]:
    """Return a gate or a held landing as JSON, with what changed since and what an answer unblocks."""
    trusted, repo = _trusted_repository(call), call.repo
    now = call.wall_now()
    moved = ""
    item: dict[str, Any]
    if id.startswith(_LANDING):
        landing = get_landing(repo, id)
        item = _landing_item(call, landing, now) | ({} if landing.state == HELD else {"state": landing.state})
    else:
        gate = get_gate(repo, id)
        item = {**gate_json(gate, now)}
        if trusted is not None and gate.state == WAITING:
            moved = describe_subject_change(trusted, gate)
    unblocks = find_unblocked(list_tasks(repo), item["task"]) if item["task"] else []
    stat = _stat_of(trusted, str(item["about"].get("head", "")))
    return {**item, "moved": moved or None, "unblocks": unblocks, "diffstat": stat or None}


def diff_of(call: CommandCall, item: dict[str, Any]) -> str:
    """Return the diff that an item is about."""
    trusted, base = _trusted_repository(call), item["evidence"].get("base")
    head = item["about"].get("head")
    if trusted is None or not head or not base:
        return "There is no diff to show."
    diff = try_git_output(trusted.home, "diff", f"{base}...{head}")
    return printable_diff(diff) or "The diff is empty."


def printable_diff(diff: str) -> str:
    """Return a diff with its control characters made visible."""
    return "\n".join(map(in_one_line, diff.replace("\t", "    ").split("\n")))


def _stat_of(repo: Repository | None, head: str) -> str:
    return diff_stat(repo, head) if head and repo is not None else ""


def ask(call: CommandCall, task: str, kind: str, why: str, about: str, wait: str) -> int:
    """Ask a person about a task; the task is paused until there is an answer."""
    wait_ms = read_wait(wait)
    repo, session = call.repo, call.session()
    gate = ask_person(repo, session, task, kind, why, about, is_sandboxed=call.is_sandboxed)
    if gate.state == WAITING and wait_ms:
        stop_on_signals()
        call.terminal.note(f"{gate.id} waits for a person: landlane gate show {gate.id}")
        gate = wait_for_answer(repo, session, gate.id, wait_ms)
    return _show_answer(call, gate)


def _show_answer(call: CommandCall, gate: Gate) -> int:
    """Show the decision; exit 0 for approved, 6 for rejected, 7 while it is pending."""
    item = gate_json(gate, call.wall_now())
    if gate.state == WAITING:
        raise WaitsForPerson(
            f"{gate.id} waits for a person; {gate.task} is paused and keeps its paths",
            code="WAITS_FOR_PERSON",
            hint=f"wait for the answer: {_ask_again(call, gate)}",
            gate=item,
        )
    if gate.state != APPROVED:
        raise NotAllowed(
            f"{gate.id} was {gate.state} by {gate.answered_by}" + (f": {gate.answer}" if gate.answer else ""),
            code="GATE_REJECTED" if gate.state == REJECTED else "GATE_WITHDRAWN",
            hint=f"do it another way, and see what was said: landlane gate show {gate.id}",
            gate=item,
        )
    text = f"✓ {gate.id} was approved by {gate.answered_by}" + (f": {gate.answer}" if gate.answer else "")
    return call.terminal.answer({"ok": True, "gate": item}, text)


def _ask_again(call: CommandCall, gate: Gate) -> str:
    """Return the command that waits for the answer to the same question."""
    kind = "" if gate.kind == APPROVAL else f" --kind {gate.kind}"
    named = f" --as {call.name}" if call.name else ""
    return f"landlane gate ask {gate.task} --why {shlex.quote(gate.why)}{kind} --wait{named}"


def withdraw(call: CommandCall, id: str, why: str) -> int:
    """Withdraw a question and resume the task."""
    gate = withdraw_gate(call.repo, call.session(), id.upper(), why)
    then = f"; {gate.task} is yours again" if gate.is_resumed else ""
    return call.terminal.answer({"ok": True, "gate": gate_json(gate)}, f"✓ withdrew {gate.id}{then}")


def approve(call: CommandCall, id: str, head: str, why: str = "") -> int:
    """Approve exactly what is waiting: a landing goes on, a task resumes."""
    id = id.upper()
    person = person_at(call, f"approve {id}")
    if not id.startswith(_LANDING):
        return _answer_gate(call, person, id, approve=True, head=head, why=why)
    return _decide_landing(call, person, id, approve=True, head=head, why="")


def reject(call: CommandCall, id: str, why: str) -> int:
    """Reject, with a reason for the session that asked."""
    id = id.upper()
    person = person_at(call, f"reject {id}")
    reason = check_reason(why)
    decide = _decide_landing if id.startswith(_LANDING) else _answer_gate
    return decide(call, person, id, approve=False, head="", why=reason)


def _answer_gate(call: CommandCall, person: Session, id: str, *, approve: bool, head: str, why: str) -> int:
    repo = call.repo
    trusted = _trusted_repository(call)
    gate = answer_question(repo, person, id, approve=approve, why=why, head=head, trusted=trusted)
    word = APPROVED if approve else REJECTED
    item = {**gate_json(gate, call.wall_now()), "decision": word, "by": person.agent}
    return call.terminal.answer({"ok": True, "gate": item}, f"✓ {in_one_line(gate_outcome(repo, gate))}")


def _decide_landing(
    call: CommandCall, person: Session, id: str, *, approve: bool, head: str, why: str
) -> int:
    repo = call.repo.require_git()
    landing = answer_held_landing(repo, person, id, approve=approve, head=head, why=why)
    word = APPROVED if approve else REJECTED
    item = landing_json(landing)
    answer = {
        "ok": True,
        "gate": {"id": id, "decision": word, "by": person.agent, "head": landing.head},
        "landing": item,
    }
    return call.terminal.answer(answer, f"✓ {in_one_line(landing_outcome(repo, landing))}")
