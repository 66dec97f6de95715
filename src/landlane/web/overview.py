"""The first view: what needs you, who works, what lands, the claims, the timeline, and the money."""

from __future__ import annotations

from landlane.landing.predict_conflicts import predict_conflicts
from landlane.web.claims_map import read_claim_map
from landlane.web.landings import read_landing_view
from landlane.web.needs import MOST_CARDS, read_cards
from landlane.web.slow import Slow
from landlane.web.spending import Weeks, read_spending
from landlane.web.timeline import KINDS, SPANS, read_timeline
from landlane.web.working import read_waiting_tasks, read_working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.web.visit import Visit

_MOST_WAITING = 8
_weeks = Weeks()
_conflicts = Slow(predict_conflicts)


def read_first_view(visit: Visit) -> dict[str, Any]:
    """Return everything that the first page shows."""
    query = visit.query
    waiting, waiting_total = read_waiting_tasks(visit, _MOST_WAITING)
    has_git = bool(visit.repo.common_dir)
    return {
        "title": "Overview",
        "current": "overview",
        "cards": read_cards(visit),
        "more_items": visit.items[MOST_CARDS:],
        "freed_tasks": len({one["task"] for item in visit.items for one in item["unblocks"]}),
        "working": read_working(visit),
        "waiting": waiting,
        "waiting_total": waiting_total,
        "landing": read_landing_view(visit),
        "claims": read_claim_map(visit, query.get("path", "")),
        "path_query": query.get("path", ""),
        "conflicts": _conflicts.read(visit.repo, visit.position) if has_git else None,
        "timeline": read_timeline(
            visit, query.get("span", ""), query.get("about", ""), query.get("kind", "all")
        ),
        "about_query": query.get("about", ""),
        "kind": query.get("kind", "all"),
        "spans": SPANS,
        "kinds": KINDS,
        "money": read_spending(visit, _weeks),
    }
