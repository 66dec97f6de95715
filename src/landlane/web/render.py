"""Templates: everything that they show is escaped, also what cannot be seen."""

from __future__ import annotations

import hashlib
import os

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from landlane.text import home_path, in_lines
from landlane.units import (
    byte_size,
    clock_time,
    count,
    day_and_time,
    exact_duration,
    join_words,
    money,
    money_limit,
    ordinal,
    rough_duration,
    running_time,
    time_ago,
    time_left,
)
from landlane.web.icons import icon
from landlane.web.marks import initials

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(__file__)
STATIC = os.path.join(_HERE, "static")
UNKNOWN = "–"


def make_environment() -> Environment:
    """Return the templates with the filters that they use."""
    made = Environment(
        loader=FileSystemLoader(os.path.join(_HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names: dict[str, Any] = {"icon": icon, "unknown": UNKNOWN, "static": static_address}
    filters: dict[str, Any] = {
        "ago": time_ago,
        "bytes": byte_size,
        "clock": clock_time,
        "count": count,
        "day": day_and_time,
        "exact": exact_duration,
        "home": home_path,
        "initials": initials,
        "join_words": join_words,
        "left": time_left,
        "limit": money_limit,
        "ordinal": ordinal,
        "rough": rough_duration,
        "running": running_time,
        "usd": usd,
    }
    made.filters.update(filters)
    made.globals.update(names)
    return made


def _visible(shown: Any) -> Any:
    """Return what an expression of a template shows; foreign text without what cannot be seen."""
    if isinstance(shown, Markup) or not isinstance(shown, str):
        return "" if shown is None else shown
    return in_lines(shown)


def usd(amount: float | None, has_unknown: bool = False) -> str:
    """Return an amount in dollars; unknown stays `–`."""
    if amount is None or (has_unknown and not amount):
        return UNKNOWN
    return money(round(amount * 1_000_000), has_unknown=has_unknown)


_addresses: dict[str, str] = {}


def static_address(name: str) -> str:
    """Return the address of a file that browsers may keep: it changes with the content."""
    if name not in _addresses:
        with open(os.path.join(STATIC, name), "rb") as file:
            _addresses[name] = f"/static/{name}?{hashlib.sha256(file.read()).hexdigest()[:12]}"
    return _addresses[name]
