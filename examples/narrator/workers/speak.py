"""Speaks one segment and enters it in the manifest; the first attempt at segment 003 hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from sound import measure, speak

from landlane.worker import Work, WorkComplete, serve


def narrate(work: Work) -> WorkComplete:
    """Write the sound to the scratch folder under the path of the output, and hand it back."""
    asked = work.assignment
    output = asked.paths[0]
    name = Path(output).stem
    if name == "003" and asked.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)  # as a driver that waits for a card that has gone
    path = Path(asked.scratch or "", output)
    path.parent.mkdir(parents=True, exist_ok=True)
    work.progress(f"speaking {name}")
    speak(asked.body or "", path)
    # By segment: a repeated segment overwrites only its own line.
    line = {name: {"file": output, "text": asked.body, **measure(path)}}
    subprocess.run(["landlane", "state", "append", "manifest", json.dumps(line)], check=True)
    return work.complete(f"segment {name} is spoken", files=[output])


if __name__ == "__main__":
    serve(narrate)
