"""The pages: for each address, the template and the function that reads what it shows."""

from __future__ import annotations

from landlane.values import value
from landlane.web import overview

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
}
