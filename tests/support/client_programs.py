"""A PATH without coding clients, and fake clients to put there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = ("make", "git", "sh", "cat", "env", "grep", "sleep", "mktemp", "rm", "dirname", "uname")


def make_minimal_path(folder: Path) -> Path:
    """Make a folder with the programs that Landlane needs, and no coding client."""
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def write_fake_client(folder: Path, name: str, version: str) -> Path:
    """Write a program that prints a version, in place of a client, and return its path."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "{version}"\n', encoding="utf-8")
    path.chmod(0o755)
    return path
