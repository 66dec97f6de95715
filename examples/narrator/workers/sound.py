"""Sound as WAV files: made with espeak-ng where it is installed, else as a tone; and measured.

As a program it proves a segment: `python workers/sound.py FILE` fails unless FILE is sound.
"""

from __future__ import annotations

import array
import hashlib
import math
import shutil
import subprocess
import sys
import wave
from pathlib import Path

RATE = 22_050  # espeak-ng speaks at this rate, too
SECONDS_PER_LETTER = 0.06


def speak(text: str, path: Path) -> None:
    """Write the text as sound."""
    program = shutil.which("espeak-ng")
    if program:
        subprocess.run([program, "-w", str(path), "--stdin"], input=text.encode(), check=True)
        return
    # Without a voice there is a tone instead: as long as the text, at a pitch of its own, 16 bits, mono.
    pitch = 200 + int(hashlib.sha256(text.encode()).hexdigest(), 16) % 400
    count = round(len(text) * SECONDS_PER_LETTER * RATE)
    samples = (round(9000 * math.sin(2 * math.pi * pitch * at / RATE)) for at in range(count))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(array.array("h", samples).tobytes())


def measure(path: Path) -> dict[str, object]:
    """Return the duration of a file, its rate, and its hash."""
    with wave.open(str(path), "rb") as file:
        rate, frames = file.getframerate(), file.getnframes()
    return {"rate": rate, "frames": frames, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


if __name__ == "__main__":
    found = measure(Path(sys.argv[1]))
    if found["rate"] != RATE or not found["frames"]:
        sys.exit(f"{sys.argv[1]} is not a sound file: {found}")
