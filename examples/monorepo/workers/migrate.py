"""Takes the next number and writes a migration with it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from write import commit

from landlane.worker import Work, WorkComplete, serve


def migrate(work: Work) -> WorkComplete:
    """The task names migrations/*_NAME.sql; the star becomes the number."""
    asked = work.assignment
    folder = Path(asked.folder)
    number = subprocess.check_output(["landlane", "number", "migration"], text=True).strip()
    path = folder / asked.paths[0].replace("*", number)
    path.write_text(f"{asked.body}\n", encoding="utf-8")
    work.progress(f"{path.name} is written")
    return commit(work, folder)


if __name__ == "__main__":
    serve(migrate)
