"""The repository itself: its id, how it compares paths, and what happens when its store is an older one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.repository_record import change_case
from landlane.app.store_place import POINTER
from landlane.app.verify_journal import verify_journal
from landlane.errors import Stale
from landlane.ids import epoch_of, new_uuid
from landlane.sessions import join as sessions
from landlane.setup.adopt_store import adopt_store
from landlane.testing.repositories import git
from tests.support.git import commit_text
from tests.support.project import MINUTE, SQLITE_ONLY, Agent, granted, opened, refused

if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.testing.postgres_server import PostgresServer
    from tests.support.project import Project

pytestmark = pytest.mark.contract


def joined(repo: Repository, name: str) -> Agent:
    return Agent(repo, sessions.join(repo, name))


def write_settings(project: Project, text: str) -> None:
    commit_text(project.repository, "landlane.toml", text)


def adopt(project: Project) -> None:
    """Run `landlane store adopt`, on the clock of the project."""
    adopt_store(str(project.repository), clock=project.clock.server if project.is_postgres else project.clock)


# ------------------------------------------------------------------------------------------------- id


def test_a_repository_makes_its_id_once(project: Project) -> None:
    with opened(project) as repo:
        first = repo.store.repository
    with opened(project) as repo:
        assert repo.store.repository == first

    assert (project.repository / ".git" / "landlane" / "repository").read_text().strip() == first


@pytest.mark.promise(
    "repository.id-may-change",
    "`landlane store adopt` gives all state to a new id from the settings.",
)
def test_everything_follows_the_repository_to_an_id_in_the_settings(project: Project) -> None:
    with opened(project) as repo:
        ann, bob = joined(repo, "ann"), joined(repo, "bob")
        claim = ann.take("src/{a,b}")
        ann.take("lapsing", ttl_ms=1000)
        before = [entry.hash for entry in project.entries()]
    project.close()
    wanted = new_uuid()
    write_settings(project, f'[repository]\nid = "{wanted}"\n')
    adopt(project)

    with opened(project) as repo:
        again = joined(repo, "ann")

        assert repo.store.repository == wanted
        assert (again.session.id, again.joined.is_new) == (ann.session.id, False)
        assert again.take("src/{a,b}").token == claim.token
        assert refused(joined(repo, "bob").claim("src/a"))[0].holder == "ann"
        assert joined(repo, "bob").session.id == bob.session.id
        assert verify_journal(repo).trouble == ()
    entries = project.entries()
    assert [entry.hash for entry in entries[: len(before)]] == before
    assert entries[len(before)].kind == "repository.adopted"
    project.clock.advance(MINUTE)
    with opened(project) as repo, pytest.raises(Stale):
        joined(repo, "ann").release("lapsing")


# ----------------------------------------------------------------------------------------------- case


def test_a_repository_on_a_file_system_that_ignores_case_ignores_it(project: Project) -> None:
    git(project.repository, "config", "core.ignorecase", "true")

    with opened(project) as repo:
        joined(repo, "ann").take("README.md")
        assert refused(joined(repo, "bob").claim("readme.MD"))[0].holder == "ann"


@pytest.mark.promise(
    "repository.case-may-change",
    "`landlane store adopt` changes how paths are compared as the settings say, and every claim follows.",
)
def test_the_settings_may_change_how_paths_are_compared(project: Project) -> None:
    with opened(project) as repo:
        claims = granted(joined(repo, "ann").claim("README.md", "Src/{Api,Web}/*.PY"))
        joined(repo, "bob").take("readme.md2")
    write_settings(project, "[claims]\nignore_case = true\n")
    adopt(project)

    with opened(project) as repo:
        bob = joined(repo, "bob")
        for path in ("readme.md", "src/API/users.py", "SRC/web"):
            assert refused(bob.claim(path))[0].holder == "ann"
        again = granted(joined(repo, "ann").claim("readme.md", "src/{web,api}/*.py"))
        assert [claim.token for claim in again] == [claim.token for claim in claims]
        assert verify_journal(repo).trouble == ()
    assert [entry.facts() for entry in project.entries() if entry.kind == "repository.case"] == [
        {"ignore_case": True}
    ]


def test_comparing_by_case_again_frees_paths_that_differ_in_case(project: Project) -> None:
    ann = project.agent("ann", ignore_case=True)
    ann.take("README.md")
    change_case(ann.repo.store, ignore_case=False)

    project.agent("bob").take("readme.md")


def test_an_unchanged_case_setting_is_not_recorded(project: Project) -> None:
    write_settings(project, "[claims]\nignore_case = true\n")
    for _ in range(3):
        with opened(project):
            pass

    assert "repository.case" not in project.kinds()


# --------------------------------------------------------------------------------------------- restoring


def back_up(project: Project, folder: Path, server: PostgresServer | None) -> str:
    """A copy of the store as it is now; nobody has it open."""
    if server is not None:
        name = project.place.rpartition("/")[2].partition("?")[0]
        return server.create_database(template=name)
    shutil.copy(project.place, folder / "backup.db")
    return str(folder / "backup.db")


def restore(project: Project, backup: str) -> None:
    """Put the copy in the place of the store."""
    state = project.repository / ".git" / "landlane"
    if project.is_postgres:
        (state / POINTER).write_text(backup + "\n", encoding="utf-8")
        project.place = backup
        return
    for left in ("store.db-wal", "store.db-shm"):
        (state / left).unlink(missing_ok=True)
    shutil.copy(backup, project.place)


@pytest.fixture
def server(project: Project, request: pytest.FixtureRequest) -> PostgresServer | None:
    return request.getfixturevalue("postgres_server") if project.is_postgres else None


@pytest.mark.promise("store.restored-tokens", "A store restored from a backup never issues a token twice.")
@pytest.mark.own_database
def test_a_store_from_a_backup_issues_no_token_twice(
    project: Project, server: PostgresServer | None, tmp_path: Path
) -> None:
    with opened(project) as repo:
        first = joined(repo, "ann").take("src")
    project.close()
    backup = back_up(project, tmp_path, server)
    with opened(project) as repo:
        ann = joined(repo, "ann")
        lost = [ann.take(f"docs/{number}").token for number in range(5)]
        ann.release("src")
    project.close()
    state = project.repository / ".git" / "landlane"
    newest = (state / "journal.jsonl").read_text(encoding="utf-8")
    restore(project, backup)

    with opened(project) as repo:
        again = joined(repo, "ann")
        assert again.holds() == ["src"], "what the backup knows is held again"
        token = again.take("docs/1").token
        assert verify_journal(repo).trouble == ()

    assert token > max(*lost, first.token)
    assert epoch_of(token) > epoch_of(max(lost))
    (kept,) = state.glob("journal.before-*.jsonl")
    assert kept.read_text(encoding="utf-8") == newest
    restored = [entry for entry in project.entries() if entry.kind == "store.restored"]
    assert [entry.facts()["epoch"] for entry in restored] == [epoch_of(token)]
    fresh = (state / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["hash"] for line in fresh] == [entry.hash for entry in project.entries()]


@pytest.mark.own_database
def test_opening_again_after_a_restore_changes_nothing_more(
    project: Project, server: PostgresServer | None, tmp_path: Path
) -> None:
    with opened(project):
        pass
    project.close()
    backup = back_up(project, tmp_path, server)
    with opened(project) as repo:
        joined(repo, "ann").take("src")
    project.close()
    restore(project, backup)

    for _ in range(3):
        with opened(project):
            pass

    assert project.kinds().count("store.restored") == 1


@SQLITE_ONLY
def test_a_store_that_was_not_restored_keeps_its_epoch(project: Project) -> None:
    for number in range(3):
        with opened(project) as repo:
            joined(repo, "ann").take(f"src/{number}")
        project.clock.advance(1)

    assert "store.restored" not in project.kinds()
    assert {epoch_of(token) for token in project.tokens_of("claim.taken")} == {1}
