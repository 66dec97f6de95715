"""Writes tests for median() and commits them on the branch of its task."""

from __future__ import annotations

import subprocess
from pathlib import Path

from landlane.worker import Failure, Work, WorkComplete, serve

TESTS = '''"""What median() comes to."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from figures import median


class TestMedian(unittest.TestCase):
    def test_of_an_odd_count_it_is_the_one_in_the_middle(self) -> None:
        self.assertEqual(median([9, 1, 5]), 5)

    def test_of_an_even_count_it_is_between_the_two_in_the_middle(self) -> None:
        self.assertEqual(median([9, 1, 5, 3]), 4)
'''


def test(work: Work) -> WorkComplete:
    """Write the tests, see them pass, commit."""
    folder = Path(work.assignment.folder)
    (folder / "tests" / "test_median.py").write_text(TESTS, encoding="utf-8")
    work.progress("running the tests", 0.5)
    ran = subprocess.run(["python", "-m", "unittest", "discover", "-s", "tests"], cwd=folder, check=False)
    if ran.returncode:
        raise Failure("the tests do not pass")
    git(folder, "add", "tests")
    git(folder, "commit", "--quiet", "-m", work.assignment.title)
    return work.complete("two tests for median()", commit=git(folder, "rev-parse", "HEAD"))


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    serve(test)
