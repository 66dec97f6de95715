"""The commands by which a person decides: gate list, approve, reject."""

from __future__ import annotations

from interlock.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.main import Desk


def list_all(desk: Desk) -> int:
    """Show what waits for a person."""
    from interlock.operations.landings import list_landings
    from interlock.views.landings import landing_json

    rows: list[dict[str, Any]] = [
        {"id": one.id, "kind": "landing", "why": one.gate, "landing": landing_json(one)}
        for one in list_landings(desk.house.context, ("held",))
    ]
    cells = [[row["id"], row["landing"]["agent"], row["landing"]["head"][:12], row["why"]] for row in rows]
    title = f"{len(rows)} wait{'s' if len(rows) == 1 else ''} for a person"
    table = desk.terminal.table(title, ["id", "agent", "head", "why"], cells)
    desk.terminal.answer({"ok": True, "gates": rows}, table)
    return 0


def approve(desk: Desk, id: str, head: str) -> int:
    """Let an entry land, exactly as it was submitted."""
    from interlock.flows.submitting import show_commits
    from interlock.operations.landings import get_landing

    person = _person(desk)
    site = desk.house.site()
    desk.terminal.note(show_commits(site, get_landing(site.context, id)))
    return _decide(desk, person, id, approve=True, head=head, why="")


def reject(desk: Desk, id: str, why: str) -> int:
    """Send an entry back to its author."""
    from interlock.operations.tasks import check_reason

    return _decide(desk, _person(desk), id, approve=False, head="", why=check_reason(why))


def _decide(desk: Desk, person: Any, id: str, *, approve: bool, head: str, why: str) -> int:
    from interlock.operations.landing_ends import decide
    from interlock.views.landings import landing_json

    site = desk.house.site()
    landing = decide(site.context, person, id, approve=approve, wall_ms=site.wall_ms(), head=head, why=why)
    if not approve:
        from interlock.git.target import find_target
        from interlock.loops.settling import let_go

        let_go(site, find_target(site.home, site.settings), landing)
    elif site.settings.landing_resident:
        from interlock.loops.resident import start_resident

        start_resident(site)
    word = "approved" if approve else "rejected"
    row = landing_json(landing)
    answer = {
        "ok": True,
        "gate": {"id": id, "decision": word, "by": person.agent, "head": landing.head},
        "landing": row,
    }
    desk.terminal.answer(answer, f"{id} is {word}")
    return 0


def _person(desk: Desk) -> Any:
    """The person at the terminal.

    Raises:
        NotAllowed: an agent asks, or nobody is at a terminal.
    """
    from interlock.bootstrap import person_name
    from interlock.cli.persons import why_no_person
    from interlock.operations.sessions import Caller, identify

    who = why_no_person(desk)
    if who:
        raise NotAllowed(
            f"only a person at a terminal can decide this: {who}",
            code="NOT_A_PERSON",
            hint="a person runs it in a terminal of their own, that no agent was started from",
        )
    return identify(desk.house.context, Caller(person=person_name())).session
