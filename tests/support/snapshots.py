"""Compare text with a file beside the test; UPDATE_SNAPSHOTS=1 writes the file instead."""

from __future__ import annotations

import os
from pathlib import Path

_FOLDER = Path(__file__).parents[1]


def check_snapshot(path: str, text: str) -> None:
    """Fail unless the text is the same as in the file `tests/<path>`."""
    file = _FOLDER / path
    if os.environ.get("UPDATE_SNAPSHOTS"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    expected = file.read_text(encoding="utf-8") if file.exists() else ""
    assert text + "\n" == expected, f"tests/{path} differs; UPDATE_SNAPSHOTS=1 writes it"
