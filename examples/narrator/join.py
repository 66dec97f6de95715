"""Joins the segments in the order of the manifest, refusing any that is not as it was written down."""

from __future__ import annotations

import hashlib
import json
import subprocess
import wave
from pathlib import Path

answer = subprocess.run(
    ["landlane", "state", "get", "manifest", "--json"], check=True, stdout=subprocess.PIPE
)
manifest = json.loads(answer.stdout)["value"]
with wave.open("out/story.wav", "wb") as joined:
    for at, name in enumerate(sorted(manifest)):
        line = manifest[name]
        if hashlib.sha256(Path(line["file"]).read_bytes()).hexdigest() != line["sha256"]:
            raise SystemExit(f"{line['file']} is not what the manifest says")
        with wave.open(line["file"], "rb") as segment:
            if not at:
                joined.setparams(segment.getparams())
            joined.writeframes(segment.readframes(segment.getnframes()))
Path("out/manifest.json").write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="utf-8")
print(f"joined {len(manifest)} segments")
