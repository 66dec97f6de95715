"""The command `status`: one frame with what needs you, who works, what lands, who waits, and the money."""

from __future__ import annotations

from landlane.app.open import person_name
from landlane.claims.take import list_claims
from landlane.claims.to_json import claim_json, waiter_json
from landlane.claims.wait import list_waiters
from landlane.cli.command import find_handler
from landlane.cli.status_frame import frame_text
from landlane.errors import Stale
from landlane.gates.records import list_gates
from landlane.gates.to_json import gate_json
from landlane.inbox.items import list_items
from landlane.journal.read import last_position
from landlane.landing.records import list_landings
from landlane.landing.to_json import landing_json
from landlane.sessions.client_sessions import list_live_links
from landlane.sessions.join import live_sessions
from landlane.sessions.notices import take_notices
from landlane.sessions.signs_of_life import read_activity
from landlane.sessions.to_json import session_json
from landlane.state.slots import list_slots
from landlane.state.to_json import slot_json
from landlane.status.activity import landing_rows, waiting_json, working_json
from landlane.status.headline import headline_json, read_headline
from landlane.status.money import money_json
from landlane.status.next_steps import overview_line
from landlane.status.overview import read_overview
from landlane.status.troubles import trouble_lines
from landlane.tasks.attempts import running_attempts
from landlane.tasks.records import count_tasks
from landlane.tasks.to_json import attempt_json, pool_json
from landlane.tasks.worker_pool import get_pool
from landlane.usage.to_json import dollars, total_json
from landlane.usage.totals import spent_today
from landlane.workspaces.records import list_workspaces
from landlane.workspaces.to_json import workspace_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.answers.start import StatusAnswer
    from landlane.cli.command import CommandCall
    from landlane.sessions.model import Session


def status(call: CommandCall, watch: bool = False) -> int:
    """Show what needs you, who works on what, what is landing, and who waits for whom."""
    if watch:
        return find_handler("status_watch:watch")(call)
    me, why_no_session = _find_session(call)
    facts = read_facts(call, me)
    return call.terminal.answer(facts, frame_text(facts, call.wall_now(), why_no_session))


def read_facts(call: CommandCall, me: Session | None) -> StatusAnswer:
    """Return all that the frame shows, and what programs may want to know besides."""
    repo, store, person = call.repo, call.repo.store, person_name()
    counts, overview, now = count_tasks(repo), read_overview(repo), call.wall_now()
    clients = {link.session: link.name.client for link in store.view(list_live_links)}
    headline, today, working = read_headline(repo, person), spent_today(repo), working_json(repo)
    return {
        "ok": True,
        "repository": repo.checkout.root,
        "headline": headline_json(headline),
        "overview": overview_line(overview),
        "troubles": trouble_lines(repo, overview, now),
        "inbox": list_items(repo, person),
        "working": working,
        "landing": landing_rows(repo),
        "waiting": waiting_json(repo),
        "money": money_json(repo, headline, working),
        "you": session_json(me, store, read_activity(repo, me)) if me else None,
        "sessions": [
            {**session_json(session, store, read_activity(repo, session)), "client": clients.get(session.id)}
            for session in live_sessions(repo)
        ],
        "claims": [claim_json(claim, store) for claim in list_claims(repo)],
        "waiters": [waiter_json(waiter, store) for waiter in store.view(list_waiters)],
        "workspaces": [workspace_json(workspace) for workspace in list_workspaces(repo)],
        "landings": [landing_json(landing) for landing in list_landings(repo)],
        "slots": [slot_json(slot, store) for slot in list_slots(repo)],
        "attempts": [attempt_json(attempt) for attempt in running_attempts(repo)],
        "pool": pool_json(get_pool(repo)),
        "gates": [gate_json(gate) for gate in list_gates(repo)],
        "spent_today": {**total_json(today), "budget_usd": dollars(repo.settings.budgets.day_micros)},
        "dead_letters": counts.get("dead", 0) + counts.get("failed", 0),
        "notices": take_notices(repo, me.id) if me else [],
        "journal": {"position": last_position(repo)},
    }


def _find_session(call: CommandCall) -> tuple[Session | None, str]:
    """Return the caller's session, and why it has none any more; status also works without a session."""
    try:
        return call.known_session(), ""
    except Stale as error:
        return None, error.message
