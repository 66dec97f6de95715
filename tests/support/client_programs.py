"""A search path on which only the clients lie that a test puts there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = ("git", "sh", "cat", "env", "grep", "sleep", "mktemp", "rm", "dirname", "uname")


def make_bare_path(folder: Path) -> Path:
    """A folder with what the product itself needs, and no coding client."""
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def put_client(folder: Path, name: str, version: str) -> Path:
    """A program that says only its version, where a client would be found."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{version}"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
