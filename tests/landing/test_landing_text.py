"""What `land`, `queue list` and `queue show` print, and the facts behind it, compared with snapshots."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from tests.support.shell import CommandResult

pytestmark = pytest.mark.acceptance

PYTEST = r"""
case "$(cat word 2>/dev/null)" in
bad)
  echo 'E   KeyError: '"'name'"
  echo 'FAILED tests/test_search.py::test_empty - KeyError'
  echo '===== 1 failed, 212 passed in 38.2s ====='
  exit 2;;
esac
test ! -e left || test ! -e right
"""


def configure(shell: Shell, more: str = "") -> None:
    (shell.folder / "check.sh").write_text(PYTEST)
    text = f'[landing]\nchecks = [{{ run = "sh check.sh", name = "make test" }}]\nresident = false\n{more}'
    (shell.folder / "landlane.toml").write_text(text)
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Settings")


def branch(shell: Shell, name: str, agent: str = "ann", **files: str) -> Shell:
    """Return a worktree with a branch of one commit whose paths are claimed."""
    folder = shell.folder.parent / name
    shell.git("worktree", "add", "--quiet", "-b", name, str(folder), "main")
    there = shell.at(folder)
    for path, text in files.items():
        (folder / path).write_text(text)
        there.run_json("claim", path, "--as", agent)
    there.git("add", "--all")
    there.git("commit", "--quiet", "-m", f"Write {' '.join(files)}", "-m", "Landlane-Agent: none")
    return there


def masked(text: str) -> str:
    """Return a text without hashes and without times that depend on the machine."""
    text = re.sub(r"\b[0-9a-f]{8}\b", "01234567", text)
    text = re.sub(r"\b\d+:\d\d\b", "0:00", text)
    text = re.sub(r"(under \d+ s|\b\d+ s\b)(?! in line)", "1 s", text)
    return text.replace("in 1 s", "after 1 s").rstrip()


def check_result(name: str, ended: CommandResult) -> None:
    text = f"exit {ended.exit}\n--- stderr\n{ended.err}--- stdout\n{ended.out}"
    check_snapshot(f"landing/snapshots/{name}.txt", masked(text))


def test_queued_then_waiting_attaches_to_the_same_landing(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "search", word="good")

    check_result("land_queued", one.run("land", "--as", "ann"))
    check_snapshot("landing/snapshots/queue_list.txt", masked(shell.run_text("queue")))
    check_result("land_waited", one.run("land", "--wait", "--as", "ann"))
    check_snapshot("landing/snapshots/queue_show_landed.txt", masked(shell.run_text("queue", "show", "l1")))
    check_snapshot("landing/snapshots/queue_list_empty.txt", masked(shell.run_text("queue", "list")))
    check_snapshot("landing/snapshots/queue_show_passing.txt", masked(shell.run_text("queue", "show")))
    assert shell.run_json("queue", "list", "--all")["landings"][0]["id"] == "L1", "there is only one"


def test_bounced_shows_the_lines_that_failed(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "search", word="bad")

    check_result("land_bounced", one.run("land", "--wait", "--as", "ann"))
    check_snapshot("landing/snapshots/queue_show_bounced.txt", masked(shell.run_text("queue", "show", "L1")))

    (check,) = shell.run_json("queue", "show", "L1")["landing"]["checks"]
    assert (check["name"], check["state"], check["exit"]) == ("make test", "failed", 2)
    assert check["lines"][0] == "tests/test_search.py::test_empty"
    assert isinstance(check["seconds"], float)
    assert "FAILED tests" in shell.run_text("queue", "show", "L1", "-v")


@pytest.mark.slow
def test_a_landing_that_fails_only_together_with_another_names_it(shell: Shell) -> None:
    configure(shell)
    left, right = branch(shell, "to-left", left="x"), branch(shell, "to-right", "bob", right="x")
    left.run_json("land", "--wait", "--as", "ann")

    check_result("land_pair", right.run("land", "--wait", "--as", "bob"))


def test_held_waits_for_a_person(shell: Shell) -> None:
    configure(shell, 'gate = ["word"]\n')
    one = branch(shell, "search", word="good")

    check_result("land_held", one.run("land", "--wait", "--as", "ann"))
    check_snapshot("landing/snapshots/queue_list_held.txt", masked(shell.run_text("queue")))


def test_a_failing_target_is_shown_with_start_culprit_and_lines(shell: Shell) -> None:
    configure(shell)
    branch(shell, "first", first="x").run_json("land", "--wait", "--as", "ann")
    (shell.folder / "word").write_text("bad")
    shell.git("add", "word")
    author = ("--author", "dora <dora@example.com>")
    shell.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "Use httpx", *author)
    one = branch(shell, "search", other="x")

    check_result("land_target_failing", one.run("land", "--wait", "--as", "ann"))
    check_snapshot("landing/snapshots/queue_show_failing.txt", masked(shell.run_text("queue", "show")))
    assert "main failing at" in shell.run_text("queue", "list")

    target = shell.run_json("queue", "show")["target"]
    culprit = target["failure"]["culprit"]
    assert (target["state"], target["waiting"], target["failure"]["exit"]) == ("failing", ["L2"], 2)
    assert (culprit["subject"], culprit["author"], culprit["landing"]) == ("Use httpx", "dora", None)
    assert target["failure"]["suspects"] == [shell.git("rev-parse", "main").strip()]

    shell.run_json("store", "rebuild")
    again = shell.run_json("queue", "show")["target"]
    assert again["failure"] == target["failure"], "the journal has it, too"


@pytest.mark.slow
def test_estimates_need_three_samples(shell: Shell) -> None:
    configure(shell)
    for number in range(3):
        one = branch(shell, f"b{number}", **{f"f{number}": "x"})
        assert one.run_json("land", "--as", "ann")["landing"]["eta_seconds"] is None
        one.run_json("land", "--wait", "--as", "ann")

    one = branch(shell, "last", word="good")
    answer = one.run_json("land", "--as", "ann")

    assert (answer["landing"]["eta_seconds"], answer["position"]) == (0, 1)
    check_snapshot("landing/snapshots/queue_list_estimated.txt", masked(shell.run_text("queue")))


def test_waiting_times_out_and_the_landing_stays(shell: Shell) -> None:
    configure(shell)
    one = branch(shell, "slow", word="good")
    (one.folder / "check.sh").write_text("sleep 20\n")
    one.run_json("claim", "check.sh", "--as", "ann")
    one.git("commit", "--quiet", "--all", "-m", "Sleep")
    started = time.monotonic()

    ended = one.run("land", "--wait", "1s", "--as", "ann")

    assert time.monotonic() - started < 15
    check_result("land_timed_out", ended)
    assert shell.run_json("queue", "show", "L1")["landing"]["state"] == "queued"


def test_refusals_name_the_fix(shell: Shell) -> None:
    bare = branch(shell, "bare", a="x")
    texts = [bare.run("land", "--as", "ann")]
    configure(shell)
    texts += [shell.run("land", "--as", "ann")]
    shell.git("branch", "feature")
    texts += [shell.run("land", "feature", "--as", "ann")]
    check_snapshot(
        "landing/snapshots/land_refused.txt",
        masked("\n".join(f"exit {ended.exit}\n{ended.err.rstrip()}" for ended in texts)),
    )
