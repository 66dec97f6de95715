"""The command `status`: one frame with what needs you, who works, what lands, who waits, and the money."""

from __future__ import annotations

from landlane.app.open import person_name
from landlane.claims.take import list_claims
from landlane.claims.to_json import claim_json, waiter_json
from landlane.claims.wait import list_waiters
from landlane.cli.inbox import item_lines
from landlane.cli.table import align, text_width
from landlane.cli.terminal import cut_width, in_one_line, terminal_width
from landlane.errors import Stale
from landlane.gates.records import list_gates
from landlane.gates.to_json import gate_json
from landlane.inbox.items import list_items
from landlane.journal.read import last_position
from landlane.landing.records import list_landings
from landlane.landing.to_json import landing_json
from landlane.sessions.join import live_sessions
from landlane.sessions.notices import take_notices
from landlane.sessions.to_json import session_json
from landlane.state.slots import list_slots
from landlane.state.to_json import slot_json
from landlane.status.activity import waiting_json, working_json
from landlane.status.headline import headline_json, read_headline
from landlane.status.money import money_json
from landlane.status.next_steps import overview_line
from landlane.status.overview import read_overview
from landlane.status.troubles import trouble_lines
from landlane.tasks.attempts import running_attempts
from landlane.tasks.records import count_tasks
from landlane.tasks.to_json import attempt_json, pool_json
from landlane.tasks.worker_pool import get_pool
from landlane.text import list_some
from landlane.units import (
    clock_time,
    count,
    join_words,
    money,
    money_limit,
    ordinal,
    rough_duration,
    time_left,
)
from landlane.usage.to_json import dollars, total_json
from landlane.usage.totals import spent_today
from landlane.workspaces.records import list_workspaces
from landlane.workspaces.to_json import workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.sessions.model import Session

_MICROS = 1_000_000
_MOST_NAMED = 3


def status(call: CommandCall) -> int:
    """Show what needs you, who works on what, what is landing, and who waits for whom."""
    me, why_no_session = _find_session(call)
    facts = _read_facts(call, me)
    return call.terminal.answer(facts, frame_text(call, facts, why_no_session))


def _read_facts(call: CommandCall, me: Session | None) -> dict[str, Any]:
    repo, store, person = call.repo, call.repo.store, person_name()
    counts = count_tasks(repo)
    headline, today, working = read_headline(repo, person), spent_today(repo), working_json(repo)
    return {
        "ok": True,
        "repository": repo.checkout.root,
        "headline": headline_json(headline),
        "inbox": list_items(repo, person),
        "working": working,
        "waiting": waiting_json(repo),
        "money": money_json(repo, headline, working),
        "you": session_json(me, store) if me else None,
        "sessions": [session_json(session, store) for session in live_sessions(repo)],
        "claims": [claim_json(claim, store) for claim in list_claims(repo)],
        "waiters": [waiter_json(waiter, store) for waiter in store.view(list_waiters)],
        "workspaces": [workspace_json(workspace) for workspace in list_workspaces(repo)],
        "landings": [landing_json(landing) for landing in list_landings(repo)],
        "slots": [slot_json(slot, store) for slot in list_slots(repo)],
        "attempts": [attempt_json(attempt) for attempt in running_attempts(repo)],
        "pool": pool_json(get_pool(repo)),
        "gates": [gate_json(gate) for gate in list_gates(repo)],
        "spent_today": total_json(today) | {"budget_usd": dollars(repo.settings.budgets.day_micros)},
        "dead_letters": counts.get("dead", 0) + counts.get("failed", 0),
        "notices": take_notices(repo, me.id) if me else [],
        "journal": {"position": last_position(repo)},
    }


