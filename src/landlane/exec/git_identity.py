"""Git's settings of a person, written out for a private home: who commits, and how, is the same inside.

In a clone that one agent alone can write, a small hook puts that agent's name under every commit.

Written out and not included: there `~` means the private home, and a file may lie where nothing is shown.
"""

from __future__ import annotations

import os
import shlex

from landlane.git.create_checkout import setting_line
from landlane.git.run import run_in
from landlane.git.trailers import AGENT, SESSION, TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.sessions.model import Session

_SIGNING = "prepare-commit-msg"
_SIGNED = "# Written by Landlane: says who makes the commits of this clone."
_LEADING_ELSEWHERE = ("include.", "includeif.", "credential.")


def write_git_settings(home: Checkout, folder: str) -> str:
    """Write the settings that hold for this user everywhere into a folder; tells the file's path."""
    path = os.path.join(folder, ".gitconfig")
    found = run_in(home, "config", "--global", "--includes", "--list", "-z")
    lines: list[str] = []
    for item in found.stdout.split("\0") if not found.exit_code else ():
        key, is_set, text = item.partition("\n")
        if "." in key and not key.startswith(_LEADING_ELSEWHERE):
            lines.append(setting_line(key, text if is_set else "true"))
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)
    os.chmod(path, 0o600)
    return path


def sign_commits(folder: str, session: Session, task: str) -> None:
    """Let every commit in a clone say which session makes it; a hook of the user's own is left alone.

    Whoever is in the sandbox could take this away, and its commits would be nobody's.
    """
    hooks = os.path.join(folder, ".git", "hooks")
    path = os.path.join(hooks, _SIGNING)
    if os.path.islink(hooks) or os.path.islink(path):
        return  # it may lead anywhere
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if _SIGNED not in file.read(1000):
                return
    except FileNotFoundError:
        os.makedirs(hooks, exist_ok=True)
    except OSError:
        return
    facts = {AGENT: session.agent, SESSION: session.id, TASK: task}
    words = " ".join(f"--trailer {shlex.quote(f'{name}={text}')}" for name, text in facts.items() if text)
    lines = ("#!/bin/sh", _SIGNED, f'git interpret-trailers --in-place --if-exists replace {words} "$1"', "")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    os.chmod(path, 0o700)
