"""A pytest plugin: with `--promises` a run fails when a promise was not proved by a test that passed.

`make test` gives the option, because only a run of all tests can prove all promises. Each report carries the
identifiers of its test, so that the controller of pytest-xdist sees them, too.

On a build machine (`CI` is set) such a run also fails when tests were skipped because a part is missing that
our own scripts install: PostgreSQL, a coding client, bubblewrap, a shell.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from scripts.promises import read_markers

if TYPE_CHECKING:
    from collections.abc import Generator

_PROVED = pytest.StashKey[set[str]]()
_UNPROVED = pytest.StashKey[list[str]]()
_NOT_RUN = pytest.StashKey[dict[str, int]]()
_PART_IS_MISSING = re.compile(r"no PostgreSQL|scripts/(?:clients|tools)\.sh")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promises", action="store_true", help="fail when a promise has no test that passed")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_PROVED] = set()
    config.stash[_NOT_RUN] = {}
    config.pluginmanager.register(_Watcher(config), "promise-watcher")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write the promises of a test into its report."""
    report = yield
    report.__dict__["promises"] = [str(mark.args[0]) for mark in item.iter_markers("promise")]
    return report


class _Watcher:
    """Collects the promises of tests that passed: an object, because the hook is not given the config."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._config.stash[_PROVED].update(getattr(report, "promises", ()))
        if (
            report.skipped
            and isinstance(report.longrepr, tuple)
            and _PART_IS_MISSING.search(report.longrepr[2])
        ):
            not_run = self._config.stash[_NOT_RUN]
            not_run[report.longrepr[2]] = not_run.get(report.longrepr[2], 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session when a promise was not proved; workers leave that to the controller."""
    config = session.config
    if not config.getoption("promises") or hasattr(config, "workerinput"):
        return
    proved = config.stash[_PROVED]
    promised = {marker.identifier for marker in read_markers(config.rootpath)}
    config.stash[_UNPROVED] = sorted(promised - proved)
    is_incomplete = bool(config.stash[_NOT_RUN]) and bool(os.environ.get("CI"))
    if (promised - proved or is_incomplete) and session.exitstatus in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the promises that were not proved, and the parts whose tests were not run."""
    if unproved := config.stash.get(_UNPROVED, []):
        terminalreporter.section("promises without a test that passed", red=True)
        for identifier in unproved:
            terminalreporter.line(identifier)
    if config.getoption("promises") and (not_run := config.stash[_NOT_RUN]):
        terminalreporter.section("tests not run because a part is missing", red=True)
        for reason, count in not_run.items():
            terminalreporter.line(f"{count}: {reason}")
