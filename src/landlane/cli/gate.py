"""The commands by which agents ask and a person decides: gate list, show, ask, approve, reject, withdraw."""

from __future__ import annotations

from landlane.errors import NotAllowed, WaitsForPerson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.repository import Repository


_LANDING = "L"  # how the ids of entries of the landing queue begin
_COLUMNS = ["id", "kind", "risk", "agent", "task", "change", "cost", "waits", "why"]


def list_all(call: CommandCall, all: bool = False) -> int:
    """Show what waits for a person, the riskiest first."""
    from landlane.gates.ask import list_gates
    from landlane.gates.to_json import gate_json
    from landlane.inbox.to_json import inbox_cells

    call.show_life()
    repo = call.repo
    now = _now(call)
    items = [gate_json(gate, now) for gate in list_gates(repo, () if all else ("waiting",))]
    items += _held_landings(call, now)
    overdue = repo.settings.gates.overdue_ms // 1000
    items = [
        {**item, "is_overdue": item["state"] == "waiting" and item["waited_seconds"] >= overdue}
        for item in items
    ]
    items.sort(key=lambda item: (item["state"] != "waiting", -item["risk"], item["asked_at"]))
    waiting = sum(item["state"] == "waiting" for item in items)
    title = f"{waiting} wait{'s' if waiting == 1 else ''} for a person"
    cells = [inbox_cells(item) for item in items]
    if all:
        cells = [
            [*line[:-1], f"{item['state']}: {line[-1]}"] for line, item in zip(cells, items, strict=True)
        ]
    call.terminal.answer({"ok": True, "gates": items}, call.terminal.table(title, _COLUMNS, cells))
    return 0


def _now(call: CommandCall) -> int:
    store = call.repo.store
    return int(store.wall_of(store.view(_instant)))


def _instant(snapshot: Any) -> int:
    return snapshot.now


def _repo(call: CommandCall) -> Repository | None:
    """Where to look; in a sandbox only where git obeys nobody's settings but those of the main checkout.

    Nothing where there is no git.
    """
    from landlane.values import replace

    if not call.repo.checkout.common_dir:
        return None
    repo = call.repo.require_git()
    return replace(repo, checkout=repo.home) if _is_guest(call) else repo


def _is_guest(call: CommandCall) -> bool:
    return bool(getattr(call, "state_folder", ""))


def _held_landings(call: CommandCall, now: int) -> list[dict[str, Any]]:
    from landlane.landing.records import list_landings

    held = list_landings(call.repo, ("held",))
    return [_landing_item(call, one, now) for one in held]


def _landing_item(call: CommandCall, landing: Any, now: int) -> dict[str, Any]:
    from landlane.inbox.held_landings import landing_evidence
    from landlane.inbox.to_json import landing_gate_json
    from landlane.landing.to_json import landing_json

    risk, evidence = landing_evidence(_repo(call) or call.repo, landing)
    return landing_gate_json(landing, landing_json(landing), risk, evidence, now)


def show(call: CommandCall, id: str) -> int:
    """Show all there is to know before deciding."""
    from landlane.gates.ask import get_gate
    from landlane.gates.subject import what_moved
    from landlane.gates.to_json import gate_json, gate_text

    call.show_life()
    seen, repo = _repo(call), call.repo
    now = _now(call)
    item: dict[str, Any]
    moved = ""
    if id.startswith(_LANDING):
        from landlane.landing.records import get_landing

        landing = get_landing(repo, id)
        item = _landing_item(call, landing, now) | (
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


def _stat_of(repo: Any, head: str) -> str:
    from landlane.landing.submit import stat_of

    return stat_of(repo, head) if head and repo is not None else ""


def ask(call: CommandCall, task: str, kind: str, why: str, about: str, wait: str) -> int:
    """Ask a person about a task; it rests until there is an answer."""
    from landlane.cli.command import heed_signals
    from landlane.clock import parse_duration
    from landlane.gates.subject import ask_person, ask_plainly, wait_for_answer

    wait_ms = parse_duration(wait, what="--wait") if wait else 0
    repo, session = call.repo, call.session()
    if repo.checkout.common_dir:
        gate = ask_person(repo.require_git(), session, task, kind, why, about, is_guest=_is_guest(call))
    else:
        gate = ask_plainly(repo, session, task, kind, why, about)
    if gate.state == "waiting" and wait_ms:
        heed_signals()
        call.terminal.note(f"{gate.id} waits for a person: landlane gate show {gate.id}")
        gate = wait_for_answer(repo, session, gate.id, wait_ms)
    return _tell_answer(call, gate)


def _tell_answer(call: CommandCall, gate: Any) -> int:
    """The answer, or that there is none yet: 0 for yes, 6 for no, 7 while a person has to decide."""
    from landlane.gates.to_json import gate_json

    shown = gate_json(gate, _now(call))
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
    said = f": {gate.answer}" if gate.answer else ""
    call.terminal.answer({"ok": True, "gate": shown}, f"{gate.id} was approved by {gate.answered_by}{said}")
    return 0


def withdraw(call: CommandCall, id: str, why: str) -> int:
    """Take a question back, and go on."""
    from landlane.gates.decide import withdraw as take_back
    from landlane.gates.to_json import gate_json

    gate = take_back(call.repo, call.session(), id, why)
    then = f"; {gate.task} is yours again" if gate.is_resumed else ""
    call.terminal.answer({"ok": True, "gate": gate_json(gate)}, f"{id} is withdrawn{then}")
    return 0


def approve(call: CommandCall, id: str, head: str, why: str = "") -> int:
    """Say yes to exactly what waits: an entry lands, a task goes on."""
    from landlane.cli.person import person_at

    person = person_at(call)
    if not id.startswith(_LANDING):
        return _answer(call, person, id, approve=True, head=head, why=why)
    from landlane.landing.records import get_landing
    from landlane.landing.submit import show_commits

    repo = call.repo.require_git()
    call.terminal.note(show_commits(repo, get_landing(repo, id)))
    return _decide(call, person, id, approve=True, head=head, why="")


def reject(call: CommandCall, id: str, why: str) -> int:
    """Say no, with a reason for whoever asked."""
    from landlane.cli.person import person_at
    from landlane.tasks.model import check_reason

    person = person_at(call)
    reason = check_reason(why)
    if not id.startswith(_LANDING):
        return _answer(call, person, id, approve=False, head="", why=reason)
    return _decide(call, person, id, approve=False, head="", why=reason)


def _answer(call: CommandCall, person: Any, id: str, *, approve: bool, head: str, why: str) -> int:
    from landlane.gates.ask import get_gate
    from landlane.gates.decide import answer
    from landlane.gates.subject import check_unmoved
    from landlane.gates.to_json import gate_json

    seen, repo = _repo(call), call.repo
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
    item = {**gate_json(gate, _now(call)), "decision": word, "by": person.agent}
    call.terminal.answer({"ok": True, "gate": item}, f"{id} is {word}{then}")
    return 0


def _decide(call: CommandCall, person: Any, id: str, *, approve: bool, head: str, why: str) -> int:
    from landlane.landing.outcomes import decide
    from landlane.landing.to_json import landing_json

    repo = call.repo.require_git()
    landing = decide(repo, person, id, approve=approve, wall_ms=repo.wall_ms(), head=head, why=why)
    if not approve:
        from landlane.git.target import find_target
        from landlane.landing.after_landing import let_go

        let_go(repo, find_target(repo.home, repo.settings), landing)
    elif repo.settings.landing.resident:
        from landlane.resident.start import start_queue_runner

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
