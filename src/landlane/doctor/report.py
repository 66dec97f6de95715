"""Write a report for a bug report: versions and every check, without secrets."""

from __future__ import annotations

import os
import sys

from landlane.errors import Malformed
from landlane.git.run import run_git
from landlane.platform.system import system_name
from landlane.redact import redact
from landlane.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.doctor.check import Check


def report_text(checks: Sequence[Check]) -> str:
    """Return the report; secrets are removed and the home folder is written as `~`."""
    lines = [
        f"landlane {__version__}",
        f"python   {sys.version.split()[0]}",
        f"system   {system_name()}",
        f"git      {run_git('--version', cwd='/').stdout.strip()}",
        "",
    ]
    for check in checks:
        state = "ok" if check.is_ok else "PROBLEM"
        guard = "enforced" if check.is_enforced else "not enforced"
        lines.append(f"{state:<7}  {guard:<12}  {check.name}: {check.found}")
        lines += [f"         hint: {check.hint}"] if check.hint else []
    home = os.path.expanduser("~")
    text = redact("\n".join(lines)) + "\n"
    return text.replace(f"{home}/", "~/") if home != "/" else text


def write_report(path: str, text: str) -> None:
    """Write the report to a new file.

    Raises:
        Malformed: the file exists or cannot be written.
    """
    try:
        with open(path, "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        raise Malformed(
            f"{path} already exists", code="FILE_EXISTS", hint="give the name of a new file"
        ) from error
    except OSError as error:
        raise Malformed(
            f"cannot write {path}: {error.strerror}", code="UNWRITABLE_FILE", hint="give another file"
        ) from error
