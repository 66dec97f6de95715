"""The pages: for each address, the template and the function that reads what it shows."""

from __future__ import annotations

from landlane.values import value
from landlane.web import overview, review, things

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.web.visit import Visit


@value
class Page:
    """A page; `read` returns what the template shows, or the address of another page."""

    template: str
    read: Callable[[Visit], dict[str, Any] | str]


PAGES: Mapping[str, Page] = {
    "/": Page(template="overview.html", read=overview.read_first_view),
    "/tasks": Page(template="tasks.html", read=things.show_tasks),
    "/task/{id}": Page(template="task.html", read=things.show_task),
    "/agents": Page(template="agents.html", read=things.show_agents),
    "/agent/{id}": Page(template="agent.html", read=things.show_agent),
    "/landing": Page(template="landings.html", read=things.show_landings),
    "/landing/{id}": Page(template="landing.html", read=things.show_landing),
    "/claims": Page(template="claims.html", read=things.show_claims),
    "/plan": Page(template="plan.html", read=things.show_plan),
    "/journal": Page(template="journal.html", read=things.show_journal),
    "/rescue": Page(template="rescues.html", read=things.show_rescues),
    "/rescue/{id}": Page(template="rescue.html", read=things.show_rescue),
    "/workspace/{id}": Page(template="workspace.html", read=things.show_workspace),
    "/state": Page(template="state.html", read=things.show_state),
    "/rules": Page(template="rules.html", read=things.show_rules),
    "/doctor": Page(template="doctor.html", read=things.show_doctor),
    "/settings": Page(template="settings.html", read=things.show_settings),
    "/item/{id}": Page(template="item.html", read=things.show_item),
    "/review/{id}": Page(template="review.html", read=review.show_review),
    "/search": Page(template="search.html", read=things.search),
}
