"""The command that tells where you stand."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.main import Desk


def status(desk: Desk) -> int:
    """Show who is here, what is held and who waits."""
    from interlock.operations.held import list_claims
    from interlock.operations.journal import last_position
    from interlock.operations.notices import take_notices
    from interlock.operations.sessions import live_sessions
    from interlock.operations.waiting import describe_line
    from interlock.views.claims import claim_json, session_json, waiter_json

    house = desk.house
    me, over = _who_am_i(desk)
    sessions = [session_json(one, house.store) for one in live_sessions(house.context)]
    claims = [claim_json(one, house.store) for one in list_claims(house.context)]
    waiters = [waiter_json(one, house.store) for one in house.store.view(describe_line)]
    workspaces, landings, slots = _work(desk)
    notices = take_notices(house.context, me.id) if me else []
    position = last_position(house.context)
    table = desk.terminal.table
    parts = [
        f"repository {house.checkout.root}",
        f"you are {me.agent} (generation {me.generation})" if me else over,
        table(
            f"{len(sessions)} here",
            ["agent", "generation", "kind", "role", "machine", "seen"],
            [
                [str(one[key] or "") for key in ("agent", "generation", "kind", "role", "machine", "seen")]
                for one in sessions
            ],
        ),
        table(
            f"{len(claims)} held",
            ["pattern", "holder", "mode", "until"],
            [[str(one[key]) for key in ("pattern", "holder", "mode", "until")] for one in claims],
        ),
        table(
            f"{len(waiters)} waiting",
            ["agent", "patterns", "since"],
            [[one["agent"], " ".join(one["patterns"]), one["since"]] for one in waiters],
        ),
        *_tables(desk, workspaces, landings, slots),
        *(f"notice: {text}" for text in notices),
        f"journal at {position}",
    ]
    answer = {
        "ok": True,
        "repository": house.checkout.root,
        "you": session_json(me, house.store) if me else None,
        "sessions": sessions,
        "claims": claims,
        "waiters": waiters,
        "workspaces": workspaces,
        "landings": landings,
        "slots": slots,
        "notices": notices,
        "journal": {"position": position},
    }
    desk.terminal.answer(answer, "\n".join(parts))
    return 0


def _tables(
    desk: Desk, workspaces: list[dict[str, Any]], landings: list[dict[str, Any]], slots: list[dict[str, Any]]
) -> list[str]:
    """A table of each that there is any of."""
    shown = (
        (f"{len(workspaces)} in workspaces", ("id", "task", "agent", "state", "path"), workspaces),
        (f"{len(landings)} on the way to land", ("id", "state", "agent", "branch", "reason"), landings),
        (f"{len(slots)} slots taken", ("id", "holder", "until"), slots),
    )
    return [
        desk.terminal.table(title, list(keys), [[str(row[key] or "") for key in keys] for row in rows])
        for title, keys, rows in shown
        if rows
    ]


def _work(desk: Desk) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """What is worked on beside claims: workspaces, landings, slots."""
    from interlock.operations.landings import list_landings
    from interlock.operations.slots import list_slots
    from interlock.operations.workspaces import list_workspaces
    from interlock.views.landings import landing_json
    from interlock.views.slots import slot_json
    from interlock.views.workspaces import workspace_json

    context, store = desk.house.context, desk.house.store
    workspaces = [workspace_json(one) for one in list_workspaces(context)]
    landings = [landing_json(one) for one in list_landings(context)]
    return workspaces, landings, [slot_json(one, store) for one in list_slots(context)]


def _who_am_i(desk: Desk) -> tuple[Any, str]:
    """The caller's session, or why there is none: whoever lost it wants to look around all the more."""
    from interlock.errors import Stale

    try:
        return desk.known_session(), "you have no session; claiming begins one"
    except Stale as error:
        return None, error.message
