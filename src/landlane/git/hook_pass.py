"""The folder of our git hooks, and the secret by which they recognise our own git."""

from __future__ import annotations

import os

from landlane.files import read_first_line
from landlane.git.discovery import HOME_POINTER, git_dir_of, is_git_dir

FOLDER = "landlane-hooks"  # beside the state, so that the user's hooks still run if that is deleted
PASS = "LANDLANE_PASS"
PASS_FILE = "git-pass"


def hooks_folder(common_dir: str) -> str:
    """Return the folder of our hook scripts."""
    return os.path.join(common_dir, FOLDER)


def pass_environment(folder: str) -> dict[str, str]:
    """Return the variable by which our hooks recognise our own git, run in a git directory or a checkout.

    It is read from files, because it is needed before every git command.
    """
    git_dir = _find_git_dir(folder)
    if not git_dir:
        return {}
    common = read_first_line(os.path.join(git_dir, "commondir"))
    common_dir = os.path.join(git_dir, common) if common else git_dir
    home = read_first_line(os.path.join(common_dir, HOME_POINTER)) or common_dir
    secret = read_first_line(os.path.join(home, "landlane", PASS_FILE))
    return {PASS: secret} if secret else {}


def _find_git_dir(folder: str) -> str:
    if os.path.lexists(os.path.join(folder, "commondir")) or is_git_dir(folder):
        return folder
    folder = os.path.abspath(folder)
    while not (git_dir := git_dir_of(os.path.join(folder, ".git"))):
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)
    return git_dir
