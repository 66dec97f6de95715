"""Proves what the README says, from the reviews as they are kept and from git."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def asked(*words: str) -> dict[str, Any]:
    """What Landlane answers."""
    return json.loads(subprocess.check_output(["landlane", *words, "--json"]))


first, second = (asked("review", "show", name)["review"] for name in ("V1", "V2"))

# All three read the same commit, side by side: each says which, and none began after another had answered.
for review in (first, second):
    head = review["head"][:12]
    assert [one["summary"].split()[-1] for one in review["verdicts"]] == [head] * 3, review
    assert sorted(asked("state", "get", f"board/{head}")["value"]) == ["security", "speed", "style"]
print("both rounds: three verdicts on one commit")

# What two of them found is one finding with both names; what they disagree on is named.
(fault,) = [one for one in first["findings"] if one["severity"] == "blocker"]
assert [name.partition("-")[0] for name in fault["by"]] == ["security", "speed"], fault
assert {one["line"] for one in first["contradictions"]} == {None, fault["line"]}, first
print(f"round 1: {len(first['contradictions'])} contradictions, and one fault that two have found")

# The named decider settled it, and nothing else landed than what the board approved in the end.
assert first["decision"]["reviewer"].startswith("chief-"), first
assert (first["decision"]["verdict"], first["state"], second["state"]) == ("reject", "rejected", "approved")
subprocess.check_call(["git", "merge-base", "--is-ancestor", second["head"], "main"])
assert subprocess.call(["git", "merge-base", "--is-ancestor", first["head"], "main"]) == 1
print("the chief rejected; the second version was approved and has landed")
