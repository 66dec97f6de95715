"""`status --watch` in a real terminal: what it draws, and what its keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import TerminalScreen

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

DOWN = "\x1b[B"
SECOND_SCREEN = "\x1b[?1049"


def test_keys_select_open_and_quit(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--path", "src/api.py", "--as", "lead")
    shell.run_json("task", "add", "Document them", "--after", "T1", "--as", "lead")
    shell.run_json("next", "--as", "ann")

    with TerminalScreen(shell, "status", "--watch") as screen:
        drawn = screen.read_until("q quit")
        screen.type(DOWN)
        marked = screen.read_until("q quit")
        screen.type("\r")
        opened = screen.read_until("Enter returns to status:")
        screen.type("\r")
        again = screen.read_until("q quit")
        screen.type("q")
        assert screen.end() == 0

    assert SECOND_SCREEN + "h" in drawn
    assert " · main untested" in drawn, "a terminal with UTF-8 gets symbols"
    assert "\x1b[7m  T1  List users" in drawn, "the first item is selected"
    assert "\x1b[7m  T2  Document them" in marked
    assert SECOND_SCREEN + "l" in opened, "an item is shown on the first screen"
    assert "Document them" in opened
    assert "\x1b[7m  T2  Document them" in again, "what was selected stays selected"


def test_p_pauses_and_resumes(shell: Shell) -> None:
    with TerminalScreen(shell, "status", "--watch", NO_COLOR="1") as screen:
        screen.read_until("p pause everything")
        screen.type("p")
        paused = screen.read_until("p resume")
        pool = shell.run_json("status")["headline"]
        screen.type("p")
        screen.read_until("p pause everything")
        screen.type("q")
        assert screen.end() == 0

    assert "workers paused" in paused
    assert pool["workers_paused"] is True
    assert shell.run_json("status")["headline"]["workers_paused"] is False


def test_it_shows_what_changes_without_a_key(shell: Shell) -> None:
    with TerminalScreen(shell, "status", "--watch") as screen:
        screen.read_until("q quit")
        shell.run_json("claim", "src/api.py", "--as", "ann")
        assert "Working" in screen.read_until("src/api.py")


def test_without_a_terminal_it_is_refused(shell: Shell) -> None:
    error = shell.run_error("NO_TERMINAL", "status", "--watch")

    assert error["hint"] == "print it once: landlane status"