def frame_text(call: CommandCall, facts: Mapping[str, Any], lost: str = "") -> str:
    """Return the frame: the headline with the time, then a section for each thing there is."""
    now = call.wall_now()
    overview = read_overview(call.repo)
    sections = {
        "": trouble_lines(call.repo, overview, now),
        "Needs you": item_lines(facts["inbox"]),
        "Working": _aligned([_working_cells(row) for row in facts["working"]]),
        f"Landing on {facts['headline']['target']}": _aligned(
            [_landing_cells(landing) for landing in facts["landings"] if landing["state"] != "held"]
        ),
        "Waiting": _aligned([_waiting_cells(row) for row in facts["waiting"]]),
        "Slots": _aligned([[slot["id"], slot["holder"]] for slot in facts["slots"]]),
        "Money": _money_lines(facts["money"]),
    }
    lines = [_first_line(in_one_line(facts["headline"]["text"]), clock_time(now))]
    lines += [lost] if lost else []
    for title, body in sections.items():
        lines += ["", *([title] if title else []), *map(in_one_line, body)] if body else []
    if not any(sections[title] for title in sections if title != "Money"):
        lines.insert(1, overview_line(overview))
    if facts["dead_letters"]:
        command = "landlane task list --state dead --state failed"
        lines += ["", f"! {count(facts['dead_letters'], 'task')} failed for good: {command}"]
    lines += [f"notice: {in_one_line(text)}" for text in facts["notices"]]
    return "\n".join(lines)


def _first_line(text: str, clock: str) -> str:
    space = max(terminal_width() - text_width(text) - len(clock), 3)
    return f"{text}{' ' * space}{clock}"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    return align([[in_one_line(cell) for cell in row] for row in rows], cut=1, width=cut_width())


def _working_cells(row: Mapping[str, Any]) -> list[str]:
    what = row["title"] if row["task"] else _some(row["claims"])
    tries = f"{row['tries']}/{row['max_tries']}" if row["tries"] else ""
    cost = row["cost_usd"]
    spent = "" if cost is None else money(round(cost * _MICROS), has_unknown=not row["is_cost_known"])
    return [row["task"] or "–", what, row["agent"], tries, _activity(row), spent]


def _activity(row: Mapping[str, Any]) -> str:
    """Return what a worker does and when it was last active, or why it cannot go on."""
    left = row["limit_ends_in_seconds"]
    if left is not None:
        return f"{row['client'].capitalize()} limit resets {time_left(left * 1000)}"
    idle = row["idle_seconds"]
    seen = "" if idle is None else f"{rough_duration(idle * 1000)} ago"
    return ", ".join(filter(None, (row["doing"], seen))) if row["doing"] else f"active {seen}".rstrip()


def _landing_cells(landing: Mapping[str, Any]) -> list[str]:
    doing = landing["stage"] or landing["reason"] or landing["state"]
    return [landing["id"], landing["subject"] or landing["branch"], landing["agent"], doing]


def _waiting_cells(row: Mapping[str, Any]) -> list[str]:
    if row["agent"]:
        holders = f"claimed by {join_words(row['holders'])}; " if row["holders"] else ""
        return [row["agent"], _some(row["paths"]), f"{holders}{ordinal(row['position'])} in line"]
    if row["paths"]:
        return [row["task"], row["title"], f"{_some(row['paths'])}, claimed by {join_words(row['holders'])}"]
    waits = f"blocked by {join_words(row['waits_for'])}" if row["waits_for"] else row["why"] or "blocked"
    return [row["task"], row["title"], waits]


def _some(names: Sequence[str]) -> str:
    return list_some(names, _MOST_NAMED)


def _money_lines(spent: Mapping[str, Any]) -> list[str]:
    if not spent["today_usd"] and spent["is_known"]:
        return []
    today = money(round(spent["today_usd"] * _MICROS), has_unknown=not spent["is_known"])
    budget = spent["day_budget_usd"]
    parts = [today + (f" of {_limit(budget)}" if budget is not None else "") + " today"]
    if spent["per_landed_usd"] is not None:
        each = money(round(spent["per_landed_usd"] * _MICROS), has_unknown=not spent["is_known"])
        parts.append(f"{each} per landed task")
    if spent["closest_task"]:
        used = money(round(spent["closest_usd"] * _MICROS))
        limit = _limit(spent["task_budget_usd"])
        parts.append(f"closest to its budget: {spent['closest_task']}, {used} of {limit}")
    return ["  " + " · ".join(parts)]


def _limit(usd: float) -> str:
    return money_limit(round(usd * _MICROS))


def _find_session(call: CommandCall) -> tuple[Session | None, str]:
    """Return the caller's session, and why it has none any more; status also works without a session."""
    try:
        return call.known_session(), ""
    except Stale as error:
        return None, error.message
