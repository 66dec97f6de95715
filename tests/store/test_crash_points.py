"""A process that dies between two steps that belong together: the next command heals what it left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from landlane.api import Landlane, Taken
from landlane.app.open import open_repository
from landlane.app.plain_files import read_journal
from landlane.app.verify_journal import verify_journal
from landlane.errors import StoreError
from tests.support.processes import fork, wait_for_exit
from tests.support.store_stress import Replay, all_entries

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(90)]

DIED = 99

# What the dying process has at hand, and `folder`, the repository.
TOOLS = """
import os
from landlane.api import Landlane
from landlane.app import plain_files
from landlane.sessions import secrets
from landlane.app import open as bootstrap

def die(*_, **__):
    os._exit(99)

def die_after(function):
    def dying(*arguments, **options):
        function(*arguments, **options)
        os._exit(99)
    return dying
"""


def let_die(repository: Path, script: str) -> None:
    """Run a script in a process of its own, where it ends itself in the middle of something."""
    assert run_script(repository, script) == DIED


def run_script(repository: Path, script: str, **names: object) -> int:
    """Run a script in a forked process, which may patch whatever it likes, and return its exit code."""
    return wait_for_exit(fork(lambda: exec(TOOLS + script, {"folder": str(repository), **names})))


def assert_healed(repository: Path, *, holding: set[str]) -> None:
    """The plain files are what the store says, after no more than opening and closing it."""
    with Landlane(repository, agent="next") as repo:
        assert {claim.pattern for claim in repo.claims()} == holding
    state = repository / ".git" / "landlane"
    repo = open_repository(str(repository))
    entries = all_entries(repo.store)
    assert list(read_journal(str(state / "journal.jsonl"))) == entries
    assert Replay().walk(entries).trouble == []
    claims = json.loads((state / "claims.json").read_text(encoding="utf-8"))
    assert {claim["pattern"] for claim in claims["claims"]} == holding
    assert verify_journal(repo).trouble == ()
    repo.close()
    assert [path.name for path in state.rglob("*") if path.name.endswith((".new", "~"))] == []


def test_a_death_between_commit_and_copy_is_made_good(repository: Path, store: str) -> None:
    let_die(
        repository,
        """
ann = Landlane(folder, agent="ann")
plain_files.Mirror.sync = die
ann.claim("src/a.py")
""",
    )
    assert_healed(repository, holding={"src/a.py"})


def test_a_death_in_the_middle_of_a_line_of_the_journal_is_made_good(repository: Path, store: str) -> None:
    let_die(
        repository,
        """
