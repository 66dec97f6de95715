"""Git, run as a person runs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path | str, *arguments: str, is_checked: bool = True, stdin: bytes | None = None) -> str:
    """Run git and return its output unchanged; it must succeed, unless `is_checked` is false."""
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": "true"},
    )
    assert not is_checked or not done.returncode, (arguments, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "surrogateescape")


def git_line(folder: Path | str, *arguments: str) -> str:
    """Run git, which must succeed, and return its output without white space at both ends."""
    return git(folder, *arguments).strip()


def commit_text(folder: Path | str, name: str, text: str | bytes) -> None:
    """Write one file and commit only it, without hooks, as for a branch that a colleague has changed."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    git(folder, "add", "--", name)
    git(folder, "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", f"Write {name}", "--", name)
