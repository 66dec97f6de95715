"""Find the lines in the output of a check that show what failed."""

from __future__ import annotations

import re

from landlane.text import printable

_MAX_LINES = 6
_MAX_TESTS = 3  # names of failing tests
_LAST = 5  # lines at the end, where no failure is recognized
_MAX_CHARS = 200
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# Names of failing tests, as pytest, unittest, go, cargo, jest and TAP print them.
_TEST = re.compile(
    r"^(?:FAILED|ERROR) (?P<pytest>\S+::\S+)"
    r"|^(?:FAIL|ERROR): (?P<unittest>\S+ \(\S+\))"
    r"|^\s*--- FAIL: (?P<go>\S+)"
    r"|^test (?P<cargo>\S+) \.\.\. FAILED$"
    r"|^\s*● (?P<jest>.+ › .+)$"
    r"|^\s*not ok \d+ (?:- )?(?P<tap>.+)$"
)
# What went wrong: pytest's explanation, an exception, a panic, or the message of a compiler or linter.
_CAUSE = re.compile(
    r"^E   +\S"
    r"|^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |$)"
    r"|^thread '.*' panicked at"
    r"|^\S+:\d+(?::\d+)?: (?:error|Error|[A-Z]+\d+)\b"
    r"|^(?:error|fatal error)(?:\[\w+\])?: "
    r"|^make: \*\*\* No rule"
)
# What a check could not do in its sandbox (see `sandbox/refusals.py`).
_REFUSED = re.compile(r"^the sandbox refused ")
_MAX_REFUSED = 2
# The count at the end.
_SUMMARY = re.compile(
    r"^=*\s*(?P<pytest>\d+ (?:failed|errors?)\b.* in [\d.]+ ?s)(?: \([\d:]+\))?\s*=*$"
    r"|^(?P<unittest>FAILED \((?:failures|errors)=.*\))$"
    r"|^(?P<cargo>test result: FAILED\..*)$"
    r"|^(?P<jest>Tests: .*\bfailed\b.*)$"
)


def failing_lines(output: str) -> list[str]:
    """Return the lines by which a test runner or compiler reports a failure, else the last five."""
    lines = [_clean(line) for line in output.splitlines()]
    lines = [line for line in lines if line.strip()]
    tests = _matches(_TEST, lines)[:_MAX_TESTS]
    summary = _matches(_SUMMARY, lines)[-1:]
    causes = list(dict.fromkeys(line for line in lines if _CAUSE.match(line)))
    refused = [line for line in lines if _REFUSED.match(line)][:_MAX_REFUSED]
    found = [*tests, *causes[: _MAX_LINES - len(tests) - len(summary) - len(refused)], *summary, *refused]
    return found if tests or causes else lines[-_LAST:]


def _matches(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    """Return what the named group of each match contains, each text once."""
    found = (pattern.match(line) for line in lines)
    return list(dict.fromkeys(next(text for text in one.groups() if text) for one in found if one))


def _clean(line: str) -> str:
    text = printable(_COLOUR.sub("", line)).rstrip()
    return text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
