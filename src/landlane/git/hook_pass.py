"""The folder of our git hooks, and the secret by which they recognise our own git."""

from __future__ import annotations

import os
import stat

from landlane.files import read_first_line

FOLDER = "githooks"
PASS = "LANDLANE_PASS"
PASS_FILE = "git-pass"
HOME_POINTER = "landlane-home"


def hooks_folder(common_dir: str) -> str:
    """Return the folder of our hook scripts."""
    return os.path.join(common_dir, "landlane", FOLDER)


def pass_environment(folder: str) -> dict[str, str]:
    """Return the variable that our own git shows to our hooks, in a git directory or a folder of a checkout.

    It is read from files alone, because it is needed before every git.
    """
    git_dir = _find_git_dir(folder)
    if not git_dir:
        return {}
    common = read_first_line(os.path.join(git_dir, "commondir"))
    common_dir = os.path.join(git_dir, common) if common else git_dir
    home = read_first_line(os.path.join(common_dir, HOME_POINTER)) or common_dir
    secret = read_pass(os.path.join(home, "landlane", PASS_FILE))
    return {PASS: secret} if secret else {}


def _find_git_dir(folder: str) -> str:
    if os.path.lexists(os.path.join(folder, "commondir")):
        return folder
    if os.path.lexists(os.path.join(folder, "HEAD")) and os.path.lexists(os.path.join(folder, "objects")):
        return folder
    folder = os.path.abspath(folder)
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
        return os.path.join(folder, read_first_line(marker).removeprefix("gitdir: "))


def read_pass(path: str) -> str:
    """Return the secret that our own git shows to our hooks; empty when there is none."""
    return read_first_line(path)
