"""Whether an agent that types `landlane` reaches it: not every shell searches where we are installed."""

from __future__ import annotations

import os
import sys

from landlane.doctor.finding import Finding

_NAME = "landlane"
# Where every shell looks, a login shell too, which forgets the search path of the terminal it was started in.
_EVERYWHERE = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_LIMIT_SECONDS = 10.0


def own_command() -> str:
    """The full path of our command, beside the interpreter that runs us; empty where it is not there."""
    path = os.path.join(os.path.dirname(sys.executable), _NAME)
    return path if os.access(path, os.X_OK) else ""


def hard_to_reach() -> str:
    """The full path of our command, if some shells do not find it by its name; else empty."""
    if any(os.access(os.path.join(folder, _NAME), os.X_OK) for folder in _EVERYWHERE):
        return ""
    return own_command()


def look_at_reach() -> Finding:
    """Whether a login shell, as some clients use, finds our command. Agents are told its full path if not."""
    from landlane.processes.child import Child

    try:
        ended = Child(["/bin/sh", "-lc", f"command -v {_NAME}"], cwd="/").wait(_LIMIT_SECONDS)
    except OSError as error:
        return Finding(is_ok=True, is_enforced=False, found=f"no shell could be asked: {error}")
    found = ended.output.strip()
    if found and not ended.is_late:
        return Finding(is_ok=True, found=f"a login shell finds it: {found.splitlines()[-1]}")
    path = own_command()
    told = f"agents are told to call it as {path}" if path else "agents that type it cannot reach it"
    hint = f"link it to where every shell looks: `sudo ln -s {path} /usr/local/bin/`" if path else ""
    return Finding(
        is_ok=True, is_enforced=False, found=f"a login shell does not find `landlane`; {told}", hint=hint
    )
