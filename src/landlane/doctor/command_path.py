"""Check that agents can run `landlane`: not every shell has its folder on PATH."""

from __future__ import annotations

from landlane.doctor.finding import Finding
from landlane.processes.child import Child
from landlane.processes.own_command import NAME, own_command

_LIMIT_SECONDS = 10.0


def look_at_reach() -> Finding:
    """Check that a login shell, which some clients use, finds the command; else agents get its path."""
    try:
        ended = Child(["/bin/sh", "-lc", f"command -v {NAME}"], cwd="/").wait(_LIMIT_SECONDS)
    except OSError as error:
        return Finding(is_ok=True, is_enforced=False, found=f"no shell could be asked: {error}")
    found = ended.stdout.strip()
    if found and not ended.has_timed_out:
        return Finding(is_ok=True, found=f"a login shell finds it: {found.splitlines()[-1]}")
    path = own_command()
    consequence = f"agents are told to call it as {path}" if path else "agents that type it cannot reach it"
    hint = f"link it to where every shell looks: `sudo ln -s {path} /usr/local/bin/`" if path else ""
    return Finding(
        is_ok=True,
        is_enforced=False,
        found=f"a login shell does not find `landlane`; {consequence}",
        hint=hint,
    )
