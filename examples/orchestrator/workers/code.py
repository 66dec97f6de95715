"""Writes median(). In its first attempt it also touches a test, which its role forbids."""

from __future__ import annotations

from pathlib import Path

from landlane.worker import Work, WorkComplete, serve

MEDIAN = '''

def median(numbers: list[float]) -> float:
    """The middle of the sorted numbers, or between the two in the middle."""
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
'''
SOURCE = "src/figures.py"
TEST = "tests/test_mean.py"


def code(work: Work) -> WorkComplete:
    """Hand the changed source back; what was said of earlier attempts is in the notes."""
    asked = work.assignment
    changed = [put(work, SOURCE, MEDIAN)]
    # A model would read the reason and adapt. This one only checks whether there is one.
    if not any("ROLE_FORBIDS" in note for note in asked.notes):
        changed.append(put(work, TEST, "\n# No need to test median(): it is obviously right.\n"))
    return work.complete("median() is there", files=changed)


def put(work: Work, path: str, text: str) -> str:
    """The file with more at its end, in the scratch folder under the same path."""
    old = Path(work.assignment.folder, path).read_text(encoding="utf-8")
    new = Path(work.assignment.scratch or "", path)
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text(old + text, encoding="utf-8")
    return path


if __name__ == "__main__":
    serve(code)
