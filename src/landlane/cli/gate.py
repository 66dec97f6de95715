"""The commands by which agents ask and a person decides: gate list, show, ask, approve, reject, withdraw."""

from __future__ import annotations

from landlane.errors import NotAllowed, WaitsForPerson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import Desk


_LANDING = "L"  # how the ids of entries of the landing queue begin
_COLUMNS = ["id", "kind", "risk", "agent", "task", "change", "cost", "waits", "why"]


def list_all(desk: Desk, all: bool = False) -> int:
    """Show what waits for a person, the riskiest first."""
    from landlane.gates.ask import list_gates
    from landlane.gates.to_json import gate_json
    from landlane.inbox.to_json import inbox_cells

    desk.show_life()
    house = desk.house
    now = _now(desk)
    rows = [gate_json(gate, now) for gate in list_gates(house.context, () if all else ("waiting",))]
    rows += _held_landings(desk, now)
    overdue = house.settings.gates.overdue_ms // 1000
    rows = [
        {**row, "is_overdue": row["state"] == "waiting" and row["waited_seconds"] >= overdue} for row in rows
    ]
    rows.sort(key=lambda row: (row["state"] != "waiting", -row["risk"], row["asked_at"]))
    waiting = sum(row["state"] == "waiting" for row in rows)
    title = f"{waiting} wait{'s' if waiting == 1 else ''} for a person"
    cells = [inbox_cells(row) for row in rows]
    if all:
        cells = [[*line[:-1], f"{row['state']}: {line[-1]}"] for line, row in zip(cells, rows, strict=True)]
    desk.terminal.answer({"ok": True, "gates": rows}, desk.terminal.table(title, _COLUMNS, cells))
    return 0


def _now(desk: Desk) -> int:
    store = desk.house.store
    return int(store.wall_of(store.view(_instant)))


def _instant(reading: Any) -> int:
    return reading.now


def _site(desk: Desk) -> Any:
    """Where to look; in a sandbox only where git obeys nobody's settings but those of the main checkout.

    Nothing where there is no git.
    """
    from landlane.values import replace

    if not desk.house.checkout.common_dir:
        return None
    site = desk.house.site()
    return replace(site, here=site.home) if _is_guest(desk) else site


def _is_guest(desk: Desk) -> bool:
    return bool(getattr(desk, "state_folder", ""))


def _held_landings(desk: Desk, now: int) -> list[dict[str, Any]]:
    from landlane.landing.records import list_landings

    held = list_landings(desk.house.context, ("held",))
    return [_landing_row(desk, one, now) for one in held]


def _landing_row(desk: Desk, landing: Any, now: int) -> dict[str, Any]:
    from landlane.inbox.held_landings import landing_evidence
    from landlane.inbox.to_json import landing_gate_json
    from landlane.landing.to_json import landing_json

    risk, evidence = landing_evidence(_site(desk), landing)
    return landing_gate_json(landing, landing_json(landing), risk, evidence, now)


def show(desk: Desk, id: str) -> int:
    """Show all there is to know before deciding."""
    from landlane.gates.ask import get_gate
    from landlane.gates.subject import what_moved
    from landlane.gates.to_json import gate_json, gate_text

    desk.show_life()
    house = desk.house
    site = _site(desk)
    now = _now(desk)
    row: dict[str, Any]
    moved = ""
    if id.startswith(_LANDING):
        from landlane.landing.records import get_landing

        landing = get_landing(house.context, id)
        row = _landing_row(desk, landing, now) | ({} if landing.state == "held" else {"state": landing.state})
    else:
        gate = get_gate(house.context, id)
        row = gate_json(gate, now)
        moved = what_moved(site, gate) if site is not None and gate.state == "waiting" else ""
    stat = _stat_of(site, str(row["about"].get("head", "")))
    text = gate_text(row) + (f"\n\n{stat}" if stat else "") + (f"\n\n  moved: {moved}" if moved else "")
    desk.terminal.answer(
        {"ok": True, "gate": {**row, "moved": moved or None, "diffstat": stat or None}}, text
    )
    return 0


def _stat_of(site: Any, head: str) -> str:
    from landlane.landing.submit import stat_of

    return stat_of(site, head) if head and site is not None else ""


