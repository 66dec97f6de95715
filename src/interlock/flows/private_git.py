"""Git's settings of a person, written out for a private home: who commits, and how, is the same inside.

Written out and not included: there `~` means the private home, and a file may lie where nothing is shown.
"""

from __future__ import annotations

import os

from interlock.git.checkouts import setting_line
from interlock.git.run import run_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.git.layout import Checkout

_LEADING_ELSEWHERE = ("include.", "includeif.", "credential.")


def write_git_settings(home: Checkout, folder: str) -> str:
    """Write the settings that hold for this user everywhere into a folder; tells the file's path."""
    path = os.path.join(folder, ".gitconfig")
    found = run_in(home, "config", "--global", "--includes", "--list", "-z")
    lines: list[str] = []
    for item in found.text.split("\0") if not found.exit_code else ():
        key, is_set, text = item.partition("\n")
        if "." in key and not key.startswith(_LEADING_ELSEWHERE):
            lines.append(setting_line(key, text if is_set else "true"))
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)
    os.chmod(path, 0o600)
    return path
