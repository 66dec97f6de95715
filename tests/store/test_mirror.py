"""The plain files beside the store, and the journal's ref in git: complete, mended, and never ahead of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from landlane.app.verify_journal import verify_journal
from landlane.claims.to_json import claim_json
from landlane.journal.git_copy import REF
from landlane.sessions import join as sessions
from landlane.store.journal_chain import format_line, parse_line
from landlane.testing.repositories import git
from tests.support.git import commit_text
from tests.support.project import Agent, Background, granted, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.repository import Repository
    from landlane.store.interface import Transaction
    from landlane.store.journal_chain import JournalEntry
    from tests.support.project import Project

pytestmark = pytest.mark.contract


@pytest.fixture
def repo(project: Project) -> Iterator[Repository]:
    with opened(project) as made:
        yield made


@pytest.fixture
def ann(repo: Repository) -> Agent:
    return Agent(repo, sessions.join(repo, "ann"))


def journal_file(project: Project) -> Path:
    return project.repository / ".git" / "landlane" / "journal.jsonl"


def lines(project: Project) -> list[str]:
    return journal_file(project).read_text(encoding="utf-8").split("\n")[:-1]


def in_file(project: Project) -> list[JournalEntry]:
    return [parse_line(line) for line in lines(project)]


def claims_in_file(project: Project) -> dict[str, object]:
    return json.loads((project.repository / ".git" / "landlane" / "claims.json").read_text(encoding="utf-8"))


def shows(repo: Repository, *words: str) -> bool:
    """Whether checking the journal tells of this trouble."""
    return any(all(word in told for word in words) for told in verify_journal(repo).trouble)


# ----------------------------------------------------------------------------------------- the journal


def test_the_file_holds_every_entry_in_order(project: Project, repo: Repository, ann: Agent) -> None:
    ann.take("src", "docs")
    ann.release()

    repo.settle()

    assert in_file(project) == project.entries()
    assert lines(project) == [format_line(entry) for entry in project.entries()]
    assert verify_journal(repo).trouble == ()


def test_a_line_can_be_read_by_any_program(project: Project, repo: Repository, ann: Agent) -> None:
    claim = ann.take("src")

    repo.settle()

    found = json.loads(lines(project)[-1])
    assert (found["kind"], found["agent"], found["data"]["pattern"]) == ("claim.taken", "ann", "src")
    assert (found["position"], found["data"]["token"]) == (3, claim.token)
    assert found["at"].startswith("2026-01-02T")


@pytest.mark.parametrize(
    "note", ['"quoted" \\ \n\t\r', "日本 𝔘 é", "\u2028\u2029\x85\x0b\x0c\x1c", "\x7f\ufeff"]
)
def test_any_text_survives_the_way_through_the_file(
    project: Project, repo: Repository, ann: Agent, note: str
) -> None:
    granted(ann.claim("src", note=note))

    repo.settle()

    assert in_file(project)[-1].facts()["note"] == note
    assert verify_journal(repo).trouble == ()


@pytest.mark.promise(
    "journal.file-is-never-ahead",
    "A change that was rolled back never appears in journal.jsonl.",
)
def test_what_was_rolled_back_never_appears_in_the_file(
    project: Project, repo: Repository, ann: Agent
) -> None:
    ann.take("src")
    repo.settle()
    before = lines(project)

    def work(tx: Transaction) -> None:
        tx.record("claim.taken", "ann", ann.session.id, {"pattern": "ghost"})
        repo.settle()  # whoever copies in the middle of it sees nothing of it
        raise LookupError("at the last moment")

    with pytest.raises(LookupError):
        project.repo().store.change(work)
    repo.settle()

    assert lines(project) == before
    ann.take("docs")
    repo.settle()
    assert in_file(project) == project.entries()


@pytest.mark.promise(
    "journal.torn-lines-are-mended",
    "A torn last line of journal.jsonl is cut off and written again.",
)
@pytest.mark.parametrize("torn", [b'{"agent":"ann","at":"2026-', b"\xe6\x97", b"{}", b'{"position":'])
def test_a_torn_last_line_is_cut_off_and_written_again(
    project: Project, repo: Repository, ann: Agent, torn: bytes
) -> None:
    ann.take("src")
    repo.settle()
    whole = lines(project)
    with journal_file(project).open("ab") as file:
        file.write(torn)

    ann.take("docs")
    repo.settle()

    assert lines(project)[:-1] == whole
    assert in_file(project) == project.entries()


def test_a_last_line_that_lost_its_end_is_written_again(
    project: Project, repo: Repository, ann: Agent
) -> None:
    ann.take("src")
    repo.settle()
    size = journal_file(project).stat().st_size
    os.truncate(journal_file(project), size - 5)

    repo.settle()

    assert in_file(project) == project.entries()


@pytest.mark.promise("journal.missing-lines-are-caught-up", "Missing lines of journal.jsonl are added later.")
@pytest.mark.parametrize("keep", [0, 1, 2])
def test_missing_lines_are_caught_up(project: Project, repo: Repository, ann: Agent, keep: int) -> None:
    ann.take("src", "docs")
    repo.settle()
    whole = lines(project)
    journal_file(project).write_text("".join(line + "\n" for line in whole[:keep]), encoding="utf-8")

    repo.settle()

    assert lines(project) == whole


def test_a_file_that_was_removed_is_written_anew(project: Project, repo: Repository, ann: Agent) -> None:
    ann.take("src")
    repo.settle()
    journal_file(project).unlink()

    repo.settle()

    assert in_file(project) == project.entries()


def test_a_file_that_cannot_be_written_fails_no_command(
    project: Project, repo: Repository, ann: Agent
) -> None:
    repo.settle()
    journal_file(project).unlink()
    journal_file(project).mkdir()

    ann.take("src")
    repo.settle()

    assert ann.holds() == ["src"]
    journal_file(project).rmdir()
    repo.settle()
    assert in_file(project) == project.entries()


def test_an_edit_of_the_file_shows(project: Project, repo: Repository, ann: Agent) -> None:
    ann.take("src")
    repo.settle()
    text = journal_file(project).read_text(encoding="utf-8")
    forged = text.replace(project.entries()[1].hash, "0" * 64)
    journal_file(project).write_text(forged, encoding="utf-8")

    assert shows(repo, "entry 2", "journal.jsonl")


def test_rubbish_in_the_middle_of_the_file_shows(project: Project, repo: Repository, ann: Agent) -> None:
    ann.take("src", "docs")
    repo.settle()
    whole = lines(project)
    journal_file(project).write_text("\n".join([whole[0], "rubbish", *whole[2:]]) + "\n", encoding="utf-8")

    assert shows(repo, "journal.jsonl holds something else after entry 1")


def test_many_who_copy_at_once_write_each_line_once(live_project: Project) -> None:
    def work(name: str) -> None:
        with opened(live_project) as repo:
            agent = Agent(repo, sessions.join(repo, name))
            for number in range(15):
                agent.take(f"{name}/{number}")
                repo.settle()

    workers = [Background(lambda name=name: work(name)) for name in ("ann", "bob", "cid", "dan")]
    for worker in workers:
        worker.result(60)
    with opened(live_project) as repo:
        repo.settle(wait_seconds=10)

        assert in_file(live_project) == live_project.entries()
        assert verify_journal(repo).trouble == ()


@pytest.mark.promise(
    "journal.each-line-once",
    "Many processes or threads that copy the journal at once write each line once.",
)
def test_threads_that_share_a_house_write_each_line_once(live_project: Project) -> None:
    with opened(live_project) as repo:

        def work(name: str) -> None:
            agent = Agent(repo, sessions.join(repo, name))
            for number in range(25):
                agent.take(f"{name}/{number}")
                repo.settle()

        workers = [Background(lambda name=name: work(name)) for name in ("ann", "bob", "cid", "dan")]
        for worker in workers:
            worker.result(60)
        repo.settle(wait_seconds=10)

        assert in_file(live_project) == live_project.entries()


# ------------------------------------------------------------------------------------------ what is held


@pytest.mark.promise("journal.claims-file", "claims.json matches the held claims.")
def test_the_file_of_claims_equals_what_is_held(project: Project, repo: Repository, ann: Agent) -> None:
    bob = project.agent("bob")
    ann.take("src", "docs")
    bob.take("lib", is_shared=True)
    ann.release("docs")

    repo.settle()

    assert claims_in_file(project) == {
        "position": project.entries()[-1].position,
        "claims": [claim_json(claim, repo.store) for claim in project.claims()],
    }


def test_the_file_of_claims_is_empty_when_nothing_is_held(
    project: Project, repo: Repository, ann: Agent
) -> None:
    ann.take("src")
    ann.release()

    repo.settle()

    assert claims_in_file(project)["claims"] == []


def test_no_scratch_file_is_left_behind(project: Project, repo: Repository, ann: Agent) -> None:
    ann.take("src")
    repo.settle()

    left = {path.name for path in (project.repository / ".git" / "landlane").iterdir()}

    assert not {name for name in left if name.endswith(".new")}


# ---------------------------------------------------------------------------------------------- in git


@pytest.fixture
def versioned(project: Project) -> Iterator[Repository]:
    """A repository whose settings want the journal in git."""
    commit_text(project.repository, "landlane.toml", "[journal]\ngit = true\n")
    with opened(project) as made:
        yield made


def committed(project: Project) -> str:
    names = git(project.repository, "ls-tree", "--name-only", REF, "journal/").split()
    return "".join(git(project.repository, "show", f"{REF}:{name}") for name in names)


@pytest.mark.promise(
    "journal.in-git",
    "With `[journal] git = true` the journal is committed to its own ref, and the check compares it.",
)
def test_the_journal_is_committed_to_a_ref_of_its_own(project: Project, versioned: Repository) -> None:
    head = git(project.repository, "rev-parse", "HEAD")
    ann = Agent(versioned, sessions.join(versioned, "ann"))
    ann.take("src")
    versioned.settle()
    ann.release()
    versioned.settle()

    assert committed(project) == journal_file(project).read_text(encoding="utf-8")
    assert git(project.repository, "log", "--format=%s", REF).splitlines() == [
        f"journal: up to entry {number}" for number in (4, 3)
    ]
    assert verify_journal(versioned).trouble == ()
    assert git(project.repository, "rev-parse", "HEAD") == head
    assert git(project.repository, "status", "--porcelain", "--untracked-files=no") == ""


def test_nothing_new_makes_no_commit(project: Project, versioned: Repository) -> None:
    sessions.join(versioned, "ann")
    versioned.settle()
    tip = git(project.repository, "rev-parse", REF)

    versioned.settle()

    assert git(project.repository, "rev-parse", REF) == tip


@pytest.mark.promise("journal.any-text", "Any text of a note survives the journal file and git unchanged.")
def test_any_text_survives_the_way_through_git(project: Project, versioned: Repository) -> None:
    ann = Agent(versioned, sessions.join(versioned, "ann"))
    for number, note in enumerate(("\u2028 \x85 \x0c", "日本 𝔘")):
        granted(ann.claim(f"src/{number}", note=note))
        versioned.settle()

    assert committed(project) == journal_file(project).read_text(encoding="utf-8")
    assert verify_journal(versioned).trouble == ()


def test_a_long_journal_is_kept_in_several_files(project: Project, versioned: Repository) -> None:
    ann = Agent(versioned, sessions.join(versioned, "ann"))
    ann.take(*(f"a/{number}" for number in range(1000)))
    versioned.settle()
    ann.take("b")
    versioned.settle()

    names = git(project.repository, "ls-tree", "--name-only", REF, "journal/").split()

    assert names == ["journal/000000001.jsonl", "journal/000001001.jsonl"]
    assert committed(project) == journal_file(project).read_text(encoding="utf-8")
    assert verify_journal(versioned).trouble == ()


def test_a_ref_that_differs_from_the_store_shows(project: Project, versioned: Repository) -> None:
    ann = Agent(versioned, sessions.join(versioned, "ann"))
    ann.take("src")
    versioned.settle()
    forged = committed(project).replace(project.entries()[1].hash, "f" * 64)
    scratch = project.repository / "forged"
    scratch.write_text(forged, encoding="utf-8")
    blob = git(project.repository, "hash-object", "-w", "forged").strip()
    index = project.repository / ".git" / "forged-index"
    os.environ["GIT_INDEX_FILE"] = str(index)
    try:
        git(
            project.repository,
            "update-index",
            "--add",
            "--cacheinfo",
            f"100644,{blob},journal/000000001.jsonl",
        )
        tree = git(project.repository, "write-tree").strip()
    finally:
        del os.environ["GIT_INDEX_FILE"]
    git(
        project.repository, "update-ref", REF, git(project.repository, "commit-tree", "-m", "x", tree).strip()
    )

    assert shows(versioned, "entry 2", REF)


def test_two_who_commit_the_journal_at_once_lose_nothing(live_project: Project) -> None:
    commit_text(live_project.repository, "landlane.toml", "[journal]\ngit = true\n")

    def work(name: str) -> None:
        with opened(live_project) as repo:
            agent = Agent(repo, sessions.join(repo, name))
            for number in range(6):
                agent.take(f"{name}/{number}")
                repo.settle()

    workers = [Background(lambda name=name: work(name)) for name in ("ann", "bob", "cid")]
    for worker in workers:
        worker.result(60)
    with opened(live_project) as repo:
        Agent(repo, sessions.join(repo, "dan")).take("last")
        repo.settle(wait_seconds=10)

        assert verify_journal(repo).trouble == ()
        assert committed(live_project) == journal_file(live_project).read_text(encoding="utf-8")
