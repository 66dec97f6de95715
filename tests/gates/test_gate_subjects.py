"""What a person is asked about, with real git: branches in clones, files, what has moved, and the risk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.errors import Malformed
from landlane.gates.subject import ask_person, collect_evidence, describe_subject_change, resolve_subject
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace
from tests.support.git import commit_text, git_line
from tests.support.landing_crashes import join

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.repository import Repository
    from landlane.sessions.model import Session

pytestmark = pytest.mark.integration


@pytest.fixture
def repo(repository: Path) -> Iterator[Repository]:
    found = open_repository(str(repository))
    yield found
    found.close()


def take(repo: Repository, session: Session, *paths: str) -> str:
    add_task(repo, session, NewTask(title="Say y", paths=paths), force=True)
    picked = next_task(repo, session)
    assert isinstance(picked, Picked)
    return picked.task.id


def commit(folder: str, **files: str) -> str:
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    git_line(folder, "add", ".")
    git_line(folder, "commit", "--quiet", "-m", "Work")
    return git_line(folder, "rev-parse", "HEAD")


def test_a_question_from_a_sandbox_is_about_its_clone_and_a_person_can_inspect_it(repo: Repository) -> None:
    ann = join(repo, "ann")
    task = take(repo, ann, "src/**")
    place = open_workspace(repo.require_git(), ann, task, kind=CLONE).workspace
    head = commit(place.path, one="1\n2\n", two="x\n")
    inside = open_repository(place.path)
    try:
        prepared = inside.require_git()
        gate = ask_person(prepared, ann, task, "approval", "May I?", is_sandboxed=True)
        assert gate.about == {"head": head, "branch": place.branch}
        assert (gate.evidence["files"], gate.evidence["added"]) == (2, 3)
        assert git_line(repo.checkout.root, "rev-parse", place.branch) == head, (
            "fetched into the main repository"
        )
        assert describe_subject_change(repo.require_git(), gate) == ""
        commit(place.path, three="z")
        assert place.branch in describe_subject_change(repo.require_git(), gate), "only the clone has moved"
        for text in ("/etc/passwd", "one", "../one"):
            with pytest.raises(Malformed):
                resolve_subject(prepared, get_task(repo, task), text, is_sandboxed=True)
    finally:
        inside.close()


def test_a_question_can_be_about_a_commit_a_file_or_text(repo: Repository) -> None:
    prepared, root = repo.require_git(), repo.checkout.root
    head = git_line(root, "rev-parse", "HEAD")
    assert resolve_subject(prepared, None, "main") == {"head": head, "branch": "main"}
    assert resolve_subject(prepared, None, head[:10]) == {"head": head}
    assert resolve_subject(prepared, None, "amount=120 USD") == {"amount": "120 USD"}
    assert resolve_subject(prepared, None, "") == {}
    with open(os.path.join(root, "plan.toml"), "w", encoding="utf-8") as file:
        file.write("a = 1\n")
    found = resolve_subject(prepared, None, "plan.toml")
    assert (found["file"], len(found["hash"])) == ("plan.toml", 64)
    for text in ("no such", "love=1", "-x", "--all", "=", "amount=", "\n"):
        with pytest.raises(Malformed) as caught:
            resolve_subject(prepared, None, text)
        assert caught.value.code == "BAD_ABOUT"
    assert collect_evidence(prepared, None, "0" * 40) == {}, "unknown commit"


def test_changes_of_protected_paths_are_riskier(repo: Repository, repository: Path) -> None:
    commit_text(repository, "landlane.toml", '[landing]\ngate = ["prices"]\n')
    risks: list[int] = []
    for name in ("words", "prices"):
        again = open_repository(str(repository))
        agent = join(again, f"agent-on-{name}")
        task = take(again, agent, name)
        place = open_workspace(again.require_git(), agent, task).workspace
        commit(place.path, **{name: "1\n"})
        risks.append(ask_person(again.require_git(), agent, task, "approval", "May I?").risk)
        again.close()
    assert risks[1] > risks[0]
