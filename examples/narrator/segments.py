"""Splits a text into sentences and writes them down as a plan: one task for each, in order."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

text = " ".join(Path(sys.argv[1]).read_text(encoding="utf-8").split())
print('title = "Narrate the story"')
for number, sentence in enumerate(re.split(r"(?<=[.!?]) ", text), start=1):
    output = f"out/segments/{number:03}.wav"
    # A text in JSON is one in TOML, too, as long as it is plain ASCII.
    print(f"""
[[task]]
name = "{number:03}"
title = "Speak segment {number:03}"
body = {json.dumps(sentence)}
kind = "output"
output = "{output}"
paths = ["{output}"]
check = "python workers/sound.py {output}"
attempts = 5""")
