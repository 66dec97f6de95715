"""Git in a checkout that several sessions share: what would hit the others is refused, the rest is git's."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import LANDLANE, Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


@pytest.fixture
def shared(repository: Path) -> Shell:
    """A checkout with two branches in which bob is at work on src/b.py."""
    shell = Shell(repository)
    (repository / "src").mkdir()
    for name in ("a.py", "b.py"):
        (repository / "src" / name).write_text(f"{name}\n")
    shell.git("add", ".")
    shell.git("commit", "--quiet", "-m", "Two files")
    shell.git("branch", "topic")
    shell.run_json("claim", "src/b.py", "--as", "bob")
    return shell


def branch_of(shell: Shell) -> str:
    return shell.git("branch", "--show-current").strip()


@pytest.mark.promise(
    "git.whole-tree-verbs",
    "While other sessions work in a checkout, `landlane git` does not switch its branch.",
)
def test_three_shells_cannot_switch_branches_while_others_work_there(shared: Shell) -> None:
    (shared.folder / "src" / "b.py").write_text("bob's work, not committed\n")
    words = [LANDLANE, "git", "--json", "--as", "ann", "--", "switch", "topic"]

    running = [
        subprocess.Popen(words, cwd=shared.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=60)[0] for process in running]

    for process, out in zip(running, said, strict=True):
        answer = json.loads(out)
        assert process.returncode == 6
        assert answer["code"] == "SHARED_CHECKOUT"
        assert answer["others"] == [{"agent": "bob", "paths": ["src/b.py"]}]
        assert "landlane workspace open" in answer["hint"]
    assert branch_of(shared) == "main"
    assert (shared.folder / "src" / "b.py").read_text() == "bob's work, not committed\n"


def test_a_rescue_is_not_restored_into_a_checkout_in_which_others_work(shared: Shell) -> None:
    shared.git("switch", "--quiet", "topic")
    (shared.folder / "new.txt").write_text("new\n")
    rescue = shared.run_json("rescue", "take", "--as", "ann")["rescue"]
    (shared.folder / "new.txt").unlink()
    shared.git("switch", "--quiet", "main")

    answer = shared.run_error(
        "SHARED_CHECKOUT", "rescue", "restore", rescue, "--into", ".", "--as", "ann", exit=6
    )

    assert answer["others"] == [{"agent": "bob", "paths": ["src/b.py"]}]
    assert branch_of(shared) == "main"
    assert not (shared.folder / "new.txt").exists()
    shared.run_json("release", "--all", "--as", "bob")
    shared.run_json("rescue", "restore", rescue, "--into", ".", "--as", "ann")
    assert (shared.folder / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("reset --hard", "git restore -- PATH"),
        ("clean -fd", "git clean -f -- PATH"),
        ("stash", "landlane stash save"),
        ("add -A", "landlane commit -m"),
        ("commit -m all", "landlane commit -m"),
        ("checkout -- .", "git restore -- PATH"),
        ("-C src restore .", "git restore -- PATH"),
        ("restore ../src/..", "name the paths"),
        ("push --force", "without force"),
    ],
)
def test_a_refusal_names_the_others_and_the_scoped_form(shared: Shell, words: str, instead: str) -> None:
    folder = shared.at("src") if words.endswith("/..") else shared
    answer = folder.run_error("SHARED_CHECKOUT", "git", "--as", "ann", "--", *words.split(), exit=6)

    assert "bob: src/b.py" in answer["message"]
    assert instead in answer["hint"]


def test_the_text_answer_names_the_same(shared: Shell) -> None:
    ended = shared.run("git", "--as", "ann", "--", "switch", "topic")

    assert ended.exit == 6
    assert "bob: src/b.py" in ended.err
    assert "hint: instead: landlane workspace open TASK" in ended.err


def test_paths_held_by_others_are_refused_and_the_rest_is_free(shared: Shell) -> None:
    for name in ("a.py", "b.py"):
        (shared.folder / "src" / name).write_text("changed\n")

    refused = shared.run_error("CLAIM_HELD", "git", "--as", "ann", "--", "restore", "src/b.py", exit=3)
    below = shared.run_error("CLAIM_HELD", "git", "--as", "ann", "--", "add", "src", exit=3)
    done = shared.run_json("git", "--as", "ann", "--", "restore", "src/a.py")
    own = shared.run_json("git", "--as", "bob", "--", "restore", "--", ":/src/b.py")

    assert refused["holder"] == "bob"
    assert refused["until"]
    assert below["path"] == "src"
    assert (done["exit"], done["reach"]) == (0, "scoped")
    assert own["ok"]
    assert shared.git("status", "--porcelain") == ""


def test_a_single_session_may_do_everything(shared: Shell) -> None:
    assert shared.run_json("git", "--as", "bob", "--", "switch", "topic")["exit"] == 0
    assert branch_of(shared) == "topic"

    shared.run_json("leave", "--as", "bob")
    assert shared.run("git", "--as", "ann", "--", "switch", "--quiet", "main").exit == 0
    assert branch_of(shared) == "main"


def test_a_session_in_another_workspace_is_not_affected(shared: Shell, tmp_path: Path) -> None:
    shared.run_json("task", "add", "Work elsewhere", "--as", "bob")
    shared.run_json("workspace", "open", "T1", "--as", "bob")

    assert shared.run_json("git", "--as", "ann", "--", "switch", "topic")["ok"]
    # Refs, objects and the stash are everybody's all the same.
    shared.run_error("SHARED_CHECKOUT", "git", "--as", "ann", "--", "gc", "--prune=now", exit=6)


def test_a_process_in_the_checkout_counts_without_a_claim(shared: Shell) -> None:
    shared.run_json("leave", "--as", "bob")
    script = f"{LANDLANE} join eve --pid $$ >&2 && echo ready && read answer"
    with subprocess.Popen(
        ["sh", "-c", script], cwd=shared.folder / "src", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as eve:
        assert eve.stdout is not None
        assert eve.stdout.readline() == b"ready\n"

        answer = shared.run_error("SHARED_CHECKOUT", "git", "--as", "ann", "--", "reset", "--hard", exit=6)

        eve.communicate(b"\n", timeout=60)
    assert answer["others"] == [{"agent": "eve", "paths": []}]


def test_git_prints_its_own_output(shared: Shell) -> None:
    status = shared.run("git", "--", "status", "--short")
    failed = shared.run("git", "--", "rev-parse", "--verify", "nothing")
    shown = shared.run_json("git", "--", "rev-parse", "--verify", "nothing", exit=128)

    assert (status.exit, status.out) == (0, "")
    assert failed.exit == 128
    assert "fatal: Needed a single revision" in failed.err
    assert (shown["code"], shown["exit"]) == ("GIT_FAILED", 128)


def test_a_git_alias_is_resolved(shared: Shell) -> None:
    shared.git("config", "alias.sw", "switch")

    shared.run_error("SHARED_CHECKOUT", "git", "--as", "ann", "--", "sw", "topic", exit=6)


def test_another_repository_is_not_guarded(shared: Shell, tmp_path: Path) -> None:
    shared.git("clone", "--quiet", ".", str(tmp_path / "other"))

    assert shared.run_json("git", "--as", "ann", "--", "-C", str(tmp_path / "other"), "clean", "-fd")["ok"]


def test_damaged_git_config_is_repaired_by_the_next_command(shared: Shell) -> None:
    shared.git("config", "core.bare", "true")

    ended = shared.run("git", "--as", "ann", "--", "status", "--short")

    assert (ended.exit, ended.out) == (0, "")
    assert "core.bare is true" in ended.err
    assert "live then: bob" in ended.err
    assert "git.mended" in shared.kinds()


def test_misplaced_changes_are_listed_and_moved_with_one_command(shared: Shell) -> None:
    shared.run_json("task", "add", "Work elsewhere", "--as", "bob")
    place = shared.run_json("workspace", "open", "T1", "--as", "bob")["workspace"]["path"]
    (shared.folder / "src" / "b.py").write_text("by an absolute path\n")

    listed = shared.run_json("misplaced", "list")["strays"]
    moved = shared.run_json("misplaced", "move", "--as", "bob")

    assert [(one["path"], one["state"], one["workspace"]) for one in listed] == [("src/b.py", "stray", "W1")]
    assert [one["path"] for one in moved["moved"]] == ["src/b.py"]
    assert shared.run_program("cat", f"{place}/src/b.py").out == "by an absolute path\n"
    assert shared.git("status", "--porcelain") == ""
    again = shared.run_json(
        "rescue", "restore", moved["rescues"][0]["rescue"], "--into", "../again", "--as", "bob"
    )
    assert again["ok"]
    assert (shared.folder.parent / "again" / "src" / "b.py").read_text() == "by an absolute path\n"


def test_a_child_of_git_does_not_wait_for_the_lock_of_its_parent(shared: Shell) -> None:
    hook = shared.folder / ".git" / "hooks" / "pre-commit"
    hook.write_text(f"#!/bin/sh\n{LANDLANE} git --as bob -- add src/a.py\n")
    hook.chmod(0o755)
    (shared.folder / "src" / "b.py").write_text("changed\n")

    ended = shared.run("git", "--as", "bob", "--", "commit", "-m", "One", "src/b.py")

    assert ended.exit != 0
    assert "GIT_BUSY" in ended.err
