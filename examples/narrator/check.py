"""Proves what the README says: the sound, the manifest, the budget of the card, the worker that hung."""

from __future__ import annotations

import hashlib
import json
import subprocess
import wave
from pathlib import Path

CAPACITY = 24
RATE = 22_050


def sound_of(path: str) -> tuple[tuple[int, int, int], bytes]:
    """The form of a file, and what sounds in it."""
    with wave.open(path, "rb") as file:
        form = file.getnchannels(), file.getsampwidth(), file.getframerate()
        return form, file.readframes(file.getnframes())


manifest = json.loads(Path("out/manifest.json").read_text(encoding="utf-8"))
entries = json.loads(subprocess.check_output(["landlane", "log", "--json"]))["entries"]

# The manifest has the full story, each sentence once and in order.
story = " ".join(Path("story.txt").read_text(encoding="utf-8").split())
assert list(manifest) == [f"{number:03}" for number in range(1, len(manifest) + 1)], list(manifest)
assert " ".join(line["text"] for line in manifest.values()) == story
files = [line["file"] for line in manifest.values()]
assert sorted(files) == sorted(str(path) for path in Path("out/segments").iterdir()), files

# The joined sound is the segments one behind the other: none twice, none missing, nothing in between.
form, joined = sound_of("out/story.wav")
parts = []
for line in manifest.values():
    part_form, part = sound_of(line["file"])
    assert part_form == form == (1, 2, RATE), line
    assert len(part) == line["frames"] * 2, line
    assert hashlib.sha256(Path(line["file"]).read_bytes()).hexdigest() == line["sha256"], line
    parts.append(part)
assert joined == b"".join(parts)
assert len(set(parts)) == len(parts)
total = sum(line["frames"] for line in manifest.values())
print(f"{len(parts)} segments, {total / RATE:.1f} seconds at {RATE} Hz, none twice, none missing")

# Never more of the card in use than there is, by the journal.
used = most = 0
for entry in entries:
    if entry["kind"] in ("slot.taken", "slot.freed"):
        used += entry["data"]["amount"] * (1 if entry["kind"] == "slot.taken" else -1)
        most = max(most, used)
assert used == 0, used
assert 0 < most <= CAPACITY, most
print(f"the card: at most {most} of {CAPACITY} GB in use, 0 at the end")

# The worker that hung was ended for its silence, and another one did its segment.
hung = [
    entry["data"] for entry in entries if entry["kind"] == "task.failed" and entry["data"]["task"] == "T3"
]
assert hung, "no worker hung"
assert hung[0]["code"] == "silent", hung
shown = json.loads(subprocess.check_output(["landlane", "task", "show", "T3", "--json"]))["task"]
assert shown["state"] == "done", shown
assert shown["attempt"] > 1, shown
print(f"segment 003: {hung[0]['code']} in attempt {hung[0]['attempt']}, done by another worker")

assert not subprocess.check_output(["git", "status", "--porcelain"])
print("git: nothing but the text and the programs")
