"""Workers in the role that they have unless another is named: they ask and hand over, and lose no change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.calling import at_terminal
from tests.running_support import Works

if TYPE_CHECKING:
    from pathlib import Path

# What is told of an earlier attempt can be had by its name, also in a clone to be thrown away.
TAKE_OVER = (
    "git cherry-pick --no-commit $(git --git-dir=$(cat .git/interlock-home) rev-parse interlock/T1-1/work)"
)


@pytest.fixture
def readers(repository: Path) -> Works:
    """Workers that may only look, as they are by default."""
    works = Works(repository)
    text = (works.root / "interlock.toml").read_text(encoding="utf-8").replace('role = "code"\n', "")
    (works.root / "interlock.toml").write_text(text, encoding="utf-8")
    works.git("commit", "--quiet", "--all", "-m", "Without a role")
    return works


def test_what_a_worker_returned_outlives_its_question(readers: Works) -> None:
    works = readers
    asked = "interlock gate ask T1 --why 'Say it?' --json > asked.json; test $? = 7 && rm asked.json"
    task = works.add(
        "Say it",
        "said.txt",
        script={"append": {"said.txt": "as it was\n"}, "run": asked},
        later={2: {"run": TAKE_OVER}},
    )

    answer = works.run(exit=7)

    assert [one["task"] for one in answer["summary"]["waiting_for_person"]] == [task]
    (gate,) = works.shell.ask("gate", "list")["gates"]
    assert (gate["task"], gate["why"]) == (task, "Say it?")
    assert works.git("show", "interlock/T1-1/work:said.txt") == "as it was"
    assert works.git("ls-tree", "--name-only", "main", "said.txt") == ""

    assert at_terminal(works.shell, "gate", "approve", gate["id"], "--why", "loudly")[0] == 0
    works.run()

    assert works.task(task)["state"] == "done"
    assert works.text("said.txt") == "as it was"
    works.check_clean()