ann = Landlane(folder, agent="ann")
def write_half(file, data):
    os.write(file, data[: len(data) // 2])
    die()
plain_files._write_all = write_half
ann.claim("src/a.py")
""",
    )
    assert_healed(repository, holding={"src/a.py"})


def test_a_death_before_the_list_of_claims_is_written_is_made_good(repository: Path, store: str) -> None:
    let_die(
        repository,
        """
ann = Landlane(folder, agent="ann")
plain_files.Mirror._write_live = die
ann.claim("src/a.py")
""",
    )
    # Not even a new session: a look is enough.
    ann = Landlane(repository, agent="ann")
    ann.close()
    claims = json.loads((repository / ".git/landlane/claims.json").read_text(encoding="utf-8"))
    assert [claim["pattern"] for claim in claims["claims"]] == ["src/a.py"]
    assert_healed(repository, holding={"src/a.py"})


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_death_in_the_middle_of_the_list_of_claims_is_made_good(
    repository: Path, store: str, share: float
) -> None:
    let_die(
        repository,
        f"""
ann = Landlane(folder, agent="ann")
replace = os.replace
def replace_half(source, target):
    if target.endswith("claims.json"):
        os.truncate(source, int(os.path.getsize(source) * {share}))
        die()
    replace(source, target)
os.replace = replace_half
ann.claim("src/a.py")
""",
    )
    ann = Landlane(repository, agent="ann")
    ann.close()
    claims = json.loads((repository / ".git/landlane/claims.json").read_text(encoding="utf-8"))
    assert [claim["pattern"] for claim in claims["claims"]] == ["src/a.py"]
    assert_healed(repository, holding={"src/a.py"})


@pytest.mark.parametrize("point", ["die", "die_after(secrets.SecretFiles.save)"])
def test_a_death_around_the_writing_of_a_secret_leaves_the_name_free_to_join(
    repository: Path, store: str, point: str
) -> None:
    let_die(
        repository,
        f"""
secrets.SecretFiles.save = {point}
Landlane(folder, agent="ann")
""",
    )
    with Landlane(repository, agent="ann") as ann:
        assert isinstance(ann.claim("src/a.py"), Taken)
    assert_healed(repository, holding={"src/a.py"})


def test_a_death_in_the_middle_of_writing_a_secret_leaves_the_name_free_to_join(
    repository: Path, store: str
) -> None:
    let_die(
        repository,
        """
replace = os.replace
def replace_half(source, target):
    if os.path.basename(os.path.dirname(target)) == "sessions":
        os.truncate(source, 10)
        die()
    replace(source, target)
os.replace = replace_half
Landlane(folder, agent="ann")
""",
    )
    with Landlane(repository, agent="ann") as ann:
        assert isinstance(ann.claim("src/a.py"), Taken)
    assert_healed(repository, holding={"src/a.py"})


def test_a_death_right_after_a_session_began_leaves_it_to_whoever_joins_next(
    repository: Path, store: str
) -> None:
    let_die(
        repository,
        """
from landlane.sessions import join as sessions
sessions.join = die_after(sessions.join)
Landlane(folder, agent="ann")
""",
    )
    with Landlane(repository, agent="ann") as ann:
        assert ann.session.generation == 1
        assert isinstance(ann.claim("src/a.py"), Taken)
    assert_healed(repository, holding={"src/a.py"})


def test_a_death_between_leaving_and_forgetting_the_secret_leaves_the_name_free(
    repository: Path, store: str
) -> None:
    let_die(
        repository,
        """
ann = Landlane(folder, agent="ann")
ann.claim("src/a.py")
secrets.SecretFiles.drop = die
ann.leave()
""",
    )
    with Landlane(repository, agent="ann") as ann:
        assert ann.session.generation == 2
    assert_healed(repository, holding=set())


@pytest.mark.parametrize("point", ["open_store", "begin_repository", "_begin", "detect_restore"])
def test_a_death_in_the_very_first_command_leaves_a_repository_that_works(
    repository: Path, store: str, point: str
) -> None:
    let_die(
        repository,
        f"""
from landlane.app import repository_record as repositories
for home in (bootstrap, repositories):
    if hasattr(home, {point!r}):
        setattr(home, {point!r}, die)
Landlane(folder, agent="ann")
""",
    )
    with Landlane(repository, agent="ann") as ann:
        assert isinstance(ann.claim("src/a.py"), Taken)
    assert_healed(repository, holding={"src/a.py"})


@pytest.mark.parametrize("point", ["die", "die_after(bootstrap.record_first_place)"])
def test_a_death_around_the_choice_of_the_store_leaves_a_repository_that_works(
    repository: Path, point: str
) -> None:
    let_die(repository, f'bootstrap.record_first_place = {point}; Landlane(folder, agent="ann")')

    with Landlane(repository, agent="ann") as ann:
        assert isinstance(ann.claim("src/a.py"), Taken)
    assert_healed(repository, holding={"src/a.py"})


@pytest.mark.slow
def test_a_death_in_every_step_of_making_the_store_leaves_none_or_a_whole_one(repository: Path) -> None:
    """One statement further each time, until it is through."""
    script = """
import sqlite3
from landlane.store.sqlite import database
class CrashingConnection(sqlite3.Connection):
    def execute(self, *arguments):
        global left
        left -= 1
        if left < 0:
            die()
        return super().execute(*arguments)
connect = sqlite3.connect
sqlite3.connect = lambda path, **options: connect(path, factory=CrashingConnection, **options)
bootstrap.open_repository(folder)
"""
    for statements in range(0, 200, 5):
        state = repository / ".git" / "landlane"
        code = run_script(repository, script, left=statements)
        if not code:
            break
        assert code == DIED
        open_repository(str(repository)).close()
        shutil.rmtree(state)
    else:
        raise AssertionError("never got through")
    assert statements > 10


@pytest.mark.parametrize(
    "step",
    [
        "move_aside",
        "begin_epoch",
    ],
)
def test_a_death_while_a_restored_store_is_noticed_reissues_no_token(repository: Path, step: str) -> None:
    state = repository / ".git" / "landlane"
    with Landlane(repository, agent="ann") as ann:
        first = ann.claim("src/a.py")
    backup = {path: path.read_bytes() for path in state.glob("store.db*")}
    with Landlane(repository, agent="ann") as ann:
        lost = ann.claim("src/b.py")
    assert isinstance(first, Taken)
    assert isinstance(lost, Taken)
    for path in state.glob("store.db*"):
        path.unlink()
    for path, content in backup.items():
        path.write_bytes(content)
    let_die(
        repository,
        f"""
from landlane.app import plain_files
plain_files.{step} = die_after(plain_files.{step})
bootstrap.open_repository(folder)
""",
    )
    with Landlane(repository, agent="ann") as ann:
        outcome = ann.claim("src/c.py")
        assert isinstance(outcome, Taken)
        assert outcome.granted[0].token > lost.granted[0].token
        assert ann.verify().trouble == ()


def test_a_name_of_the_repository_lost_in_a_power_cut_is_refused_rather_than_replaced(
    repository: Path,
) -> None:
    """Under another id everything that is held would be hidden."""
    with Landlane(repository, agent="ann") as ann:
        assert isinstance(ann.claim("src/a.py"), Taken)
    (repository / ".git" / "landlane" / "repository").write_bytes(b"")
    with pytest.raises(StoreError) as refused:
        Landlane(repository, agent="bob")
    assert refused.value.code == "REPOSITORY_ID_BROKEN"
