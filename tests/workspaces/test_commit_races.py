"""Many commit at once: each commit holds its own paths, none is lost, and a killed one is in nobody's way."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import LANDLANE, Shell, wait_for_all
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

# How often everything is repeated; read now, because the sealed home of a test removes the variable.
ROUNDS = int(os.environ.get("LANDLANE_COMMIT_ROUNDS", "1"))

pytestmark = [pytest.mark.acceptance, pytest.mark.soak]


def commit_at_once(shells: dict[str, Shell], path: str, message: str) -> None:
    """Every agent commits its own file in the same moment; all must succeed."""
    started = [
        shell.start("commit", "-m", f"{message} {name}", path.format(name), "--as", name, "--json")
        for name, shell in shells.items()
    ]
    for ended in wait_for_all(started):
        assert ended.exit == 0, ended


def files_of_commits(shell: Shell, since: str, *others: str) -> list[list[str]]:
    """The files of each commit, as sorted lists."""
    said = shell.git("log", "--format=%x01", "--name-only", f"{since}..HEAD", *others)
    return sorted(sorted(part.split()) for part in said.split("\x01")[1:])


def set_up(shell: Shell, count: int) -> dict[str, Shell]:
    """So many agents in one checkout, each with a claim on its own file."""
    names = [f"agent{number:02}" for number in range(count)]
    for name in names:
        shell.run_json("claim", f"{name}.txt", "--as", name)
    return dict.fromkeys(names, shell)


def write(shell: Shell, name: str, text: str) -> None:
    (shell.folder / name).write_text(text, encoding="utf-8")


def install_hook(shell: Shell, name: str, script: str) -> Path:
    hook = shell.folder / ".git" / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    hook.chmod(0o755)
    return hook


@pytest.mark.promise(
    "commits.own-files",
    "Agents that commit at once in one checkout get one commit each, with exactly their own files.",
)
@pytest.mark.slow
@pytest.mark.parametrize("count", [4, 13])
def test_every_agent_in_one_checkout_gets_a_commit_of_its_own_file(shell: Shell, count: int) -> None:
    shells = set_up(shell, count)
    for number in range(ROUNDS):
        base = shell.git("rev-parse", "HEAD").strip()
        for name in shells:
            write(shell, f"{name}.txt", f"round {number}\n")

        commit_at_once(shells, "{}.txt", f"Round {number} of")

        assert files_of_commits(shell, base) == [[f"{name}.txt"] for name in shells]
        assert shell.git("status", "--porcelain") == ""


def test_agents_that_add_everything_commit_only_their_own_paths(shell: Shell) -> None:
    shells = set_up(shell, 4)
    base = shell.git("rev-parse", "HEAD").strip()
    for name in shells:
        write(shell, f"{name}.txt", "text\n")
    adders = [
        subprocess.Popen(["git", "add", "-A"], cwd=shell.folder, stderr=subprocess.DEVNULL) for _ in shells
    ]

    commit_at_once(shells, "{}.txt", "Work of")

    for adder in adders:
        adder.wait(30)
    assert files_of_commits(shell, base) == [[f"{name}.txt"] for name in shells]
    assert shell.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_every_worktree_gets_all_its_commits(shell: Shell, tmp_path: Path) -> None:
    names = [f"agent{number:02}" for number in range(16)]
    shells: dict[str, Shell] = {}
    for name in names:
        shell.git("worktree", "add", "--quiet", "-b", name, str(tmp_path / name))
        shells[name] = Shell(tmp_path / name)
        shell.run_json("claim", f"{name}.txt", "--as", name)
    rounds = ROUNDS + 1  # the second commit of each branch has a parent that was made in the race
    for number in range(rounds):
        for name in names:
            write(shells[name], f"{name}.txt", f"round {number}\n")
        commit_at_once(shells, "{}.txt", f"Round {number} of")

    for name in names:
        assert files_of_commits(shells[name], "main") == [[f"{name}.txt"]] * rounds


def test_hooks_never_run_at_the_same_time(shell: Shell) -> None:
    """As two that stash what is not staged would do harm to each other."""
    install_hook(shell, "pre-commit", "mkdir .git/alone || exit 1; sleep 0.1; rmdir .git/alone")
    shells = set_up(shell, 4)
    for name in shells:
        write(shell, f"{name}.txt", "text\n")

    commit_at_once(shells, "{}.txt", "Work of")


def test_an_untracked_file_of_another_agent_is_not_committed(shell: Shell) -> None:
    shell.run_json("claim", "theirs.txt", "--as", "bob")
    write(shell, "theirs.txt", "work of bob\n")
    shell.run_json("claim", "mine.txt", "--as", "ann")
    write(shell, "mine.txt", "work of ann\n")

    refused = shell.run_error("CLAIM_HELD", "commit", "-m", "All", ".", "--as", "ann", exit=3)

    assert (refused["holder"], refused["path"]) == ("bob", "theirs.txt")
    assert refused["until"].endswith("Z")
    assert shell.git("status", "--porcelain") == "?? mine.txt\n?? theirs.txt\n"
    shell.run_json("release", "--all", "--as", "bob")
    shell.run_error("NOT_CLAIMED", "commit", "-m", "It", "theirs.txt", "--as", "ann", exit=6)


@pytest.mark.promise(
    "commits.take-nothing-back",
    "A commit that would revert landed work of others is refused, and the revert is shown.",
)
def test_a_stale_tree_on_a_fetched_base_does_not_delete_what_a_peer_landed(
    shell: Shell, tmp_path: Path
) -> None:
    origin = tmp_path / "origin.git"
    shell.git("clone", "--quiet", "--bare", ".", str(origin))
    shell.git("remote", "add", "origin", str(origin))
    peer = shell.at(tmp_path)
    peer.git("clone", "--quiet", str(origin), "peer")
    write(peer.at("peer"), "peer.txt", "landed\n")
    peer.at("peer").git("add", "peer.txt")
    peer.at("peer").git("commit", "--quiet", "-m", "Of the peer")
    peer.at("peer").git("push", "--quiet")
    write(shell, "mine.txt", "mine\n")
    shell.run_json("claim", ".", "--as", "ann")
    shell.git("fetch", "--quiet")
    shell.git("reset", "--soft", "origin/main")

    refused = shell.run_error("WOULD_REVERT", "commit", "-m", "Mine", ".", "--as", "ann", exit=4)
    assert [one["path"] for one in refused["undone"]] == ["peer.txt"]
    assert "Of the peer" in refused["message"]

    made = shell.run_json("commit", "-m", "Mine", "mine.txt", "--as", "ann")
    assert (made["paths"], made["left_alone"]) == (["mine.txt"], 1)
    assert "peer.txt" in shell.git("ls-tree", "--name-only", "HEAD")

    shell.run_json("commit", "-m", "Away with it", "peer.txt", "--revert", "--as", "ann")
    assert "peer.txt" not in shell.git("ls-tree", "--name-only", "HEAD")


@pytest.mark.parametrize("is_whole_group", [False, True])
def test_a_commit_killed_in_a_hook_does_not_block_later_commits(shell: Shell, is_whole_group: bool) -> None:
    hook = install_hook(shell, "pre-commit", "touch .git/begun; sleep 60")
    for name in ("ann", "bob"):
        shell.run_json("claim", f"{name}.txt", "--as", name)
        write(shell, f"{name}.txt", "text\n")
    before = shell.git("ls-files", "--stage")
    killed = subprocess.Popen(
        [LANDLANE, "commit", "-m", "Mine", "ann.txt", "--as", "ann"],
        cwd=shell.folder,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
    )
    wait_until((shell.folder / ".git" / "begun").exists)
    (os.killpg if is_whole_group else os.kill)(killed.pid, signal.SIGKILL)
    killed.wait(10)
    hook.unlink()
    assert shell.git("ls-files", "--stage") == before

    begun = time.monotonic()
    shell.run_json("commit", "-m", "Mine", "bob.txt", "--as", "bob")
    assert time.monotonic() - begun < 5
    shell.run_json("commit", "-m", "Mine", "ann.txt", "--as", "ann")

    assert files_of_commits(shell, "HEAD~2") == [["ann.txt"], ["bob.txt"]]
    assert shell.git("status", "--porcelain") == ""
    assert not list((shell.folder / ".git").glob("landlane-index-*"))


@pytest.mark.slow
def test_commits_killed_at_any_moment_leave_nothing_half_done(shell: Shell) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    lots = random.Random(seed)
    base = shell.git("rev-parse", "HEAD").strip()
    for name in ("ann", "bob"):
        shell.run_json("claim", f"{name}.txt", "--as", name)
    kills = 3 * ROUNDS
    for number in range(kills):
        write(shell, "ann.txt", f"{number}\n")
        write(shell, "bob.txt", f"{number}\n")
        killed = subprocess.Popen(
            [LANDLANE, "commit", "-m", "Mine", "ann.txt", "--as", "ann"],
            cwd=shell.folder,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(lots.uniform(0.05, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(10)
        shell.run_json("commit", "-m", "Mine", "bob.txt", "--as", "bob")
        assert shell.git("status", "--porcelain") in ("", " M ann.txt\n", "?? ann.txt\n")

    files = files_of_commits(shell, base)
    assert files.count(["bob.txt"]) == kills
    assert all(paths in (["ann.txt"], ["bob.txt"]) for paths in files)
    assert shell.git("fsck", "--no-dangling", "--no-progress") == ""


def test_a_hook_can_ask_landlane_but_not_commit_with_it(shell: Shell) -> None:
    calls = (
        f"{LANDLANE} check a.txt --as ann > .git/checked || exit 1\n"
        f"{LANDLANE} commit -m Inner b.txt --as ann --json > .git/inner; echo $? >> .git/inner"
    )
    install_hook(shell, "pre-commit", calls)
    shell.run_json("claim", "*.txt", "--as", "ann")
    write(shell, "a.txt", "a\n")
    write(shell, "b.txt", "b\n")
    begun = time.monotonic()

    assert shell.run_json("commit", "-m", "Outer", "a.txt", "--as", "ann")["paths"] == ["a.txt"]

    assert time.monotonic() - begun < 10
    assert (shell.folder / ".git/checked").read_text(encoding="utf-8") == "✓ ann may change a.txt\n"
    inner = (shell.folder / ".git/inner").read_text(encoding="utf-8")
    assert '"code": "GIT_BUSY"' in inner
    assert inner.endswith("\n5\n")


def test_who_shows_the_trailers_of_the_last_commit(shell: Shell) -> None:
    token = shell.run_json("claim", "a.txt", "--as", "ann", "--task", "T7")["granted"][0]["token"]
    write(shell, "a.txt", "a\n")

    made = shell.run_json("commit", "-m", "Add a", "-m", "Because.", "a.txt", "--as", "ann")

    assert made["branch"] == "main"
    assert made["trailers"]["tokens"] == [token]
    assert made["changed_by_hooks"] == []
    change = shell.run_json("who", "a.txt")["last_change"]
    assert {key: change[key] for key in ("agent", "session", "task", "tokens")} == made["trailers"]
    assert change["commit"] == made["commit"] == shell.git("rev-parse", "HEAD").strip()
    assert f"last change  {made['commit'][:8]} Add a (T7, ann, " in shell.run_text("who", "a.txt")
    write(shell, "a.txt", "b\n")
    said = shell.run_text("commit", "--message", "Change a", "a.txt", "--as", "ann")
    assert said == f"✓ committed {shell.git('rev-parse', 'HEAD')[:8]} Change a\n"


def test_a_message_is_given_once(shell: Shell) -> None:
    shell.run_error("BOTH_NAMED", "commit", "-m", "a", "--message", "b", "README.md")
    shell.run_error("NO_MESSAGE", "commit", "README.md")
