"""A pytest plugin: with `--promises` a run fails when a promise was not proved by a test that passed.

`make test` gives the option, because only a run of all tests can prove all promises. Each report carries the
identifiers of its test, so that the controller of pytest-xdist sees them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.promises import read_markers

if TYPE_CHECKING:
    from collections.abc import Generator

_PROVED = pytest.StashKey[set[str]]()
_UNPROVED = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promises", action="store_true", help="fail when a promise has no test that passed")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_PROVED] = set()
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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session when a promise was not proved; workers leave that to the controller."""
    config = session.config
    if not config.getoption("promises") or hasattr(config, "workerinput"):
        return
    proved = config.stash[_PROVED]
    promised = {marker.identifier for marker in read_markers(config.rootpath)}
    config.stash[_UNPROVED] = sorted(promised - proved)
    if promised - proved and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the promises that were not proved."""
    if unproved := config.stash.get(_UNPROVED, []):
        terminalreporter.section("promises without a test that passed", red=True)
        for identifier in unproved:
            terminalreporter.line(identifier)
