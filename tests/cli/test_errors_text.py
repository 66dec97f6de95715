"""What people see when a call or a settings file has a mistake: the mistake, and the call that works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.snapshots import check_snapshot
from tests.support.transcripts import play

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

MISTAKES = {
    "no unit": '[claims]\n\nttl = 30\nrequired = ["Makefile"]\n',
    "unknown key": '[landing]\ntarget = "main"\nchekcs = ["make test"]\n',
    "unknown section": '[landng]\nchecks = ["make test"]\n',
    "list not closed": '[landing]\nchecks = ["make test"\n',
    "not TOML": "[landing\n",
    "wrong type": '[run]\nworkers = "many"  # at once\n',
}


def test_mistyped_calls_are_answered_with_the_right_call(shell: Shell) -> None:
    text = play(
        shell,
        "clam src/api.py",
        "task shwo T12",
        "claim src/api.py --wiat 5m",
        "claim",
        "claim src/api.py --wait 5",
        "claim src/api.py --wait=5 --as ann",
        "claim src/api.py --ttl 90 --as ann",
        "state watch a --timeout 1.5",
        "stats --since yesterdy",
        "usage --since 7",
        "rules report --since=someday",
        "config set claims.tll 1h",
        "config set claims.ttl 30",
    )
    check_snapshot("cli/snapshots/mistyped.txt", text)


def test_mistakes_in_the_settings_are_shown_with_their_line(shell: Shell) -> None:
    lines: list[str] = []
    for name, source in MISTAKES.items():
        (shell.folder / "landlane.toml").write_text(source, encoding="utf-8")
        lines += [f"# {name}", play(shell, "init --dry-run")]
    check_snapshot("cli/snapshots/settings_mistakes.txt", "\n".join(lines))


def test_a_mistake_in_the_settings_can_be_corrected_with_the_hint(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text(MISTAKES["no unit"], encoding="utf-8")
    hint = shell.run_error("SETTINGS_WRONG_TYPE", "init", "--dry-run")["hint"]

    assert shell.run(*hint.split()[1:]).exit == 0
    assert shell.run("init", "--dry-run").exit == 0


def test_durations_are_read_as_they_are_printed(shell: Shell) -> None:
    assert shell.run("claim", "a.py", "--ttl", "1 min 31 s", "--as", "ann").exit == 0
    assert shell.run("claim", "b.py", "--ttl", "30 min", "--as", "ann").exit == 0


def test_a_period_can_start_at_a_time_of_day(shell: Shell) -> None:
    for since in ("2h", "3d", "14:30", "2026-01-31", "all"):
        for command in (("stats",), ("usage",), ("rules", "report")):
            assert shell.run(*command, "--since", since).exit == 0, (command, since)
