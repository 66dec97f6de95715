"""What reaches a worker, in the words of the practice guides: rules, results of parts, outputs, feedback."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox]

RULES = "# Rules\n\n## 1. Be kind\n\nSay what you did.\n"
# Returns its assignment as the summary, and fails in its first attempt if the body says so.
WORKER = """
import json
from landlane.worker import Failure, serve
from landlane.values import as_dict

def work(work):
    if "fail first" in (work.assignment.body or "") and work.assignment.attempt == 1:
        raise Failure("the grammar is ambiguous")
    return work.complete(json.dumps({k: v for k, v in as_dict(work.assignment).items() if k != "body"}))

serve(work)
"""


@pytest.fixture
def works(repository: Path, tmp_path: Path) -> WorkerTestbed:
    (tmp_path / "worker.py").write_text(WORKER)
    (repository / "RULES.md").write_text(RULES)
    more = (
        f'[agents.echo]\ncommand = ["{sys.executable}", "{tmp_path / "worker.py"}"]\nprotocol = "messages"\n'
    )
    return WorkerTestbed(repository, more=more)


def assignment_of(works: WorkerTestbed, task: str) -> dict[str, Any]:
    return json.loads(works.task(task)["result"])


def chore(works: WorkerTestbed, title: str, *words: str, body: str = "") -> str:
    common = ("--kind", "chore", "--role", "explore", "--label", "agent:echo", "--force")
    return (
        works.shell.run_json("task", "add", title, *common, "--body", "-", *words)["task"]["id"]
        if not body
        else (
            works.shell.run(
                "task", "add", title, *common, "--body", "-", *words, "--json", stdin=body
            ).json()["task"]["id"]
        )
    )


@pytest.mark.promise(
    "fanout.results-reach-the-join", "The worker that joins a split task gets the results of all its parts."
)
@pytest.mark.parametrize("is_taken", [True, False])
def test_fan_results_reach_the_join_worker_however_the_parent_was_split(
    works: WorkerTestbed, is_taken: bool
) -> None:
    parent = chore(works, "Join them")
    plan = works.root.parent / "parts.toml"
    parts = "".join(
        f'[[task]]\ntitle = "Part {name}"\nkind = "chore"\nrole = "explore"\nagent = "echo"\n'
        for name in "AB"
    )
    plan.write_text(f'title = "Parts"\n{parts}')
    if is_taken:
        works.shell.run_json("next", "--role", "explore")
    words = ("task", "split", parent, str(plan))
    ended = works.shell.run(*words, "--json")
    assert ended.exit == 0 or not is_taken, ended
    if ended.exit:  # a task that nobody has taken is split by whoever takes it for that
        works.shell.run_json("next", "--role", "explore")
        works.shell.run_json(*words)

    works.run()

    results = assignment_of(works, parent)["results"]
    assert [line.split(":")[0].partition(" ")[2] for line in results] == ["Part A", "Part B"]
    assert all("done" in line for line in results)
    works.check_clean()


def test_the_assignment_carries_output_next_action_history_and_feedback(works: WorkerTestbed) -> None:
    before = chore(works, "Look first")
    task = chore(
        works,
        "Then act",
        "--after",
        before,
        "--next",
        "read the notes",
        "--max-attempts",
        "2",
        body="fail first",
    )

    works.run()

    got = assignment_of(works, task)
    assert got["attempt"] == 2
    assert got["next_action"] == "read the notes"
    assert got["lineage"][0].startswith(f"{before} Look first: done")
    assert got["feedback"] == [got["feedback"][0]]
    assert "the grammar is ambiguous" in got["feedback"][0]


@pytest.mark.promise("rules.reach-workers", "The assignment of a worker carries the rules and their version.")
def test_rules_reach_workers_with_their_assignment(works: WorkerTestbed) -> None:
    task = chore(works, "Look")

    works.run()

    got = assignment_of(works, task)
    assert got["rules"] == RULES
    assert got["rules_version"] == works.shell.run_json("rules", "show")["version"]
    entries = works.shell.run_json("log", "--since", "all", "-v")["entries"]
    read = [one["data"] for one in entries if one["kind"] == "rules.acknowledged"]
    assert [one["how"] for one in read] == ["assignment"]


@pytest.mark.promise("rules.reach-commands", "join and next carry the rules that are new to the session.")
def test_rules_reach_agents_that_use_the_commands(works: WorkerTestbed) -> None:
    joined = works.shell.run_json("join", "ann")
    assert "Be kind" in joined["rules"]["text"]
    assert works.shell.run_json("join", "ann")["rules"] == {**joined["rules"], "text": None}
    (works.root / "RULES.md").write_text(RULES + "\n## 2. Be brief\n\nShort words.\n")
    works.git("commit", "--quiet", "-am", "More rules")
    chore(works, "Look")

    taken = works.shell.with_env(LANDLANE_AGENT="ann").run_json("next", "--role", "explore")

    assert "Be brief" in taken["rules"]["text"]
    assert "Be kind" not in taken["rules"]["text"]  # it has not changed
    assert "Be kind" in works.shell.run_text("join", "bob")
