"""The lines of a check's output that show what failed."""

from __future__ import annotations

import pytest

from landlane.landing.failing_lines import failing_lines

pytestmark = pytest.mark.unit

PYTEST = """\
============================= test session starts ==============================
    def test_empty():
>       find({})["name"]
E       KeyError: 'name'

tests/test_search.py:4: KeyError
=========================== short test summary info ============================
FAILED tests/test_search.py::test_empty - KeyError: 'name'
========================= 1 failed, 212 passed in 38.20s =========================
"""
UNITTEST = """\
FAIL: test_sum (tests.test_app.Sums)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "tests/test_app.py", line 7, in test_sum
AssertionError: 3 != 4

----------------------------------------------------------------------
FAILED (failures=1)
make: *** [Makefile:2: test] Error 1
"""
CARGO = """\
test sums ... FAILED
thread 'sums' panicked at src/lib.rs:4:5:
test result: FAILED. 0 passed; 1 failed
"""
OUTPUTS = {
    "pytest": (
        PYTEST,
        ["tests/test_search.py::test_empty", "E       KeyError: 'name'", "1 failed, 212 passed in 38.20s"],
    ),
    "unittest": (
        UNITTEST,
        ["test_sum (tests.test_app.Sums)", "AssertionError: 3 != 4", "FAILED (failures=1)"],
    ),
    "go": ("=== RUN   TestSum\n--- FAIL: TestSum (0.00s)\nFAIL\n", ["TestSum"]),
    "cargo": (
        CARGO,
        ["sums", "thread 'sums' panicked at src/lib.rs:4:5:", "test result: FAILED. 0 passed; 1 failed"],
    ),
    "compiler": (
        "cc -c a.c\na.c:3:5: error: expected ';'\nmake: *** Error\n",
        ["a.c:3:5: error: expected ';'"],
    ),
    "exception": (
        "Traceback (most recent call last):\n  File \"a.py\"\nModuleNotFoundError: No module named 'httpx'\n",
        ["ModuleNotFoundError: No module named 'httpx'"],
    ),
    "unknown": ("1\n2\n\n3\n4\n5\n6\n", ["2", "3", "4", "5", "6"]),
    "colours": ("\x1b[31mno\x1b[0m\n", ["no"]),
    "nothing": ("", []),
}


@pytest.mark.parametrize("runner", OUTPUTS)
def test_the_runner_shows_what_failed(runner: str) -> None:
    output, expected = OUTPUTS[runner]
    assert failing_lines(output) == expected


def test_many_failures_are_cut() -> None:
    output = "".join(f"E   number {number}\nFAILED a.py::test_{number} - x\n" for number in range(50))
    lines = failing_lines(output)
    assert len(lines) == 6
    assert lines[:3] == ["a.py::test_0", "a.py::test_1", "a.py::test_2"]
    assert max(map(len, failing_lines("x" * 1000))) == 200
