"""The shapes of states and buttons. A state always has a shape and a word, never a colour alone."""

from __future__ import annotations

from markupsafe import Markup

_RING = "M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Z"
_HOLE = "M8 3.1a4.9 4.9 0 1 0 0 9.8 4.9 4.9 0 0 0 0-9.8Z"
_DISC = "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1Z"

# Drawn on a square of 16.
SHAPES = {
    "work": "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Z",
    "wait": f"{_RING}{_HOLE}M7.3 4.5h1.5v3.6l2.5 1.5-.8 1.3-3.2-2z",
    "limit": "M4 1.5h8V3h-.8c0 2.4-1 3.7-2.3 5 1.3 1.3 2.3 2.6 2.3 5h.8v1.5H4V13h.8"
    "c0-2.4 1-3.7 2.3-5C5.8 6.7 4.8 5.4 4.8 3H4z",
    "stuck": "M8 1l7.4 13.4H.6ZM7.2 6v4.2h1.6V6zM7.2 11.3v1.6h1.6v-1.6z",
    "you": "M8 1.2 14.8 8 8 14.8 1.2 8z",
    "test": f"{_RING}M8 3.1v9.8a4.9 4.9 0 0 0 0-9.8Z",
    "queued": f"{_RING}{_HOLE}",
    "ok": f"{_DISC}M11.7 5.7 7.2 10.6 4.4 7.9l-1 1.1 3.9 3.8 5.5-6z",
    "check": "M6.4 12.8 1.8 8.3l1.3-1.4 3.2 3.2 6.5-7.2 1.4 1.3z",
    "bad": "M4.8 1h6.4L15 4.8v6.4L11.2 15H4.8L1 11.2V4.8ZM5.9 4.8 4.8 5.9 6.9 8l-2.1 2.1 1.1 1.1"
    "L8 9.1l2.1 2.1 1.1-1.1L9.1 8l2.1-2.1-1.1-1.1L8 6.9z",
    "held": "M3.5 2.2h3v11.6h-3zM9.5 2.2h3v11.6h-3z",
    "note": f"{_RING}M7.1 4.3h1.8v1.8H7.1zM7.1 7.3h1.8v4.4H7.1z",
    "shield": "M8 1l6 2.2v4.3c0 3.5-2.3 6-6 7.5-3.7-1.5-6-4-6-7.5V3.2ZM8 2.8v10.3c2.6-1.3 4.2-3 4.2-5.6V4.4z",
    "pause": "M4 2.7h2.6v10.6H4zM9.4 2.7H12v10.6H9.4z",
    "play": "M4 2.2 13 8l-9 5.8z",
    "copy": "M5.5 1.2h8.3v9.6h-2.7v4H2.2V5.2h3.3ZM7 2.7v2.5h4.1v4.1h1.2V2.7ZM3.7 6.7v6.6h5.9V6.7z",
    "chev": "M5.3 2.5 10.8 8l-5.5 5.5-1.2-1.2L8.4 8 4.1 3.7z",
    "theme": f"{_RING}M8 3v10A5 5 0 0 1 8 3Z",
    "clash": "M1.2 3.2h4L8 6.9l2.8-3.7h4v1.6h-3.2L9 8l2.6 3.2h3.2v1.6h-4L8 9.1l-2.8 3.7h-4v-1.6h3.2L7 8 "
    "4.4 4.8H1.2z",
    "hand": "M10.4 1.6 14.8 5l-4.4 3.4V6H4.2V4h6.2zM5.6 7.6V10h6.2v2H5.6v2.4L1.2 11z",
    "talk": "M1.6 2.6h12.8v8.8H8.2l-3.6 3v-3h-3ZM3.1 4.1v5.8h3v1.3l1.5-1.3h5.3V4.1z",
    "blocked": f"{_RING}M8 3.1c1.1 0 2.1.4 2.9 1L4.1 10.9A4.9 4.9 0 0 1 8 3.1ZM8 12.9c-1.1 0-2.1-.4-2.9-1"
    "l6.8-6.8A4.9 4.9 0 0 1 8 12.9Z",
    "land": "M7.1 1.6h1.8v6.2l2.3-2.3 1.3 1.4L8 11.5 3.5 6.9l1.3-1.4 2.3 2.3zM2.2 12.9h11.6v1.6H2.2z",
    "drop": f"{_RING}{_HOLE}M4.9 7.2h6.2v1.6H4.9z",
    "eject": "M8 2.2 14.3 9.4H1.7zM1.7 11.4h12.6v2.2H1.7z",
    "pr": "M3.5 1.6a2 2 0 0 1 .8 3.8v5.2a2 2 0 1 1-1.6 0V5.4a2 2 0 0 1 .8-3.8ZM9.6 1.3v1.9h1.2a2 2 0 0 1 2 2"
    "v5.4a2 2 0 1 1-1.6 0V5.2a.4.4 0 0 0-.4-.4H9.6v1.9L6.7 4z",
    "menu": "M1.6 3h12.8v1.7H1.6zM1.6 7.2h12.8v1.6H1.6zM1.6 11.3h12.8V13H1.6z",
    "commit": "M8 4.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7Z",
    "search": "M6.8 1.8a5 5 0 0 1 4 8l3.5 3.5-1.1 1.1-3.5-3.5a5 5 0 1 1-2.9-9.1Z"
    "M6.8 3.3a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7Z",
}


def icon(name: str) -> Markup:
    """Return a shape as a picture that is not read out: a word stands beside it."""
    address = f'<svg class="i i-{name}" aria-hidden="true"><use href="#i-{name}"/></svg>'
    return Markup(address)  # noqa: S704 - the names are ours


def sprite() -> Markup:
    """Return all shapes, to be put into a page once."""
    symbols = "".join(
        f'<symbol id="i-{name}" viewBox="0 0 16 16"><path fill-rule="evenodd" d="{path}"/></symbol>'
        for name, path in SHAPES.items()
    )
    patterns = (
        '<pattern id="p-wait" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)">'
        '<rect width="1.5" height="6" class="p-wait"/></pattern>'
        '<pattern id="p-stuck" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(-45)">'
        '<rect width="2" height="5" class="p-stuck"/></pattern>'
    )
    start = '<svg width="0" height="0" aria-hidden="true" class="sr"><defs>'
    return Markup(f"{start}{patterns}{symbols}</defs></svg>")  # noqa: S704 - only our own shapes
