"""The command `status`."""

from __future__ import annotations

from landlane.claims.read import list_claims
from landlane.claims.to_json import claim_json, waiter_json
from landlane.claims.wait import list_waiters
from landlane.errors import Stale
from landlane.gates.ask import list_gates
from landlane.gates.to_json import gate_json
from landlane.journal.read import last_position
from landlane.landing.records import list_landings
from landlane.landing.to_json import landing_json
from landlane.sessions.join import live_sessions
from landlane.sessions.notices import take_notices
from landlane.sessions.to_json import session_json
from landlane.state.slots import list_slots
from landlane.state.to_json import slot_json
from landlane.tasks.attempts import running_attempts
from landlane.tasks.records import count_tasks
from landlane.tasks.to_json import attempt_json
from landlane.tasks.worker_pool import pool_of
from landlane.usage.add import spent_today
from landlane.usage.model import money_words, total_words
from landlane.usage.to_json import dollars, total_json
from landlane.workspaces.records import list_workspaces
from landlane.workspaces.to_json import workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


def status(call: CommandCall) -> int:
    """Show sessions, claims and waiting sessions."""
    repo = call.repo
    me, over = _who_am_i(call)
    sessions = [session_json(session, repo.store) for session in live_sessions(repo)]
    claims = [claim_json(claim, repo.store) for claim in list_claims(repo)]
    waiters = [waiter_json(waiter, repo.store) for waiter in repo.store.view(list_waiters)]
    workspaces, landings, slots = _work(call)
    under_way = _UnderWay(call)
    notices = take_notices(repo, me.id) if me else []
    position = last_position(repo)
    table = call.terminal.table
    parts = [
        f"repository {repo.checkout.root}",
        f"you are {me.agent} (generation {me.generation})" if me else over,
        table(
            f"{len(sessions)} here",
            ["agent", "generation", "kind", "role", "machine", "seen"],
            [
                [str(item[key] or "") for key in ("agent", "generation", "kind", "role", "machine", "seen")]
                for item in sessions
            ],
        ),
        table(
            f"{len(claims)} held",
            ["pattern", "holder", "mode", "until"],
            [[str(item[key]) for key in ("pattern", "holder", "mode", "until")] for item in claims],
        ),
        table(
            f"{len(waiters)} waiting",
            ["agent", "patterns", "since"],
            [[item["agent"], " ".join(item["patterns"]), item["since"]] for item in waiters],
        ),
        *_tables(call, workspaces, landings, slots),
        *under_way.text(call),
        *(f"notice: {text}" for text in notices),
        f"journal at {position}",
    ]
    answer = {
        "ok": True,
        "repository": repo.checkout.root,
        "you": session_json(me, repo.store) if me else None,
        "sessions": sessions,
        "claims": claims,
        "waiters": waiters,
        "workspaces": workspaces,
        "landings": landings,
        "slots": slots,
        **under_way.document(),
        "notices": notices,
        "journal": {"position": position},
    }
    call.terminal.answer(answer, "\n".join(parts))
    return 0


def _tables(
    call: CommandCall,
    workspaces: list[dict[str, Any]],
    landings: list[dict[str, Any]],
    slots: list[dict[str, Any]],
) -> list[str]:
    """Return the tables that are not empty."""
    shown = (
        (f"{len(workspaces)} in workspaces", ("id", "task", "agent", "state", "path"), workspaces),
        (f"{len(landings)} on the way to land", ("id", "state", "agent", "branch", "reason"), landings),
        (f"{len(slots)} slots taken", ("id", "holder", "until"), slots),
    )
    return [
        call.terminal.table(title, list(keys), [[str(item[key] or "") for key in keys] for item in items])
        for title, keys, items in shown
        if items
    ]


def _work(call: CommandCall) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return workspaces, landings and slots."""
    repo, store = call.repo, call.repo.store
    workspaces = [workspace_json(workspace) for workspace in list_workspaces(repo)]
    landings = [landing_json(landing) for landing in list_landings(repo)]
    return workspaces, landings, [slot_json(slot, store) for slot in list_slots(repo)]


class _UnderWay:
    """Running tasks, items that wait for a person, and today's cost."""

    def __init__(self, call: CommandCall) -> None:
        repo = call.repo
        self._attempts = [attempt_json(attempt) for attempt in running_attempts(repo)]
        self._gates = [gate_json(gate) for gate in list_gates(repo)]
        self._today = spent_today(repo)
        self._pool = pool_of(repo)
        counts = count_tasks(repo)
        self._dead = counts.get("dead", 0) + counts.get("failed", 0)
        self._limit: int | None = repo.settings.budgets.day_micros

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        spent = total_json(self._today) | {"budget_usd": dollars(self._limit)}
        pool = {"state": self._pool.state, "paused": self._pool.paused or None}
        return {"attempts": self._attempts, "pool": pool, "gates": self._gates, "spent_today": spent} | {
            "dead_letters": self._dead
        }

    def text(self, call: CommandCall) -> list[str]:
        """Return it as text, without empty parts."""
        attempts, gates = len(self._attempts), len(self._gates)
        shown = (
            (
                f"{attempts} attempt{'' if attempts == 1 else 's'} running",
                ("id", "task", "agent", "client", "started_at", "doing"),
                self._attempts,
            ),
            (f"{gates} waiting for a person", ("id", "task", "kind", "agent", "why"), self._gates),
        )
        parts = [
            call.terminal.table(title, list(keys), [[str(item[key] or "") for key in keys] for item in items])
            for title, keys, items in shown
            if items
        ]
        if self._dead:
            many = f"{self._dead} dead letter{'' if self._dead == 1 else 's'}"
            parts.append(f"{many} (`landlane task list --state dead --state failed` shows them)")
        if self._pool.paused:
            parts.append(f"the pool is paused: {self._pool.paused} (`landlane pool resume` goes on)")
        if self._today.entries or self._limit is not None:
            limit = f"; the budget of a day is {money_words(self._limit)}" if self._limit is not None else ""
            parts.append(f"spent today, by UTC: {total_words(self._today)}{limit}")
        return parts


def _who_am_i(call: CommandCall) -> tuple[Any, str]:
    """Return the caller's session, or why there is none; status also works without a live session."""
    try:
        return call.known_session(), "you have no session; claiming begins one"
    except Stale as error:
        return None, error.message
