"""Workspaces as they are typed: opened by many at once, looked over, closed, pruned, brought back."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text, git
from tests.support.shell import wait_for_all
from tests.support.snapshots import check_snapshot
from tests.support.waiting import wait_until
from tests.support.workspaces import KINDS, add_remote, advance, commit_file

if TYPE_CHECKING:
    from tests.support.shell import Answer, Shell

pytestmark = pytest.mark.acceptance

CROWD = 16


def add_task(shell: Shell, title: str = "work") -> str:
    return shell.run_json("task", "add", title, "--force", "--as", "ann")["task"]["id"]


def open_one(shell: Shell, *more: str, agent: str = "ann") -> Answer:
    return shell.run_json("workspace", "open", add_task(shell), "--as", agent, *more)["workspace"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_of_open_is_the_folder(shell: Shell, kind: str) -> None:
    task = add_task(shell)

    told = shell.run_text("workspace", "open", task, "--as", "ann", "--kind", kind)

    path = shell.folder.with_name("repository.workspaces") / f"{task}-ann"
    assert told == f"{path}\n"
    assert shell.run_text("workspace", "open", task, "--as", "ann", "--kind", kind) == told
    assert shell.at(path).run_json("workspace", "list")["workspaces"][0]["path"] == str(path)


@pytest.mark.promise(
    "workspaces.open-at-once",
    "Sixteen workspaces opened at the same instant are sixteen separate workspaces.",
)
@pytest.mark.slow
def test_sixteen_processes_at_once_and_others_beside_them(shell: Shell) -> None:
    remote = add_remote(shell.folder)
    tip = advance(remote)
    tasks = [add_task(shell) for _ in range(CROWD)]
    others = [
        subprocess.Popen(
            ["git", "worktree", "add", "--quiet", "--detach", f"../other-{number}"],
            cwd=shell.folder,
            stderr=subprocess.DEVNULL,
        )
        for number in range(0, CROWD, 4)
    ]

    ended = wait_for_all(
        [
            shell.start(
                "workspace", "open", task, "--as", f"agent{number}", "--kind", KINDS[number % 2], "--json"
            )
            for number, task in enumerate(tasks)
        ]
    )

    for other in others:
        other.wait(60)
    answers = [one.json() for one in ended]
    assert [answer["ok"] for answer in answers] == [True] * CROWD
    assert {answer["workspace"]["base"] for answer in answers} == {tip}
    said = "".join(one.err for one in ended)
    assert "retry" not in said.lower()
    assert "fatal" not in said


def test_a_remote_that_is_gone_and_offline(shell: Shell) -> None:
    shutil.rmtree(add_remote(shell.folder))
    task = add_task(shell)

    answer = shell.run_error("OFFLINE", "workspace", "open", task, "--as", "ann", exit=1)
    assert "--offline" in answer["hint"]
    opened = shell.run("workspace", "open", task, "--as", "ann", "--offline")
    assert opened.exit == 0
    assert "OFFLINE: started from origin/main" in opened.err
    assert shell.run_json("workspace", "list")["workspaces"][0]["offline"] is True
    answer = shell.run_json("workspace", "open", add_task(shell), "--as", "ann", "--offline")
    assert answer["notes"] == ["OFFLINE: started from origin/main as it was fetched last"]


def test_a_task_that_another_works_on_is_refused(shell: Shell) -> None:
    task = add_task(shell)
    shell.run_json("next", "--as", "bob")

    answer = shell.run_error("TASK_HELD", "workspace", "open", task, "--as", "ann", exit=3)

    assert answer["holder"] == "bob"


def test_a_parent_folder_that_may_not_be_written(shell: Shell) -> None:
    task = add_task(shell)
    folder = shell.folder.with_name("repository.workspaces")
    folder.mkdir()
    folder.chmod(0o555)

    try:
        answer = shell.without_root().run_json("workspace", "open", task, "--as", "ann", exit=1)
    finally:
        folder.chmod(0o755)

    assert answer["code"] == "FOLDER_FORBIDDEN"
    assert str(folder) in answer["message"]
    assert shell.run_json("workspace", "list")["workspaces"] == []


@pytest.mark.slow
def test_the_list_is_readable(shell: Shell) -> None:
    path = open_one(shell)["path"]

    open_one(shell, agent="bob")
    third = open_one(shell, agent="eve")
    Path(path, "one.txt").write_text("1\n")
    Path(path, "two.txt").write_text("2\n")
    shell.run_json("task", "drop", third["task"], "--why", "not needed")

    text = shell.run_text("workspace", "list")

    masked = re.sub(r" +[\d.]+ KB", "  16 KB", re.sub(r"active \d+ s ago", "active 4 s ago", text))
    folder = str(shell.folder.with_name("repository.workspaces"))
    masked = re.sub(r"\([\d.]+ KB", "(47 KB", masked)
    check_snapshot("workspaces/snapshots/list.txt", masked.replace(folder, "<folder>").rstrip("\n"))
    assert path in shell.run_text("workspace", "list", "-v")
    assert shell.run_text("workspace", "list", "-q") == "W1\nW2\nW3\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_workspace_can_be_closed_from_inside(shell: Shell, kind: str) -> None:
    inside = shell.at(open_one(shell, "--kind", kind)["path"])
    (inside.folder / "loose.txt").write_text("loose\n")

    closed = inside.run_json("workspace", "close", "W1", "--as", "ann")

    assert closed["workspace"]["state"] == "closed"
    assert not inside.folder.exists()
    restored = shell.run_json("rescue", "restore", closed["rescue"], "--as", "ann")
    assert Path(restored["path"], "loose.txt").read_text() == "loose\n"
    (listed,) = shell.run_json("rescue", "list")["rescues"]
    assert (listed["agent"], listed["task"], listed["workspace"]) == ("ann", "T1", "W1")
    assert listed["bytes"] > 0
    shell.run_json("rescue", "drop", closed["rescue"], "--as", "ann")
    assert shell.run_json("rescue", "list")["rescues"] == []


def test_a_file_that_cannot_be_read_stops_the_close_and_nothing_is_deleted(shell: Shell) -> None:
    path = Path(open_one(shell)["path"])
    secret = path / "secret.txt"
    secret.write_text("readable by nobody\n")
    secret.chmod(0)

    answer = shell.without_root().run_json("workspace", "close", "W1", "--as", "ann", exit=1)

    assert "secret.txt" in answer["message"]
    assert secret.exists()
    assert shell.run_json("workspace", "list")["workspaces"][0]["state"] == "open"
    secret.chmod(0o644)
    assert shell.run_json("workspace", "close", "W1", "--as", "ann")["rescue"]


@pytest.mark.parametrize("kind", KINDS)
def test_read_only_caches_are_removed(shell: Shell, kind: str) -> None:
    commit_file(shell.folder, ".gitignore", "cache/\n")
    path = Path(open_one(shell, "--kind", kind)["path"])
    deep = path / "cache" / "module@1" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("cached\n")
    (deep / "link").symlink_to(shell.folder / "README.md")
    for one in (deep / "file", deep, deep.parent, deep.parent.parent):
        one.chmod(0o444 if one.is_file() else 0o555)

    assert shell.without_root().run_json("workspace", "close", str(path), "--as", "ann")["rescue"] is None

    assert not path.exists()
    assert [one.name for one in path.parent.iterdir()] == []
    assert (shell.folder / "README.md").exists()


def test_a_folder_may_be_named_relative_to_the_current_directory(shell: Shell) -> None:
    inside = shell.at(open_one(shell)["path"])

    assert inside.run_json("workspace", "close", ".", "--as", "ann")["workspace"]["id"] == "W1"


def test_anothers_workspace_needs_force(shell: Shell) -> None:
    open_one(shell, agent="bob")

    shell.run_error("WORKSPACE_HELD", "workspace", "close", "W1", "--as", "ann", exit=3)
    assert shell.run_json("workspace", "close", "W1", "--as", "ann", "--force")["ok"]
    shell.run_error("UNKNOWN_WORKSPACE", "workspace", "close", "W1", "--as", "ann")


def test_prune_reports_the_outcome_for_each_workspace(shell: Shell) -> None:
    open_one(shell, agent="bob")
    open_one(shell)
    shell.run_json("leave", "--as", "bob")

    dry = shell.run_json("workspace", "prune", "--dry-run", "--as", "ann")["workspaces"]
    assert [row["outcome"] for row in dry] == ["can be removed", "you are using it"]
    assert (
        shell.run_text("workspace", "prune", "--as", "ann") == "✓ removed W1\n– kept W2: you are using it\n"
    )


def test_prune_frees_disk_space_before_it_closes_anything(shell: Shell) -> None:
    settings = '[workspace]\ncaches = ["target"]\ndisk_floor = "900000TB"\n'
    (shell.folder / "landlane.toml").write_text(settings)
    (shell.folder / ".gitignore").write_text("target\n")
    git(shell.folder, "add", "landlane.toml", ".gitignore")
    git(shell.folder, "commit", "--quiet", "-m", "Settings")
    cache = Path(open_one(shell, agent="bob")["path"], "target")
    cache.mkdir()
    shell.run_json("leave", "--as", "bob")

    assert shell.run_json("workspace", "prune", "--dry-run", "--as", "ann")["evicted"] == []
    pruned = shell.run_json("workspace", "prune", "--as", "ann")

    assert [row["path"] for row in pruned["evicted"]] == [str(cache)]
    assert [row["outcome"] for row in pruned["workspaces"]] == ["closed"]


def test_the_environment_is_for_a_shell(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text('[workspace.slots]\nPORT = "port"\n')
    git(shell.folder, "add", "landlane.toml")
    git(shell.folder, "commit", "--quiet", "-m", "Settings")
    opened = open_one(shell)

    said = shell.at(opened["path"]).sh(
        'eval "$(landlane workspace env)" && echo $LANDLANE_TASK $PORT $LANDLANE_AGENT'
    )

    assert said.out == f"T1 {opened['environment']['PORT']} ann\n"


def test_work_can_be_saved_and_restored_by_hand(shell: Shell) -> None:
    place = shell.at(open_one(shell)["path"])
    (place.folder / "README.md").write_text("changed\n")

    stash = place.run_json("stash", "save", "--message", "half done", "--as", "ann")["stash"]
    assert place.run_text("stash", "list").splitlines()[-1].endswith("half done")
    assert shell.run_json("stash", "list")["stashes"] == []
    assert place.run_text("stash", "restore", "--as", "ann") == f"restored {stash['id']}\n"
    assert (place.folder / "README.md").read_text() == "changed\n"
    place.run_error("NOTHING_TO_RESTORE", "stash", "restore", "--as", "ann", exit=1)


def lapse(shell: Shell, agent: str, *words: str) -> None:
    """Claim for the shortest time, and wait until it is over."""
    shell.run_json("claim", *words, "--ttl", "1s", "--as", agent)
    wait_until(lambda: not shell.run_json("claims")["claims"])


@pytest.mark.promise(
    "rescues.takeover",
    "Uncommitted changes of an expired holder are saved before another session gets the path.",
)
@pytest.mark.slow
def test_changes_of_a_lapsed_holder_are_saved_before_its_path_is_claimed(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "src/api.py").write_text("half done by bob\n")
    (shell.folder / "src/new.py").write_text("new by bob\n")

    ended = shell.run("claim", "src/api.py", "--as", "ann")

    assert ended.exit == 0
    assert "bob left changes on src/**: saved as R1" in ended.err
    (rescue,) = shell.run_json("rescue", "list")["rescues"]
    assert rescue["reason"] == "takeover of src/** from bob"
    (shell.folder / "src/api.py").write_text("by ann\n")
    assert "rescued" not in shell.run_json("claim", "src/new.py", "--as", "ann")
    again = Path(shell.run_json("rescue", "restore", rescue["id"], "--as", "ann")["path"])
    assert (again / "src/api.py").read_text() == "half done by bob\n"
    assert (again / "src/new.py").read_text() == "new by bob\n"


def test_a_takeover_of_clean_or_other_paths_saves_nothing(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "README.md").write_text("changed by nobody known\n")

    assert "rescued" not in shell.run_json("claim", "src/api.py", "--as", "ann")
    assert "rescued" not in shell.run_json("claim", "README.md", "--as", "ann")
    assert shell.run_json("rescue", "list")["rescues"] == []


def test_taking_the_next_task_saves_changes_of_a_lapsed_holder(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "src/api.py").write_text("half done by bob\n")
    shell.run_json("task", "add", "Mend it", "--path", "src/**", "--as", "ann")

    assert shell.run_json("next", "--as", "ann")["rescued"] == "R1"


def test_a_stopped_open_leaves_nothing(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text('[workspace]\ninstall = ["touch started; sleep 60"]\n')
    git(shell.folder, "add", "landlane.toml")
    git(shell.folder, "commit", "--quiet", "-m", "Settings")
    task = add_task(shell)

    with shell.start("workspace", "open", task, "--as", "ann") as running:
        wait_until((shell.folder.with_name("repository.workspaces") / f"{task}-ann" / "started").exists)
        running.signal(15)
        assert running.end().exit == 143

    assert not (shell.folder.with_name("repository.workspaces") / f"{task}-ann").exists()
    (failed,) = shell.run_json("workspace", "list", "--all")["workspaces"]
    assert failed["state"] == "failed"
    assert "landlane" not in shell.git("branch", "--list")


def test_a_stash_from_before_a_commit_is_merged_onto_it(shell: Shell) -> None:
    (shell.folder / "b.py").write_text("1\n")
    (shell.folder / "c.py").write_text("1\n")
    git(shell.folder, "add", "b.py", "c.py")
    git(shell.folder, "commit", "--quiet", "-m", "Two files")
    shell.run_json("claim", "b.py", "c.py", "--as", "ann")
    (shell.folder / "b.py").write_text("3\n")
    shell.run_json("stash", "save", "--as", "ann")
    (shell.folder / "c.py").write_text("2\n")
    shell.run_json("commit", "-m", "other", "c.py", "--as", "ann")

    shell.run_json("stash", "restore", "--as", "ann")

    assert (shell.folder / "b.py").read_text() == "3\n"
    assert (shell.folder / "c.py").read_text() == "2\n"


def test_the_workspace_of_another_live_session_cannot_be_stashed(shell: Shell) -> None:
    place = Path(open_one(shell)["path"])
    (place / "new.txt").write_text("new\n")

    shell.run_error("WORKSPACE_HELD", "stash", "save", "--as", "bob", "--repo", str(place), exit=3)

    assert (place / "new.txt").exists()


def test_saved_work_is_listed_shown_restored_and_dropped(shell: Shell) -> None:
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "orders.py").write_text("one\ntwo\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Add orders")
    path = Path(open_one(shell)["path"])
    (path / "src" / "orders.py").write_text("one\nthree\nfour\n")
    (path / "notes.md").write_text("a\nb\n")
    (path / "data.bin").write_bytes(b"\0\1\2" * 300)
    closed = shell.run_text("workspace", "close", "W1", "--as", "ann")

    said = [
        closed,
        shell.run_text("rescue", "list"),
        shell.run_text("rescue", "show", "R1"),
        shell.run_text("rescue", "restore", "R1", "--as", "ann"),
        shell.run_text("rescue", "drop", "R1", "--as", "ann"),
        shell.run_text("rescue", "list"),
        shell.run("rescue", "restore", "R99", "--as", "ann").err,
    ]

    text = re.sub(r"\b\d+ s ago", "4 s ago", "\n".join(said)).replace(str(shell.folder.parent), "~")
    text = re.sub(r"[\d.]+ (KB|B)\b", "16 KB", text)
    check_snapshot("workspaces/snapshots/rescue.txt", text.rstrip("\n"))


def test_a_rescue_shows_every_kind_of_change(shell: Shell) -> None:
    for name in ("kept.txt", "gone.txt"):
        (shell.folder / name).write_text("one\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Add files")
    (shell.folder / "gone.txt").unlink()
    (shell.folder / "kept.txt").write_text("two\n")
    (shell.folder / "link").symlink_to("kept.txt")

    shell.run_json("rescue", "take", "--as", "ann")
    changes = shell.run_json("rescue", "show", "R1")["changes"]

    assert [(one["path"], one["change"], one["added"], one["removed"]) for one in changes] == [
        ("gone.txt", "deleted", 0, 1),
        ("kept.txt", "changed", 1, 1),
        ("link", "new", 1, 0),
    ]
    clean = shell.at(open_one(shell)["path"])
    assert clean.run_text("rescue", "take", "--as", "ann").startswith("Nothing to save")


def test_misplaced_changes_say_where_they_belong(shell: Shell) -> None:
    (shell.folder / "a.py").write_text("one\n")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Add files")
    assert shell.run_text("misplaced", "list") == "No misplaced changes.\n"
    shell.run_json("claim", "a.py", "--as", "bob")
    shell.run_json("workspace", "open", add_task(shell), "--as", "bob")
    (shell.folder / "a.py").write_text("two\n")
    (shell.folder / "loose.py").write_text("whose?\n")

    said = [shell.run_text("misplaced", "list"), shell.run_text("misplaced", "move", "a.py", "--as", "bob")]

    text = re.sub(r"\(\d\d:\d\d\)", "(14:20)", "\n".join(said)).replace(str(shell.folder.parent), "~")
    check_snapshot("workspaces/snapshots/misplaced.txt", text.rstrip("\n"))


def test_a_task_over_its_budget_is_not_opened_and_says_so(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", "[budgets]\nday = 1.0\n")
    shell.run_json("task", "add", "Say it", "--path", "n", "--as", "lead")
    shell.run_json("usage", "add", "--cost", "1.4", "--as", "ann")

    refused = shell.run_error("OVER_BUDGET", "workspace", "open", "T1", "--as", "bob", exit=6)

    assert refused["message"].startswith("T1 Say it is over its budget (")
    assert "$1.40" in refused["message"]
