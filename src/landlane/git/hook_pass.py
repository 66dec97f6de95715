"""The folder of our git hooks, and the secret by which they recognise our own git."""

from __future__ import annotations

import os
import stat

FOLDER = "githooks"
PASS = "LANDLANE_PASS"
PASS_FILE = "git-pass"
HOME_POINTER = "landlane-home"


def hooks_folder(common_dir: str) -> str:
    """Where our scripts lie."""
    return os.path.join(common_dir, "landlane", FOLDER)


def pass_environment(place: str) -> dict[str, str]:
    """What our own git shows to our hooks in a git directory or a folder; nothing where there are none.

    Read from files alone: it is asked before every git.
    """
    git_dir = _git_dir_of(place)
    if not git_dir:
        return {}
    common = _line(os.path.join(git_dir, "commondir"))
    common_dir = os.path.join(git_dir, common) if common else git_dir
    home = _line(os.path.join(common_dir, HOME_POINTER)) or common_dir
    found = read_pass(os.path.join(home, "landlane", PASS_FILE))
    return {PASS: found} if found else {}


def _git_dir_of(place: str) -> str:
    if os.path.lexists(os.path.join(place, "HEAD")) and os.path.lexists(os.path.join(place, "objects")):
        return place
    if os.path.lexists(os.path.join(place, "commondir")):
        return place
    folder = os.path.abspath(place)
    while True:
        marker = os.path.join(folder, ".git")
        try:
            mode = os.lstat(marker).st_mode
        except OSError:
            if folder == os.path.dirname(folder):
                return ""
            folder = os.path.dirname(folder)
            continue
        if not stat.S_ISREG(mode):
            return marker
        return os.path.join(folder, _line(marker).removeprefix("gitdir: "))


def read_pass(path: str) -> str:
    """Read the secret that our own git shows to our hooks; empty when there is none."""
    return _line(path)


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().rstrip("\n")
    except (OSError, ValueError):
        return ""
