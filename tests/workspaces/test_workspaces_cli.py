"""Workspaces as they are typed: opened by many at once, looked over, closed, pruned, brought back."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.git import git
from tests.support.shell import end_all
from tests.support.waiting import wait_until
from tests.support.workspaces import KINDS, add_remote, advance, commit_file

if TYPE_CHECKING:
    from tests.support.shell import Answer, Shell

pytestmark = pytest.mark.acceptance

CROWD = 16


def add_task(shell: Shell, title: str = "work") -> str:
    return shell.ask("task", "add", title, "--force", "--as", "ann")["task"]["id"]


def open_one(shell: Shell, *more: str, agent: str = "ann") -> Answer:
    return shell.ask("workspace", "open", add_task(shell), "--as", agent, *more)["workspace"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_of_open_is_the_folder(shell: Shell, kind: str) -> None:
    task = add_task(shell)

    told = shell.tell("workspace", "open", task, "--as", "ann", "--kind", kind)

    path = shell.folder.with_name("repository.workspaces") / f"{task}-ann"
    assert told == f"{path}\n"
    assert shell.tell("workspace", "open", task, "--as", "ann", "--kind", kind) == told
    assert shell.at(path).ask("workspace", "list")["workspaces"][0]["path"] == str(path)


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

    ended = end_all(
        [
            shell.start(
                "workspace", "open", task, "--as", f"agent{number}", "--kind", KINDS[number % 2], "--json"
            )
            for number, task in enumerate(tasks)
        ]
    )

    for other in others:
        other.wait(60)
    answers = [one.answer() for one in ended]
    assert [answer["ok"] for answer in answers] == [True] * CROWD
    assert {answer["workspace"]["base"] for answer in answers} == {tip}
    said = "".join(one.err for one in ended)
    assert "retry" not in said.lower()
    assert "fatal" not in said


def test_a_remote_that_is_gone_and_offline(shell: Shell) -> None:
    shutil.rmtree(add_remote(shell.folder))
    task = add_task(shell)

    answer = shell.refuse("OFFLINE", "workspace", "open", task, "--as", "ann", exit=1)
    assert "--offline" in answer["hint"]
    opened = shell.run("workspace", "open", task, "--as", "ann", "--offline")
    assert opened.exit == 0
    assert "OFFLINE: begun from origin/main" in opened.err
    assert shell.ask("workspace", "list")["workspaces"][0]["offline"] is True
    answer = shell.ask("workspace", "open", add_task(shell), "--as", "ann", "--offline")
    assert answer["notes"] == ["OFFLINE: begun from origin/main as it was fetched last"]


def test_a_task_that_another_works_on_is_refused(shell: Shell) -> None:
    task = add_task(shell)
    shell.ask("next", "--as", "bob")

    answer = shell.refuse("TASK_HELD", "workspace", "open", task, "--as", "ann", exit=3)

    assert answer["holder"] == "bob"


def test_a_parent_folder_that_may_not_be_written(shell: Shell) -> None:
    task = add_task(shell)
    folder = shell.folder.with_name("repository.workspaces")
    folder.mkdir()
    folder.chmod(0o555)

    try:
        answer = shell.humble().ask("workspace", "open", task, "--as", "ann", exit=1)
    finally:
        folder.chmod(0o755)

    assert answer["code"] == "FOLDER_FORBIDDEN"
    assert str(folder) in answer["message"]
    assert shell.ask("workspace", "list")["workspaces"] == []


@pytest.mark.slow
def test_the_list_is_readable(shell: Shell) -> None:
    path = open_one(shell)["path"]

    first, heading, row = shell.tell("workspace", "list").splitlines()

    assert first == "1 workspace"
    assert heading.split() == ["id", "task", "agent", "state", "age", "size", "holder", "base", "path"]
    cells = row.split()
    assert cells[:4] == ["W1", "T1", "ann", "open"]
    assert cells[-3:] == ["ann", "current", path]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whoever_stands_in_it_may_close_it(shell: Shell, kind: str) -> None:
    inside = shell.at(open_one(shell, "--kind", kind)["path"])
    (inside.folder / "loose.txt").write_text("loose\n")

    closed = inside.ask("workspace", "close", "W1", "--as", "ann")

    assert closed["workspace"]["state"] == "closed"
    assert not inside.folder.exists()
    restored = shell.ask("rescue", "restore", closed["rescue"], "--as", "ann")
    assert Path(restored["path"], "loose.txt").read_text() == "loose\n"
    (listed,) = shell.ask("rescue", "list")["rescues"]
    assert (listed["agent"], listed["task"], listed["workspace"]) == ("ann", "T1", "W1")
    assert listed["bytes"] > 0
    shell.ask("rescue", "drop", closed["rescue"], "--as", "ann")
    assert shell.ask("rescue", "list")["rescues"] == []


def test_a_file_that_cannot_be_read_stops_the_close_and_nothing_is_deleted(shell: Shell) -> None:
    path = Path(open_one(shell)["path"])
    secret = path / "secret.txt"
    secret.write_text("readable by nobody\n")
    secret.chmod(0)

    answer = shell.humble().ask("workspace", "close", "W1", "--as", "ann", exit=1)

    assert "secret.txt" in answer["message"]
    assert secret.exists()
    assert shell.ask("workspace", "list")["workspaces"][0]["state"] == "open"
    secret.chmod(0o644)
    assert shell.ask("workspace", "close", "W1", "--as", "ann")["rescue"]


@pytest.mark.parametrize("kind", KINDS)
def test_caches_that_may_not_be_written_are_removed_all_the_same(shell: Shell, kind: str) -> None:
    commit_file(shell.folder, ".gitignore", "cache/\n")
    path = Path(open_one(shell, "--kind", kind)["path"])
    deep = path / "cache" / "module@1" / "deep"
    deep.mkdir(parents=True)
    (deep / "file").write_text("cached\n")
    (deep / "link").symlink_to(shell.folder / "README.md")
    for one in (deep / "file", deep, deep.parent, deep.parent.parent):
        one.chmod(0o444 if one.is_file() else 0o555)

    assert shell.humble().ask("workspace", "close", str(path), "--as", "ann")["rescue"] is None

    assert not path.exists()
    assert [one.name for one in path.parent.iterdir()] == []
    assert (shell.folder / "README.md").exists()


def test_a_folder_may_be_named_from_where_one_stands(shell: Shell) -> None:
    inside = shell.at(open_one(shell)["path"])

    assert inside.ask("workspace", "close", ".", "--as", "ann")["workspace"]["id"] == "W1"


def test_anothers_workspace_needs_force(shell: Shell) -> None:
    open_one(shell, agent="bob")

    shell.refuse("WORKSPACE_HELD", "workspace", "close", "W1", "--as", "ann", exit=3)
    assert shell.ask("workspace", "close", "W1", "--as", "ann", "--force")["ok"]
    shell.refuse("UNKNOWN_WORKSPACE", "workspace", "close", "W1", "--as", "ann")


def test_prune_tells_what_became_of_each(shell: Shell) -> None:
    open_one(shell, agent="bob")
    open_one(shell)
    shell.ask("leave", "--as", "bob")

    dry = shell.ask("workspace", "prune", "--dry-run", "--as", "ann")["workspaces"]
    assert [row["outcome"] for row in dry] == ["would be closed", "it is yours"]
    assert shell.tell("workspace", "prune", "--as", "ann") == "W1: closed\nW2: it is yours\n"


def test_prune_gives_room_before_it_closes_anything(shell: Shell) -> None:
    settings = '[workspace]\ncaches = ["target"]\ndisk_floor = "900000TB"\n'
    (shell.folder / "landlane.toml").write_text(settings)
    (shell.folder / ".gitignore").write_text("target\n")
    git(shell.folder, "add", "landlane.toml", ".gitignore")
    git(shell.folder, "commit", "--quiet", "-m", "Settings")
    cache = Path(open_one(shell, agent="bob")["path"], "target")
    cache.mkdir()
    shell.ask("leave", "--as", "bob")

    assert shell.ask("workspace", "prune", "--dry-run", "--as", "ann")["evicted"] == []
    pruned = shell.ask("workspace", "prune", "--as", "ann")

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


def test_saving_and_restoring_by_hand(shell: Shell) -> None:
    place = shell.at(open_one(shell)["path"])
    (place.folder / "README.md").write_text("changed\n")

    stash = place.ask("stash", "save", "--message", "half done", "--as", "ann")["stash"]
    assert place.tell("stash", "list").splitlines()[-1].endswith("half done")
    assert shell.ask("stash", "list")["stashes"] == []
    assert place.tell("stash", "restore", "--as", "ann") == f"restored {stash['id']}\n"
    assert (place.folder / "README.md").read_text() == "changed\n"
    place.refuse("NOTHING_TO_RESTORE", "stash", "restore", "--as", "ann", exit=1)


def lapse(shell: Shell, agent: str, *words: str) -> None:
    """Claim for the shortest time, and wait until it is over."""
    shell.ask("claim", *words, "--ttl", "1s", "--as", agent)
    wait_until(lambda: not shell.ask("claims")["claims"])


@pytest.mark.promise(
    "rescues.takeover",
    "Uncommitted changes of an expired holder are saved before another session gets the path.",
)
@pytest.mark.slow
def test_what_a_lapsed_holder_left_is_saved_before_its_path_is_anothers(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "src/api.py").write_text("half done by bob\n")
    (shell.folder / "src/new.py").write_text("new by bob\n")

    ended = shell.run("claim", "src/api.py", "--as", "ann")

    assert ended.exit == 0
    assert "bob left changes on src/**: saved as R1" in ended.err
    (rescue,) = shell.ask("rescue", "list")["rescues"]
    assert rescue["reason"] == "takeover of src/** from bob"
    (shell.folder / "src/api.py").write_text("by ann\n")
    assert "rescued" not in shell.ask("claim", "src/new.py", "--as", "ann")
    again = Path(shell.ask("rescue", "restore", rescue["id"], "--as", "ann")["path"])
    assert (again / "src/api.py").read_text() == "half done by bob\n"
    assert (again / "src/new.py").read_text() == "new by bob\n"


def test_a_takeover_of_clean_or_other_paths_saves_nothing(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "README.md").write_text("changed by nobody known\n")

    assert "rescued" not in shell.ask("claim", "src/api.py", "--as", "ann")
    assert "rescued" not in shell.ask("claim", "README.md", "--as", "ann")
    assert shell.ask("rescue", "list")["rescues"] == []


def test_the_next_task_takes_over_in_the_same_way(shell: Shell) -> None:
    commit_file(shell.folder, "src/api.py", "as committed\n")
    lapse(shell, "bob", "src/**")
    (shell.folder / "src/api.py").write_text("half done by bob\n")
    shell.ask("task", "add", "Mend it", "--path", "src/**", "--as", "ann")

    assert shell.ask("next", "--as", "ann")["rescued"] == "R1"


def test_an_opening_that_is_stopped_leaves_nothing(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text('[workspace]\ninstall = ["touch ../started; sleep 60"]\n')
    git(shell.folder, "add", "landlane.toml")
    git(shell.folder, "commit", "--quiet", "-m", "Settings")
    task = add_task(shell)

    with shell.start("workspace", "open", task, "--as", "ann") as running:
        wait_until((shell.folder.with_name("repository.workspaces") / "started").exists)
        running.signal(15)
        assert running.end().exit == 143

    assert not (shell.folder.with_name("repository.workspaces") / f"{task}-ann").exists()
    (failed,) = shell.ask("workspace", "list", "--all")["workspaces"]
    assert failed["state"] == "failed"
    assert "landlane" not in shell.git("branch", "--list")


def test_what_was_put_aside_before_a_commit_comes_back_merged(shell: Shell) -> None:
    (shell.folder / "b.py").write_text("1\n")
    (shell.folder / "c.py").write_text("1\n")
    git(shell.folder, "add", "b.py", "c.py")
    git(shell.folder, "commit", "--quiet", "-m", "Two files")
    shell.ask("claim", "b.py", "c.py", "--as", "ann")
    (shell.folder / "b.py").write_text("3\n")
    shell.ask("stash", "save", "--as", "ann")
    (shell.folder / "c.py").write_text("2\n")
    shell.ask("commit", "-m", "other", "c.py", "--as", "ann")

    shell.ask("stash", "restore", "--as", "ann")

    assert (shell.folder / "b.py").read_text() == "3\n"
    assert (shell.folder / "c.py").read_text() == "2\n"


def test_nobody_puts_aside_what_another_does_in_its_workspace(shell: Shell) -> None:
    place = Path(open_one(shell)["path"])
    (place / "new.txt").write_text("new\n")

    shell.refuse("WORKSPACE_HELD", "stash", "save", "--as", "bob", "--repo", str(place), exit=3)

    assert (place / "new.txt").exists()
