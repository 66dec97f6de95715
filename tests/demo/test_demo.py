"""The demo as a newcomer plays it: its table is true, it touches nothing around it, and it leaves nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from landlane.testing.repositories import make_repository
from tests.support.shell import LANDLANE, Shell, fingerprint
from tests.support.waiting import wait_until

# One worker plays the demo once for all tests that look at it.
pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox, pytest.mark.xdist_group("demo")]

LIMIT_SECONDS = 120.0


class DemoResult(NamedTuple):
    """A demo that was played with --keep, from inside of a repository that is none of its business."""

    shell: Shell
    before: dict[str, str]
    home: Path
    answer: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    root = tmp_path_factory.mktemp("d")
    repository = make_repository(root / "mine", files={"held.py": "x = 1\n"})
    home = root / "home"
    home.mkdir()
    shell = Shell(repository, {"HOME": str(home), "TMPDIR": str(root)})
    shell.run_json("claim", "held.py", "--as", "ann")
    before = fingerprint(repository)
    # As a hook would see the world: everything here points to the repository that must not be touched.
    inside = shell.with_env(
        GIT_DIR=str(repository / ".git"),
        GIT_WORK_TREE=str(repository),
        LANDLANE_STORE=str(repository / ".git" / "landlane" / "store.db"),
        LANDLANE_AGENT="ann",
        LANDLANE_SESSION="s-xxxxxxxxxx:nonsense",
    )
    ended = inside.run("demo", "--json", "--tasks", "6", "--keep", limit_seconds=LIMIT_SECONDS)
    assert ended.exit == 0, ended
    answer = ended.json()
    return DemoResult(shell, before, home, answer, Path(answer["folder"]))


@pytest.mark.promise(
    "demo.touches-nothing",
    "The demo does not touch the repository, store or session it was started in.",
)
def test_the_demo_keeps_its_promises_and_touches_nothing_around_it(played: DemoResult) -> None:
    ours = played.answer["ways"]["landlane"]

    assert (ours["landed"], ours["lost"], ours["duplicates"]) == (6, 0, 0)
    assert (ours["red_seconds"], ours["stale_deploys"], ours["green_at_end"]) == (0, 0, True)
    assert set(ours) - {"tasks"} <= set(played.answer["definitions"])
    assert fingerprint(played.shell.folder) == played.before
    assert list(played.home.iterdir()) == []
    assert _left_running(played.folder) == []


@pytest.mark.promise(
    "demo.table-is-true",
    "Every figure in the demo's table can be verified from the files it leaves.",
)
def test_the_table_of_the_demo_is_found_again_by_plain_git(played: DemoResult) -> None:
    for way, shown in played.answer["ways"].items():
        found = _count(played.folder, way)
        assert {name: shown[name] for name in found} == found, way
        assert abs(_red_seconds(played.folder, way) - shown["red_seconds"]) < 0.2, way
    # Where nobody coordinates, the story really collides.
    assert not played.answer["ways"]["naive"]["green_at_end"]
    assert played.answer["ways"]["worktrees"]["conflicts"] > 0


def test_what_the_demo_kept_can_be_looked_at_and_counted_again(played: DemoResult) -> None:
    again = played.shell.run_json("demo", "--recount", str(played.folder))
    kept = played.shell.at(played.folder / "landlane" / "shop")

    assert again == played.answer
    assert {task["state"] for task in kept.run_json("task", "list", "--all")["tasks"]} == {"done"}
    assert kept.run_json("log", "--verify")["ok"]
    refused = played.shell.run("demo", "--recount", str(played.home), "--json")
    assert refused.json()["code"] == "NO_DEMO"


@pytest.mark.promise(
    "demo.leaves-nothing",
    "Ctrl-C ends the demo with all its processes and removes its folder.",
)
def test_ctrl_c_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    # Neither a repository nor a home is there.
    folder = tmp_path / "t"
    folder.mkdir()
    process = subprocess.Popen(
        [LANDLANE, "demo", "--tasks", "4", "--way", "landlane"],
        cwd=tmp_path,
        env={**os.environ, "HOME": "/nonexistent", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: list(folder.glob("*/landlane/shop/.git/landlane/attempts/*")) != [])
        (stage,) = folder.iterdir()
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()

    assert process.returncode == 130, said
    assert "INTERRUPTED" in said
    assert list(folder.iterdir()) == []
    assert _left_running(stage) == []


def _left_running(folder: Path) -> list[str]:
    """Processes that have the private home of a demo."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={folder}/home".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


# ------------------------------------------------------------------------------ the table, by other means


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    return done.stdout.strip()


def _is_in(root: Path, branch: str, task: dict[str, Any]) -> bool:
    found = _git(root, "grep", "--name-only", "--fixed-strings", f"work[{task['key']}]", branch).split()
    paths = [one.split(":", 1)[1] for one in found]
    return all(any(fnmatch(path, place) for path in paths) for place in task["places"])


def _count(folder: Path, way: str) -> dict[str, Any]:
    story = json.loads((folder / "story.json").read_text())
    root = folder / way / "shop"
    branches = _git(root, "branch", "--format=%(refname:short)").split()
    missing = [task for task in story["tasks"] if not _is_in(root, "main", task)]
    lost = [
        task
        for task in missing
        if task["id"] in _finished(folder, way) and not any(_is_in(root, one, task) for one in branches)
    ]
    features = _git(root, "grep", "--only-matching", "-h", r"work\[[a-z-]*\]", "main", "--", "shop/features")
    keys = features.split()
    unmerged = [one for one in _git(root, "branch", "--no-merged", "main").split() if one.startswith("task/")]
    tips = [line.split() for line in (folder / way / "target.log").read_text().splitlines()]
    tips.sort(key=lambda words: int(words[0]))
    stale, live = 0, ""
    for line in (folder / way / "deploys.log").read_text().splitlines():
        at, commit, _ = line.split()
        tip = [words[2] for words in tips if int(words[0]) <= int(at)][-1]
        is_back = bool(live) and _git(root, "merge-base", live, commit) != live
        stale, live = stale + (commit != tip or is_back), commit
    return {
        "tasks": len(story["tasks"]),
        "landed": len(story["tasks"]) - len(missing),
        "lost": len(lost),
        "conflicts": len(unmerged),
        "duplicates": len(keys) - len(set(keys)),
        "stale_deploys": stale,
        "green_at_end": _is_green(root, "main"),
    }


def _finished(folder: Path, way: str) -> set[str]:
    log = folder / way / "finished.log"
    if log.exists():
        return {line.split()[1] for line in log.read_text().splitlines()}
    return {task["id"] for task in json.loads((folder / "story.json").read_text())["tasks"]}


def _is_green(root: Path, commit: str) -> bool:
    packed = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True)
    place = root.parent / f"tried-{commit}"
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(place, filter="data")
    return not subprocess.run([sys.executable, "-B", "check.py"], cwd=place, capture_output=True).returncode


def _red_seconds(folder: Path, way: str) -> float:
    story = json.loads((folder / "story.json").read_text())
    root = folder / way / "shop"
    tips = [line.split() for line in (folder / way / "target.log").read_text().splitlines()]
    times = [*sorted(int(words[0]) for words in tips), story["ways"][way]["ended"]]
    # Each tip contains the one before: git tells their order.
    order = _git(root, "rev-list", "--topo-order", "--reverse", "main").split()
    commits = sorted((words[2] for words in tips), key=order.index)
    return sum(
        (times[number + 1] - times[number]) / 1000
        for number, commit in enumerate(commits)
        if not _is_green(root, commit)
    )
