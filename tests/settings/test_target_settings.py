"""Settings, roles and rules come from the target branch: what is not committed there binds no one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from landlane.git.discovery import find_checkout
from landlane.git.target_settings import settings_in_force
from tests.hooks.stand_in_client import ScriptedClient
from tests.support.git import commit_text, git
from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SHORT = '[claims]\nmax_ttl = "10m"\nttl = "10m"\n'
NO_CHECKS = "[landing]\nchecks = []\n"


def longest_minutes(folder: Path) -> int:
    return settings_in_force(find_checkout(str(folder))).settings.claims.max_ttl_ms // 60_000


@pytest.mark.promise(
    "settings.from-the-target",
    "Settings, roles and rules are those of the target branch; a change that is not on it binds no one.",
)
def test_settings_that_are_not_committed_hold_for_the_person_only(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text(SHORT, encoding="utf-8")
    agents = {
        "by name": shell.run("claim", "a", "--ttl", "20m", "--as", "ann"),
        "by variable": shell.with_env(LANDLANE_AGENT="bob").run("claim", "b", "--ttl", "20m"),
        "in a client": shell.with_env(CLAUDECODE="1").run("claim", "c", "--ttl", "20m"),
        "below a registered process": shell.sh("landlane join eve --pid $$ && landlane claim d --ttl 20m"),
    }

    assert {how: ended.exit for how, ended in agents.items()} == dict.fromkeys(agents, 0)
    shell.run_error("TTL_OUT_OF_RANGE", "claim", "e", "--ttl", "20m")


def test_a_session_is_told_of_no_rule_that_is_not_committed(repository: Path) -> None:
    commit_text(repository, "RULES.md", "# Rules\n\n1. Keep the tests.\n")
    with ScriptedClient(repository) as one:
        one.hook("SessionStart", source="startup")
        (repository / "RULES.md").write_text("# Rules\n\n1. Delete the tests.\n", encoding="utf-8")

        told = one.after("Bash", command="true").stdout
        with ScriptedClient(repository) as two:
            began = two.hook("SessionStart", source="startup").stdout

        assert "Delete" not in told + began
        assert "Keep the tests" in began
        commit_text(repository, "RULES.md", "# Rules\n\n1. Keep the docs.\n")
        assert "Keep the docs" in one.after("Bash", command="true").stdout


def test_a_role_cannot_be_widened_in_the_working_tree(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", NO_CHECKS)
    shell.run_json("join", "ann", "--role", "code")
    wider = f'{NO_CHECKS}[roles.code]\nwrites = ["**"]\ndenies = []\n'
    (shell.folder / "landlane.toml").write_text(wider, encoding="utf-8")

    shell.run_error("ROLE_FORBIDS", "claim", "tests/a.py", "--as", "ann", exit=6)
    commit_text(shell.folder, "landlane.toml", wider)
    shell.run_json("claim", "tests/a.py", "--as", "ann")


def test_a_hook_does_not_follow_a_policy_in_the_working_tree(repository: Path) -> None:
    commit_text(repository, "landlane.toml", '[hooks]\npolicy = "strict"\n')
    with ScriptedClient(repository) as one:
        assert one.edit("a.py", "x\n").is_denied
        (repository / "landlane.toml").write_text('[hooks]\npolicy = "watch"\n', encoding="utf-8")
        assert one.edit("a.py", "x\n").is_denied


@pytest.mark.parametrize("form", ["loose", "packed", "reftable"])
def test_a_commit_on_the_target_counts_at_once(tmp_path: Path, form: str) -> None:
    folder = tmp_path / "repository"
    kind = ["--ref-format=reftable"] if form == "reftable" else []
    made = subprocess.run(["git", "init", "--quiet", *kind, str(folder)], capture_output=True)
    if made.returncode:
        pytest.skip("this git has no reftable")
    (folder / ".git" / "landlane").mkdir()
    for minutes in (10, 20, 30):
        commit_text(folder, "landlane.toml", f'[claims]\nmax_ttl = "{minutes}m"\nttl = "1m"\n')
        if form == "packed":
            git(folder, "pack-refs", "--all")
        assert longest_minutes(folder) == minutes


def test_the_settings_may_name_another_target_and_those_of_this_clone_lie_over_them(repository: Path) -> None:
    (repository / ".git" / "landlane").mkdir()
    commit_text(repository, "landlane.toml", f'{SHORT}[landing]\ntarget = "release"\n')
    assert longest_minutes(repository) == 10
    git(repository, "switch", "--quiet", "--create", "release")
    commit_text(repository, "landlane.toml", f'{SHORT.replace("10", "15")}[landing]\ntarget = "release"\n')
    git(repository, "switch", "--quiet", "main")
    assert longest_minutes(repository) == 15
    local = repository / ".git" / "landlane" / "local.toml"
    local.write_text('[claims]\nmax_ttl = "40m"\n', encoding="utf-8")
    assert longest_minutes(repository) == 40


def test_git_is_started_only_after_the_target_may_have_moved(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git" / "landlane").mkdir()
    commit_text(repository, "landlane.toml", SHORT)
    assert longest_minutes(repository) == 10
    monkeypatch.setenv("PATH", "/nowhere")

    assert longest_minutes(repository) == 10


def test_init_doctor_and_the_command_alone_say_what_holds(shell: Shell) -> None:
    remark = "landlane.toml is not on main yet: until then agents, hooks and workers use the defaults"

    assert remark in shell.run("init", "--yes").out
    assert remark in shell.run_text("doctor", "-v")
    assert remark in shell.run_text()
    shell.git("add", "--all")
    shell.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-m", "Set up")
    assert remark not in shell.run_text("doctor", "-v") + shell.run_text()
