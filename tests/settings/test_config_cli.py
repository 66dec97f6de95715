"""`landlane config` as a user types it: what is set counts, and one clone may differ from the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def test_a_setting_is_read_changed_and_listed(shell: Shell) -> None:
    assert shell.run_text("config") == "All settings have their defaults.\n"
    assert shell.run_text("config", "get", "claims.ttl") == "30m\n"

    shell.run_json("config", "set", "claims.ttl", "45m")

    assert shell.run_text("config", "get", "claims.ttl") == "45m\n"
    (item,) = shell.run_json("config", "list")["settings"]
    assert item == {"key": "claims.ttl", "value": "45m", "from": "landlane.toml"}
    assert len(shell.run_json("config", "list", "--all")["settings"]) > 50


def test_an_unknown_setting_is_answered_with_the_call_that_was_meant(shell: Shell) -> None:
    refused = shell.run_error("SETTINGS_UNKNOWN_KEY", "config", "set", "claims.tll", "1h", exit=2)
    assert refused["hint"] == "landlane config set claims.ttl 1h"
    shell.run_error("SETTINGS_WRONG_TYPE", "config", "set", "run.workers", "four", exit=2)
    assert not (shell.folder / "landlane.toml").exists()


def test_only_a_person_changes_the_settings_of_a_clone(shell: Shell) -> None:
    shell.run_json("config", "set", "run.workers", "2")
    shell.run_error("NOT_A_PERSON", "config", "set", "run.workers", "4", "--local", "--as", "ann", exit=6)

    code, said = run_at_terminal(shell, "config", "set", "run.workers", "4", "--local")

    assert (code, "in this clone" in said) == (0, True), said
    assert shell.run_text("config", "get", "run.workers") == "4\n"
    assert "this clone (landlane.toml: 2)" in shell.run_text("config", "list")
    assert "workers = 2" in (shell.folder / "landlane.toml").read_text(encoding="utf-8")


def test_a_broken_local_file_is_named(shell: Shell) -> None:
    shell.run_json("status")
    (shell.state / "local.toml").write_text("[run\n", encoding="utf-8")

    assert "local.toml" in shell.run_error("SETTINGS_NOT_TOML", "claims", exit=2)["message"]


def test_the_queue_tests_with_the_settings_of_the_clone_over_those_of_the_target(shell: Shell) -> None:
    shell.run_json("config", "set", "landing.checks", '["false"]')
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Set the checks")
    shell.git("switch", "--quiet", "--create", "feature")
    shell.run_json("claim", "new.py", "--as", "ann")
    (shell.folder / "new.py").write_text("x = 1\n", encoding="utf-8")
    shell.run_json("commit", "-m", "Add it", "new.py", "--as", "ann")
    code, said = run_at_terminal(shell, "config", "set", "landing.checks", '["true"]', "--local")
    assert code == 0, said

    assert shell.run_json("land", "--wait", "--as", "ann")["landing"]["state"] == "landed"


def test_a_change_says_where_it_counts_and_how_it_gets_to_the_target(shell: Shell) -> None:
    shown = shell.run_text("config", "set", "run.workers", "4")

    assert shown.splitlines() == [
        "✓ run.workers = 4 in landlane.toml",
        "  it holds once it is on main; for you, until then",
        (
            "next: landlane claim landlane.toml && git switch -c settings && git add landlane.toml"
            " && git commit -m 'Set run.workers = 4' landlane.toml && landlane land"
        ),
    ]
    assert shell.run_text("config", "get", "run.workers") == "4\n"


def test_the_next_step_of_a_change_works_as_it_is_printed_also_on_a_branch(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text('[landing]\nchecks = ["true"]\n', encoding="utf-8")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Set the checks")

    for value in ("4", "5"):
        shown = shell.run_text("config", "set", "run.workers", value)
        step = shown.splitlines()[-1].removeprefix("next: ")
        assert ("git switch" in step) == (value == "4")
        ended = shell.sh(step)
        assert ended.exit == 0, ended
        shell.run_json("queue", "run", "--drain")
