"""The commands for questions to a person: gate show, ask, approve, reject, withdraw."""

from __future__ import annotations

from landlane.cli.command import heed_signals
from landlane.cli.gate_list import is_guest, landing_item, trusted_checkout
from landlane.cli.person import person_at
from landlane.clock import parse_duration
from landlane.errors import NotAllowed, WaitsForPerson
from landlane.gates.ask import get_gate
from landlane.gates.decide import answer
from landlane.gates.decide import withdraw as take_back
from landlane.gates.subject import ask_person, ask_plainly, check_unmoved, wait_for_answer, what_moved
from landlane.gates.to_json import gate_json, gate_text
from landlane.git.target import find_target
from landlane.landing.after_landing import delete_entry_ref
from landlane.landing.outcomes import decide_held_entry
from landlane.landing.records import get_landing
from landlane.landing.submit import diff_stat
from landlane.landing.to_json import landing_json
from landlane.resident.start import start_queue_runner
from landlane.tasks.model import check_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.gates.model import Gate
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_LANDING = "L"  # prefix of landing ids


def show(call: CommandCall, id: str) -> int:
    """Show everything a person needs to decide."""
    call.show_life()
    seen, repo = trusted_checkout(call), call.repo
    now = call.wall_now()
    item: dict[str, Any]
    moved = ""
    if id.startswith(_LANDING):
        landing = get_landing(repo, id)
        item = landing_item(call, landing, now) | (
            {} if landing.state == "held" else {"state": landing.state}
        )
    else:
        gate = get_gate(repo, id)
        item = gate_json(gate, now)
        moved = what_moved(seen, gate) if seen is not None and gate.state == "waiting" else ""
    stat = _stat_of(seen, str(item["about"].get("head", "")))
    text = gate_text(item) + (f"\n\n{stat}" if stat else "") + (f"\n\n  moved: {moved}" if moved else "")
    call.terminal.answer(
        {"ok": True, "gate": {**item, "moved": moved or None, "diffstat": stat or None}}, text
    )
    return 0


def _stat_of(repo: Repository | None, head: str) -> str:
    return diff_stat(repo, head) if head and repo is not None else ""


def ask(call: CommandCall, task: str, kind: str, why: str, about: str, wait: str) -> int:
    """Ask a person about a task; the task is paused until there is an answer."""
    wait_ms = parse_duration(wait, what="--wait") if wait else 0
    repo, session = call.repo, call.session()
    if repo.checkout.common_dir:
        gate = ask_person(repo.require_git(), session, task, kind, why, about, is_guest=is_guest(call))
    else:
        gate = ask_plainly(repo, session, task, kind, why, about)
    if gate.state == "waiting" and wait_ms:
        heed_signals()
        call.terminal.note(f"{gate.id} waits for a person: landlane gate show {gate.id}")
        gate = wait_for_answer(repo, session, gate.id, wait_ms)
    return _show_answer(call, gate)


def _show_answer(call: CommandCall, gate: Gate) -> int:
    """Show the decision; exit 0 for approved, 6 for rejected, 7 while it is pending."""
    shown = gate_json(gate, call.wall_now())
    if gate.state == "waiting":
        raise WaitsForPerson(
            f"{gate.id} waits for a person; {gate.task} rests until then, and its paths are kept",
            code="WAITS_FOR_PERSON",
            hint=f"give the same command again to hear the answer, with --wait 10m to wait for it; "
            f"a person answers with `landlane gate approve {gate.id}`",
            gate=shown,
        )
    if gate.state != "approved":
        raise NotAllowed(
            f"{gate.id} was {gate.state} by {gate.answered_by}" + (f": {gate.answer}" if gate.answer else ""),
            code="GATE_REJECTED" if gate.state == "rejected" else "GATE_WITHDRAWN",
            hint="do it another way, or ask about something else",
            gate=shown,
        )
    reason = f": {gate.answer}" if gate.answer else ""
    call.terminal.answer({"ok": True, "gate": shown}, f"{gate.id} was approved by {gate.answered_by}{reason}")
    return 0


def withdraw(call: CommandCall, id: str, why: str) -> int:
    """Withdraw a question and resume the task."""
    gate = take_back(call.repo, call.session(), id, why)
    then = f"; {gate.task} is yours again" if gate.is_resumed else ""
    call.terminal.answer({"ok": True, "gate": gate_json(gate)}, f"{id} is withdrawn{then}")
    return 0


def approve(call: CommandCall, id: str, head: str, why: str = "") -> int:
    """Approve exactly what is waiting: a landing goes on, a task resumes."""
    person = person_at(call)
    if not id.startswith(_LANDING):
        return _answer(call, person, id, approve=True, head=head, why=why)
    repo = call.repo.require_git()
    call.terminal.note(diff_stat(repo, get_landing(repo, id).head))
    return _decide(call, person, id, approve=True, head=head, why="")


def reject(call: CommandCall, id: str, why: str) -> int:
    """Reject, with a reason for the session that asked."""
    person = person_at(call)
    reason = check_reason(why)
    if not id.startswith(_LANDING):
        return _answer(call, person, id, approve=False, head="", why=reason)
    return _decide(call, person, id, approve=False, head="", why=reason)


def _answer(call: CommandCall, person: Session, id: str, *, approve: bool, head: str, why: str) -> int:
    seen, repo = trusted_checkout(call), call.repo
    gate = get_gate(repo, id)
    if approve and gate.state == "waiting" and seen is not None:
        check_unmoved(seen, gate)
        if stat := _stat_of(seen, str(gate.about.get("head", ""))):
            call.terminal.note(stat)
    gate = answer(repo, person, id, approve=approve, why=why, head=head)
    word = "approved" if approve else "rejected"
    then = ""
    if gate.task:
        then = (
            f"; {gate.agent} goes on with {gate.task}"
            if gate.is_resumed
            else f"; {gate.task} is not at rest any more"
        )
    item = {**gate_json(gate, call.wall_now()), "decision": word, "by": person.agent}
    call.terminal.answer({"ok": True, "gate": item}, f"{id} is {word}{then}")
    return 0


def _decide(call: CommandCall, person: Session, id: str, *, approve: bool, head: str, why: str) -> int:
    repo = call.repo.require_git()
    landing = decide_held_entry(repo, person, id, is_approved=approve, head=head, why=why)
    if not approve:
        delete_entry_ref(repo, find_target(repo.home, repo.settings), landing)
    elif repo.settings.landing.resident:
        start_queue_runner(repo)
    word = "approved" if approve else "rejected"
    item = landing_json(landing)
    answer = {
        "ok": True,
        "gate": {"id": id, "decision": word, "by": person.agent, "head": landing.head},
        "landing": item,
    }
    call.terminal.answer(answer, f"{id} is {word}")
    return 0
