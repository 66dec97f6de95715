"""`init --undo` names what it leaves, and `--purge` removes what holds no work that exists nowhere else."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

LIMITS = ("core.filesRefLockTimeout", "core.packedRefsTimeout", "gc.auto", "maintenance.auto")


def open_workspace(shell: Shell, task: str, agent: str) -> Path:
    shell.run_json("task", "add", f"Do {task}", "--path", f"{task}.txt", "--key", task)
    name = shell.run_json("next", "--as", agent)["task"]["id"]
    return shell.folder / shell.run_json("workspace", "open", name, "--as", agent)["workspace"]["path"]


def refs(shell: Shell, prefix: str) -> list[str]:
    return shell.git("for-each-ref", "--format=%(refname)", prefix).split()


def limits(shell: Shell) -> list[str]:
    config = shell.git("config", "--local", "--list", "--name-only").lower().split()
    return [name for name in LIMITS if name.lower() in config]


def test_undo_names_workspaces_branches_and_git_settings(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    path = open_workspace(shell, "one", "ann")

    shown = shell.run_text("init", "--undo", "--yes")
    remaining = shell.run_json("init", "--undo", "--yes", "--purge")["remaining"]

    assert f"  workspace {path}\n" in shown
    assert "  branch landlane/T1-1/work\n" in shown
    assert "  git config core.packedRefsTimeout\n" in shown
    assert remaining["workspace_paths"] == [str(path)], "ann is at work in it"
    assert path.is_dir()


@pytest.mark.promise(
    "setup.purge-keeps-work",
    "`init --undo --purge` keeps unmerged branches and saves uncommitted work before it removes a workspace.",
)
def test_purge_removes_what_holds_no_work_and_keeps_the_rest(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    dirty, ahead = open_workspace(shell, "one", "ann"), open_workspace(shell, "two", "bob")
    (dirty / "one.txt").write_text("not committed\n")
    (ahead / "two.txt").write_text("committed\n")
    there = shell.at(ahead)
    there.git("add", "--all")
    there.with_env(LANDLANE_AGENT="bob").git("commit", "--quiet", "-m", "Two")
    for agent in ("ann", "bob"):
        shell.run_json("leave", "--as", agent)

    answer = shell.run_json("init", "--undo", "--purge", "--yes")

    assert not dirty.exists()
    assert not ahead.exists()
    assert refs(shell, "refs/heads/landlane") == ["refs/heads/landlane/T2-1/work"]
    assert [one["name"] for one in answer["kept"]] == ["landlane/T2-1/work", "refs/landlane/*"]
    assert refs(shell, "refs/landlane") == ["refs/landlane/rescue/R1"]
    assert limits(shell) == []
    assert not shell.state.exists()
    shell.run_json("rescue", "restore", "R1")
    (restored,) = shell.folder.parent.rglob("rescue-R1/one.txt")
    assert restored.read_text() == "not committed\n"


def test_purge_finds_workspaces_and_settings_after_the_state_was_deleted(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    path = open_workspace(shell, "one", "ann")
    shutil.rmtree(shell.state)

    shell.run_json("init", "--undo", "--purge", "--yes")

    assert not path.exists()
    assert refs(shell, "refs/heads/landlane") == []
    assert limits(shell) == []
    assert not shell.state.exists()


def test_a_person_is_asked_before_the_rest_is_removed(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")

    code, kept = run_at_terminal(shell, "init", "--undo", typed="y\nn\n", NO_COLOR="1")
    assert (code, shell.state.is_dir()) == (0, True), kept
    assert "Remove what holds no work of yours? [y/N]" in kept
    shell.run_json("init", "--yes", "--no-clients")
    code, removed = run_at_terminal(shell, "init", "--undo", typed="y\ny\n", NO_COLOR="1")

    assert (code, shell.state.exists()) == (0, False), removed


def test_work_under_way_keeps_the_state(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("task", "add", "One", "--path", "one.txt")
    shell.run_json("next", "--as", "ann")

    answer = shell.run_json("init", "--undo", "--purge", "--yes")

    (kept,) = answer["kept"]
    assert (kept["kind"], kept["why"]) == ("state", "ann works on T1")
    assert shell.run_json("status")["ok"]


def test_claims_of_an_agent_without_a_task_keep_the_state(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("claim", "src/a.py", "--as", "ann")

    (kept,) = shell.run_json("init", "--undo", "--purge", "--yes")["kept"]

    assert (kept["kind"], kept["why"]) == ("state", "ann claims src/a.py")


def only_copy(shell: Shell, ref: str) -> str:
    commit = shell.git("commit-tree", "-m", "on no branch", "HEAD^{tree}").strip()
    shell.git("update-ref", ref, commit)
    return ref


def test_work_under_way_keeps_the_refs_that_it_needs(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    shell.run_json("task", "add", "One", "--path", "one.txt")
    shell.run_json("next", "--as", "ann")
    shell.git("update-ref", "refs/landlane/landing/L1", "HEAD")

    shell.run_json("init", "--undo", "--purge", "--yes")

    assert refs(shell, "refs/landlane/landing") == ["refs/landlane/landing/L1"]


def test_refs_with_the_only_copy_of_a_commit_stay(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    alone = [only_copy(shell, f"refs/landlane/{name}") for name in ("breaches/B1", "proved/T1")]
    shell.git("update-ref", "refs/landlane/base/W1", "HEAD")

    shell.run_json("init", "--undo", "--purge", "--yes")

    assert refs(shell, "refs/landlane") == alone
    assert not shell.state.exists()


def test_a_store_that_cannot_be_opened_is_kept_with_its_workspaces(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    path = open_workspace(shell, "one", "ann")
    journal = (shell.state / "journal.jsonl").read_bytes()
    for store in shell.state.glob("store.db*"):
        store.write_bytes(b"no database" * 1000)

    (kept,) = shell.run_json("init", "--undo", "--purge", "--yes")["kept"]

    assert kept["kind"] == "state"
    assert kept["why"].startswith("its store cannot be opened")
    assert (shell.state / "journal.jsonl").read_bytes() == journal
    assert path.is_dir(), "ann may be at work in it"


def test_what_a_worker_returned_and_nothing_else_has_keeps_the_state(shell: Shell) -> None:
    shell.run_json("init", "--yes", "--no-clients")
    patch = shell.state / "returned" / "T1-1" / "change.patch"
    patch.parent.mkdir(parents=True)
    patch.write_text("work\n")

    (kept,) = shell.run_json("init", "--undo", "--purge", "--yes")["kept"]

    assert kept["why"].startswith("returned/ in it holds")
    assert patch.read_text() == "work\n"


@pytest.mark.parametrize("variable", ["LANDLANE_AGENT", "CLAUDECODE"])
def test_an_agent_does_not_remove_the_state(shell: Shell, variable: str) -> None:
    shell.run_json("init", "--yes", "--no-clients")

    agent = shell.with_env(**{variable: "1"})
    agent.run_error("NOT_A_PERSON", "init", "--undo", "--purge", "--yes", exit=6)

    assert shell.state.is_dir()
    assert (shell.folder / "landlane.toml").exists(), "nothing is undone, either"


def test_init_outside_git_asks_and_no_answer_changes_nothing(tmp_path: Path, shell: Shell) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()

    code, said = run_at_terminal(shell.at(folder), "init", typed="\n", NO_COLOR="1")

    assert code == 0
    assert "This folder is not in git" in said
    assert said.endswith("Set it up without git? [y/N] Nothing was changed.\n")
    assert list(folder.iterdir()) == []
