"""Roles in a run: who may commit may hand back as well, and what a role can never do is said and left."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

SPEAKS = 'protocol = "messages"\n'

WORKER = """
from pathlib import Path
from landlane.worker import serve

def make(work):
    Path(work.assignment.scratch, "a.txt").write_text("made")
    return work.complete("made", files=["a.txt"])

serve(make)
"""


JUDGE = """
from landlane.worker import serve
serve(lambda work: work.complete("fine", verdict="approve"))
"""


def test_a_committing_worker_may_hand_files_back_as_well(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(WORKER, encoding="utf-8")
    works = WorkerTestbed(
        repository,
        more=f'[agents.maker]\ncommand = ["{sys.executable}", "{tmp_path / "make.py"}"]\n' + SPEAKS,
    )
    task = works.add("Make a.txt", "a.txt", role="code", label="agent:maker")

    works.run()

    assert works.states()[task] == "done"
    assert works.text("a.txt") == "made"
    works.check_clean()


def test_a_task_whose_role_may_not_write_its_paths_is_reported_and_left(works: WorkerTestbed) -> None:
    task = works.edit("Write source as a writer of documents", "log.txt", role="document")

    answer = works.run(exit=1)

    assert [one["task"] for one in answer["summary"]["left"]] == [task]
    assert "the role document may not change log.txt" in answer["summary"]["left"][0]["why"]


@pytest.mark.parametrize("is_reviewed", [False, True])
@pytest.mark.parametrize("role", ["propose", "drafter"])
def test_a_change_returned_by_a_role_that_may_not_commit_lands(
    repository: Path, role: str, is_reviewed: bool
) -> None:
    more = (
        f'[agents.judge]\ncommand = ["{sys.executable}", "-c", {json.dumps(JUDGE)}]\nprotocol = "messages"\n'
    )
    more += '[roles.drafter]\nsummary = "drafts"\nwrites = ["*.txt"]\nverbs = []\n'
    works = WorkerTestbed(repository, more=more)
    task = works.edit("Draft", "a.txt", role=role, **({"label": "reviewer:judge"} if is_reviewed else {}))

    works.run()

    assert set(works.states().values()) == {"done"}
    assert len(works.states()) == (2 if is_reviewed else 1)
    assert works.task(task)["attempt"] == 1
    assert works.text("a.txt") == "Draft"
    works.check_clean()
