#!/usr/bin/env python3
"""A worker that removes blanks at the ends of lines, and hands the changed files back in its scratch.

It never writes in the checkout, so it can be started in a role that only reads.
"""

from __future__ import annotations

from pathlib import Path

from landlane.worker import Failure, Work, WorkComplete, serve


def tidy(work: Work) -> WorkComplete:
    """Copy each file of the task that needs it to scratch, tidied."""
    asked = work.assignment
    folder, scratch = Path(asked.folder), Path(asked.scratch or "")
    if not asked.scratch:
        raise Failure("there is no scratch to write in", code="blocked", retry=False)
    found = sorted({path for pattern in asked.paths for path in folder.glob(pattern) if path.is_file()})
    changed: list[str] = []
    for number, path in enumerate(found, start=1):
        before = path.read_text(encoding="utf-8")
        after = "".join(f"{line.rstrip()}\n" for line in before.splitlines())
        if after != before:
            name = path.relative_to(folder).as_posix()
            target = scratch / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(after, encoding="utf-8")
            changed.append(name)
        work.progress(f"looked at {path.name}", number / len(found))
    if not changed:
        return work.complete("all is tidy")
    return work.complete(f"tidied {len(changed)} of {len(found)} files", files=changed)


if __name__ == "__main__":
    serve(tidy)
