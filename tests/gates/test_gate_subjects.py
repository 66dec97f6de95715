"""What a person is asked about, with real git: branches in clones, files, what has moved, and the risk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.errors import Malformed
from landlane.gates.subject import about_of, ask_person, evidence_for, what_moved
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace
from tests.support.git import git_line
from tests.support.killing import join

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


def test_a_guest_is_asked_about_its_clone_which_a_person_can_look_at(repo: Repository) -> None:
    ann = join(repo, "ann")
    task = take(repo, ann, "src/**")
    place = open_workspace(repo.require_git(), ann, task, kind=CLONE).workspace
    head = commit(place.path, one="1\n2\n", two="x\n")
    inside = open_repository(place.path)
    try:
        site = inside.require_git()
        gate = ask_person(site, ann, task, "approval", "May I?", is_guest=True)
        assert gate.about == {"head": head, "branch": place.branch}
        assert (gate.evidence["files"], gate.evidence["added"]) == (2, 3)
        assert git_line(repo.checkout.root, "rev-parse", place.branch) == head, "it can be looked at here"
        assert what_moved(repo.require_git(), gate) == ""
        commit(place.path, three="z")
        assert place.branch in what_moved(repo.require_git(), gate), "in the clone alone"
        for text in ("/etc/passwd", "one", "../one"):
            with pytest.raises(Malformed):
                about_of(site, get_task(repo, task), text, is_guest=True)
    finally:
        inside.close()


def test_a_question_may_be_about_a_commit_a_file_or_words(repo: Repository) -> None:
    site, root = repo.require_git(), repo.checkout.root
    head = git_line(root, "rev-parse", "HEAD")
    assert about_of(site, None, "main") == {"head": head, "branch": "main"}
    assert about_of(site, None, head[:10]) == {"head": head}
    assert about_of(site, None, "amount=120 USD") == {"amount": "120 USD"}
    assert about_of(site, None, "") == {}
    with open(os.path.join(root, "plan.toml"), "w", encoding="utf-8") as file:
        file.write("a = 1\n")
    found = about_of(site, None, "plan.toml")
    assert (found["file"], len(found["hash"])) == ("plan.toml", 64)
    for text in ("no such", "love=1", "-x", "--all", "=", "amount=", "\n"):
        with pytest.raises(Malformed) as caught:
            about_of(site, None, text)
        assert caught.value.code == "BAD_ABOUT"
    assert evidence_for(site, None, "0" * 40) == {}, "nobody knows this commit"


def test_what_touches_protected_paths_is_riskier(repo: Repository, repository: Path) -> None:
    (repository / "landlane.toml").write_text('[landing]\ngate = ["prices"]\n', encoding="utf-8")
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
