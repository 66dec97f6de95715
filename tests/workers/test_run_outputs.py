"""Outputs: what a worker makes that is in no commit comes to where its task says, and nothing else does."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.workers.running import WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

SPEAKS = 'protocol = "messages"\n'

# Puts its description into its scratch under the path that its title ends with, and hands that back.
WORKER = """
from pathlib import Path
from landlane.worker import serve

def make(work):
    asked = work.assignment
    name = asked.title.split()[-1]
    path = Path(asked.scratch, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(asked.body or "made")
    return work.complete("made", files=[name])

serve(make)
"""


def test_only_the_output_of_a_task_is_copied_back(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "make.py").write_text(WORKER, encoding="utf-8")
    works = WorkerTestbed(
        repository,
        more=f'[agents.maker]\ncommand = ["{sys.executable}", "{tmp_path / "make.py"}"]\n{SPEAKS}'
        '[retries]\nlast = "fail"\n',
    )
    (tmp_path / "elsewhere").mkdir()
    (repository / "linked").symlink_to(tmp_path / "elsewhere")
    (repository / ".git" / "info" / "exclude").write_text("linked\nout\nAGENTS.md\n")
    (repository / "out").mkdir()
    (repository / "out" / "a.txt").write_text("of yesterday")

    def add(path: str, output: str, role: str = "propose") -> str:
        more = {"label": "agent:maker", "max_attempts": 1, "role": role}
        return works.add(f"Make {path}", output=output, **more)

    good = [add("out/a.txt", "out/a.txt"), add("out/b/c.txt", "out/b")]
    bad = {
        add("out/stray.txt", "out/d.txt"): "is not the output of",
        add("README.md", "README.md"): "is kept in git",
        add("linked/e.txt", "linked/e.txt"): "which is not a folder",
        add("AGENTS.md", "AGENTS.md"): "ROLE_FORBIDS",
    }
    hook = (".git/hooks/post-commit", "--path", ".git/hooks/post-commit")
    works.shell.run_error("PATH_OUTSIDE", "task", "add", "Make a hook", "--output", *hook)

    answer = works.run(exit=1)

    assert sorted(answer["summary"]["done"]) == sorted(good)
    assert (repository / "out" / "a.txt").read_text() == "made"
    assert (repository / "out" / "b" / "c.txt").read_text() == "made"
    for task, why in bad.items():
        assert why in works.shell.run_text("task", "log", task), task
    assert sorted(path.name for path in (repository / "out").iterdir()) == ["a.txt", "b"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (repository / "AGENTS.md").exists()
    assert works.git("status", "--porcelain") == ""
    works.check_clean()
