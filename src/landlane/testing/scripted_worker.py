"""A worker without a model that follows a script in its task's description, for tests and benchmarks.

The description has a line `script: {…}`, or one per attempt, such as `script 2: {…}` for the second. All keys
are optional and are done in this order:

    seconds   how long it works
    append    path → text to append
    write     path → new content
    run       a shell command in the checkout
    cost      US dollars to report as used
    hang      stop without a message
    die       the signal that ends it
    limit     end as rate-limited, to be retried after so many seconds
    fail      end with this reason
    verdict   `approve` or `reject`, for a reviewer, with `findings`

Without changes it reports that there was nothing to change. In a role that may commit it commits; in others
it returns a patch.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.worker import Failure, Usage, serve

if TYPE_CHECKING:
    from landlane.protocol.worker.messages import WorkAssignment, WorkComplete
    from landlane.worker import Work


def _script_of(assignment: WorkAssignment) -> dict[str, Any]:
    """Return the script of this attempt: its own line takes precedence over the general one."""
    found: dict[str, Any] = {}
    for line in (assignment.body or "").splitlines():
        head, colon, rest = line.partition(":")
        words = head.split()
        if not colon or not words or words[0] != "script":
            continue
        if len(words) == 1:
            found = found or json.loads(rest)
        elif words[1] == str(assignment.attempt):
            return json.loads(rest)
    return found


def do(work: Work) -> WorkComplete:
    """Run the script."""
    assignment = work.assignment
    script = _script_of(assignment)
    work.progress(f"begun: {assignment.title}")
    time.sleep(float(script.get("seconds", 0)))
    changed = _change(assignment, script)
    if "cost" in script:
        work.usage = Usage(input_tokens=1000, output_tokens=100, cost_usd=float(script["cost"]))
    if script.get("hang"):
        os.kill(os.getpid(), signal.SIGSTOP)
    if "die" in script:
        os.kill(os.getpid(), int(script["die"]))
    if "limit" in script:
        raise Failure("429: slow down", code="rate_limited", retry_after_seconds=float(script["limit"]))
    if "fail" in script:
        raise Failure(str(script["fail"]))
    if "verdict" in script:
        found = script.get("findings", [])
        return work.complete("judged", verdict=script["verdict"], findings=found)  # type: ignore[call-arg]
    return _complete(work, changed)


def _change(assignment: WorkAssignment, script: dict[str, Any]) -> list[str]:
    """Change files in the checkout; return their paths."""
    folder = Path(assignment.folder)
    changed: list[str] = []
    for key, mode in (("append", "a"), ("write", "w")):
        for name, text in script.get(key, {}).items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open(mode, encoding="utf-8") as file:
                file.write(text)
            changed.append(name)
    if "run" in script:
        subprocess.run(["/bin/sh", "-c", script["run"]], cwd=folder, check=True, stdout=2)
        changed += _git(folder, "status", "--porcelain", "-uall", "--no-renames").split("\n")
    return [name[3:] if name[:2] in (" M", "??", "A ", " D") else name for name in changed if name]


def _complete(work: Work, changed: list[str]) -> WorkComplete:
    assignment = work.assignment
    folder = Path(assignment.folder)
    if not changed:
        return work.complete("there was nothing to change")
    _git(folder, "add", "--all")
    if assignment.may_commit:
        _git(folder, "commit", "--quiet", "-m", assignment.title)
        return work.complete(f"changed {', '.join(changed)}", commit=_git(folder, "rev-parse", "HEAD"))
    patch = _git(folder, "diff", "--cached", "--binary", "--no-renames", str(assignment.base))
    return work.complete(f"changed {', '.join(changed)}", patch=patch + "\n")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.rstrip("\n")


if __name__ == "__main__":
    serve(do)