def ask(desk: Desk, task: str, kind: str, why: str, about: str, wait: str) -> int:
    """Ask a person about a task; it rests until there is an answer."""
    from landlane.cli.command import heed_signals
    from landlane.clock import parse_duration
    from landlane.gates.subject import ask_person, ask_plainly, wait_for_answer

    wait_ms = parse_duration(wait, what="--wait") if wait else 0
    house, session = desk.house, desk.session()
    if house.checkout.common_dir:
        gate = ask_person(house.site(), session, task, kind, why, about, is_guest=_is_guest(desk))
    else:
        gate = ask_plainly(house.context, session, task, kind, why, about)
    if gate.state == "waiting" and wait_ms:
        heed_signals()
        desk.terminal.note(f"{gate.id} waits for a person: landlane gate show {gate.id}")
        gate = wait_for_answer(house.context, session, gate.id, wait_ms)
    return _tell_answer(desk, gate)


def _tell_answer(desk: Desk, gate: Any) -> int:
    """The answer, or that there is none yet: 0 for yes, 6 for no, 7 while a person has to decide."""
    from landlane.gates.to_json import gate_json

    shown = gate_json(gate, _now(desk))
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
    desk.terminal.answer({"ok": True, "gate": shown}, f"{gate.id} was approved by {gate.answered_by}{said}")
    return 0


def withdraw(desk: Desk, id: str, why: str) -> int:
    """Take a question back, and go on."""
    from landlane.gates.decide import withdraw as take_back
    from landlane.gates.to_json import gate_json

    gate = take_back(desk.house.context, desk.session(), id, why)
    then = f"; {gate.task} is yours again" if gate.is_resumed else ""
    desk.terminal.answer({"ok": True, "gate": gate_json(gate)}, f"{id} is withdrawn{then}")
    return 0


def approve(desk: Desk, id: str, head: str, why: str = "") -> int:
    """Say yes to exactly what waits: an entry lands, a task goes on."""
    from landlane.cli.person import person_at

    person = person_at(desk)
    if not id.startswith(_LANDING):
        return _answer(desk, person, id, approve=True, head=head, why=why)
    from landlane.landing.records import get_landing
    from landlane.landing.submit import show_commits

    site = desk.house.site()
    desk.terminal.note(show_commits(site, get_landing(site.context, id)))
    return _decide(desk, person, id, approve=True, head=head, why="")


def reject(desk: Desk, id: str, why: str) -> int:
    """Say no, with a reason for whoever asked."""
    from landlane.cli.person import person_at
    from landlane.tasks.model import check_reason

    person = person_at(desk)
    reason = check_reason(why)
    if not id.startswith(_LANDING):
        return _answer(desk, person, id, approve=False, head="", why=reason)
    return _decide(desk, person, id, approve=False, head="", why=reason)


def _answer(desk: Desk, person: Any, id: str, *, approve: bool, head: str, why: str) -> int:
    from landlane.gates.ask import get_gate
    from landlane.gates.decide import answer
    from landlane.gates.subject import check_unmoved
    from landlane.gates.to_json import gate_json

    site, context = _site(desk), desk.house.context
    gate = get_gate(context, id)
    if approve and gate.state == "waiting" and site is not None:
        check_unmoved(site, gate)
        if stat := _stat_of(site, str(gate.about.get("head", ""))):
            desk.terminal.note(stat)
    gate = answer(context, person, id, approve=approve, why=why, head=head)
    word = "approved" if approve else "rejected"
    then = ""
    if gate.task:
        then = (
            f"; {gate.agent} goes on with {gate.task}"
            if gate.is_resumed
            else f"; {gate.task} is not at rest any more"
        )
    row = {**gate_json(gate, _now(desk)), "decision": word, "by": person.agent}
    desk.terminal.answer({"ok": True, "gate": row}, f"{id} is {word}{then}")
    return 0


def _decide(desk: Desk, person: Any, id: str, *, approve: bool, head: str, why: str) -> int:
    from landlane.landing.outcomes import decide
    from landlane.landing.to_json import landing_json

    site = desk.house.site()
    landing = decide(site.context, person, id, approve=approve, wall_ms=site.wall_ms(), head=head, why=why)
    if not approve:
        from landlane.git.target import find_target
        from landlane.landing.after_landing import let_go

        let_go(site, find_target(site.home, site.settings), landing)
    elif site.settings.landing.resident:
        from landlane.resident.start import start_queue_runner

        start_queue_runner(site)
    word = "approved" if approve else "rejected"
    row = landing_json(landing)
    answer = {
        "ok": True,
        "gate": {"id": id, "decision": word, "by": person.agent, "head": landing.head},
        "landing": row,
    }
    desk.terminal.answer(answer, f"{id} is {word}")
    return 0
