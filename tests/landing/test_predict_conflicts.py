"""What `queue list --conflicts` foresees: who conflicts, which files are hot, which order is best."""

from __future__ import annotations

import subprocess
import time

import pytest

from landlane.landing.predict_conflicts import predict_conflicts
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration


def start(testbed: LandingTestbed, **files: str) -> None:
    testbed.configure(
        "[]",
        "[landing.merge.files]\n'LOG' = 'union'\n'COUNT' = 'counter'\n",
        {"LOG": "- a\n", "COUNT": "1\n", **files},
    )


def test_conflicts_are_named_before_anything_lands(testbed: LandingTestbed) -> None:
    start(testbed, a="a\n", b="b\n")
    testbed.branch("landlane/T1-1/work", {"a": "one\n"})
    testbed.branch("landlane/T2-1/work", {"a": "two\n", "b": "two\n"})
    testbed.branch("landlane/T3-1/work", {"b": "three\n"})
    testbed.branch("private", {"a": "not ours\n"})
    testbed.branch("queued", {"c": "x"})
    testbed.submit("queued")
    before = git(testbed.folder, "for-each-ref"), git(testbed.folder, "status", "--porcelain")

    found = predict_conflicts(testbed.prepared_repo)

    assert found["conflicts"] == [
        {"one": "landlane/T1-1/work", "other": "landlane/T2-1/work", "paths": ["a"]},
        {"one": "landlane/T2-1/work", "other": "landlane/T3-1/work", "paths": ["b"]},
    ]
    assert found["order"] == ["queued", "landlane/T1-1/work", "landlane/T3-1/work", "landlane/T2-1/work"]
    assert [(one["path"], one["branches"], one["conflicts"]) for one in found["hot"]] == [
        ("a", 2, 1),
        ("b", 2, 1),
    ]
    assert found["branches"][0] | {"head": ""} == {
        "branch": "queued",
        "landing": "L1",
        "agent": "ann",
        "head": "",
    }
    assert (git(testbed.folder, "for-each-ref"), git(testbed.folder, "status", "--porcelain")) == before


def test_mergeable_file_is_listed_as_hot_but_is_not_a_conflict(testbed: LandingTestbed) -> None:
    start(testbed)
    for number in range(3):
        testbed.branch(
            f"landlane/T{number}-1/work", {"LOG": f"- a\n- {number}\n", "COUNT": "2\n"}, f"Do {number}"
        )

    found = predict_conflicts(testbed.prepared_repo)

    assert found["conflicts"] == []
    assert found["hot"] == [
        {"path": "COUNT", "branches": 3, "conflicts": 0, "class": "counter"},
        {"path": "LOG", "branches": 3, "conflicts": 0, "class": "union"},
    ]


def test_a_conflict_with_the_target_comes_last(testbed: LandingTestbed) -> None:
    start(testbed, a="a\n")
    testbed.branch("landlane/T1-1/work", {"a": "one\n"})
    testbed.branch("landlane/T2-1/work", {"b": "two\n"})
    testbed.commit({"a": "person\n"})

    found = predict_conflicts(testbed.prepared_repo)

    assert found["conflicts"] == [{"one": "landlane/T1-1/work", "other": "main", "paths": ["a"]}]
    assert found["order"] == ["landlane/T2-1/work", "landlane/T1-1/work"]


def test_landed_branch_is_not_open(testbed: LandingTestbed) -> None:
    testbed.configure("[]", 'style = "squash"\n')
    testbed.branch("landlane/T1-1/work", {"a": "one\n"})
    added = add_task(testbed.repo, None, NewTask(title="Write a"))
    assert isinstance(added, Added)
    next_task(testbed.repo, testbed.agent("ann"))
    testbed.submit("landlane/T1-1/work")
    assert testbed.run() is None
    assert git(testbed.folder, "branch", "--list", "landlane/*") != ""

    assert predict_conflicts(testbed.prepared_repo)["branches"] == []


def test_a_folder_against_a_file_and_a_rename_against_a_change_are_seen(testbed: LandingTestbed) -> None:
    start(testbed, a="text\n" * 30)
    testbed.branch("landlane/T1-1/work", {"d": "file"})
    testbed.branch("landlane/T2-1/work", {"d/x": "in a folder"})
    testbed.branch("landlane/T3-1/work", {"a": None, "moved": "text\n" * 30})
    testbed.branch("landlane/T4-1/work", {"a": "text\n" * 29 + "end\n"})

    found = predict_conflicts(testbed.prepared_repo)

    assert [(one["one"][9:11], one["other"][9:11]) for one in found["conflicts"]] == [("T1", "T2")]
    assert len(found["order"]) == 4


def test_suggested_order_lands_the_most_branches(testbed: LandingTestbed) -> None:
    start(testbed, **{f"f{number}": "x\n" for number in range(4)})
    testbed.branch("landlane/T1-1/work", {f"f{number}": "all\n" for number in range(4)})
    for number in range(4):
        testbed.branch(f"landlane/T{number + 2}-1/work", {f"f{number}": f"{number}\n"})

    assert [branch[9:11] for branch in predict_conflicts(testbed.prepared_repo)["order"]] == [
        "T2",
        "T3",
        "T4",
        "T5",
        "T1",
    ]


@pytest.mark.slow
def test_fifty_branches_on_ten_thousand_files_take_seconds(testbed: LandingTestbed) -> None:
    lines = ["blob", "mark :1", "data 5", "text", "", "commit refs/heads/main", "mark :2"]
    lines += ["committer x <x@x> 1 +0000", "data 5", "first", "from refs/heads/main^0"]
    lines += [f"M 100644 :1 src/{number % 100}/f{number}" for number in range(10_000)]
    toml = "[landing]\nchecks = []\n[landing.merge.files]\n'LOG' = 'union'\n"
    lines += [f"M 100644 inline landlane.toml\ndata {len(toml)}\n{toml}"]
    for number in range(50):
        lines += [
            "",
            f"commit refs/heads/landlane/T{number}-1/work",
            "committer x <x@x> 1 +0000",
            "data 1",
            "x",
        ]
        lines += [
            "from :2",
            f"M 100644 inline src/{number}/f{number}",
            "data 2",
            f"{number:02}",
        ]
        lines += ["M 100644 inline LOG", "data 5", f"- {number:02}"]
        lines += [f"M 100644 inline hot{number % 10}", "data 2", f"{number:02}"]
    script = "\n".join(lines) + "\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=testbed.folder, input=script.encode(), check=True)
    begun = time.monotonic()

    found = predict_conflicts(testbed.prepared_repo)

    assert len(found["order"]) == 50
    assert len(found["conflicts"]) == 10 * (5 * 4 // 2)
    assert found["hot"][0]["conflicts"] == 10
    assert time.monotonic() - begun < 30, "a busy machine may be slow; alone it takes about two"
