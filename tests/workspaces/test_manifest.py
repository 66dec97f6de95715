"""The manifest makes a workspace runnable, or it is not there at all; slots are leased and let go with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, LandlaneError
from landlane.state.slots import list_slots
from landlane.tasks.change import block_task
from landlane.workspaces.environment import shell_environment
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)

SLOTS = """
[slots.database]
names = ["db1", "db2"]
[workspace.slots]
PORT = "port"
DATABASE = "database"
"""


@pytest.fixture
def testbed(repository: Path) -> Iterator[WorkspaceTestbed]:
    (repository / ".gitignore").write_text(".env\nnode_modules\nvendor/\ngenerated/\nseen.json\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "--quiet", "-m", "Ignore")
    testbed = WorkspaceTestbed(repository)
    yield testbed
    testbed.end()


@kinds
def test_it_is_copied_linked_installed_generated_and_checked(testbed: WorkspaceTestbed, kind: str) -> None:
    home = testbed.repository
    (home / ".env").write_text("SECRET=1\n")
    (home / ".env").chmod(0o600)
    (home / "node_modules" / "left-pad").mkdir(parents=True)
    (home / "vendor" / "deep").mkdir(parents=True)
    (home / "vendor" / "deep" / "lib").write_text("library\n")
    (home / "vendor" / "link").symlink_to("deep/lib")
    testbed.write_settings("""
[workspace]
copy = [".env", "vendor"]
link = ["node_modules"]
install = ["mkdir generated", "test -f .env"]
generate = ["echo $LANDLANE_TASK > generated/task"]
check = "test -d node_modules/left-pad && grep -q SECRET .env"
""")

    workspace = testbed.open(kind=kind).workspace

    path = Path(workspace.path)
    assert (path / ".env").stat().st_mode & 0o777 == 0o600
    assert (path / "vendor/link").is_symlink()
    assert (path / "vendor/link").read_text() == "library\n"
    assert (path / "node_modules").readlink() == home / "node_modules"
    assert (path / "generated/task").read_text() == f"{workspace.task}\n"
    assert git(path, "status", "--porcelain") == ""
    assert [word for word in testbed.messages if word.startswith("check: ")]


@pytest.mark.slow
@kinds
@pytest.mark.parametrize(
    ("manifest", "step", "missing"),
    [
        ('copy = [".env"]', "copy", ".env is not in the main checkout"),
        ('link = ["node_modules"]', "link", "node_modules is not in the main checkout"),
        ('install = ["true", "echo no such package >&2; exit 3"]', "install", "no such package"),
        ('generate = ["exit 4"]', "generate", "`exit 4` ended with 4"),
        ('check = "no-such-program"', "check", "no-such-program"),
        ('install = ["sleep 60"]\nlimit = "1s"', "install", "took longer than 1s"),
        ('copy = ["../outside"]', "copy", "'../outside' leads out of the repository"),
        ('copy = ["/etc/passwd"]', "copy", "'/etc/passwd' leads out of the repository"),
        ('link = ["a/../../outside"]', "link", "leads out of the repository"),
        ('copy = ["."]', "copy", "leads out of the repository"),
        ('copy = [".git"]', "copy", "'.git' belongs to git"),
        ('link = [".git/hooks"]', "link", "'.git/hooks' belongs to git"),
    ],
)
def test_a_missing_file_is_named_and_nothing_is_left(
    testbed: WorkspaceTestbed, kind: str, manifest: str, step: str, missing: str
) -> None:
    testbed.repository.with_name("outside").write_text("not yours\n")
    testbed.write_settings(f"[workspace]\n{manifest}\n{SLOTS}")

    with pytest.raises(LandlaneError) as raised:
        testbed.open(kind=kind)

    assert raised.value.code == "WORKSPACE_NOT_RUNNABLE"
    assert raised.value.facts["step"] == step
    assert missing in raised.value.message
    assert testbed.leftovers() == []
    (failed,) = testbed.workspaces(with_closed=True)
    assert failed.state == "failed"
    assert missing in failed.why


@kinds
def test_a_linked_folder_of_the_repository_does_not_lead_out(testbed: WorkspaceTestbed, kind: str) -> None:
    outside = testbed.repository.with_name("outside")
    outside.mkdir()
    (testbed.repository / "way").symlink_to(outside)
    git(testbed.repository, "add", "way")
    git(testbed.repository, "commit", "--quiet", "-m", "A link that leads out")
    (testbed.repository / "way" / "new").write_text("x")
    testbed.write_settings('[workspace]\ncopy = ["way/new"]\n')

    with pytest.raises(LandlaneError, match="leads out"):
        testbed.open(kind=kind)

    assert [path.name for path in outside.iterdir()] == ["new"]


@kinds
def test_slots_are_leased_exported_and_freed(testbed: WorkspaceTestbed, kind: str) -> None:
    testbed.write_settings(
        "[workspace]\n"
        'check = \'printf "{\\"port\\": %s, \\"db\\": \\"%s\\"}" $PORT $DATABASE > seen.json\'\n' + SLOTS
    )

    first, second = testbed.open(kind=kind).workspace, testbed.open(kind=kind).workspace

    environment = first.environment
    assert environment["DATABASE"] == "db1"
    assert second.environment["DATABASE"] == "db2"
    assert environment["PORT"] != second.environment["PORT"]
    seen = json.loads(Path(first.path, "seen.json").read_text())
    assert (str(seen["port"]), seen["db"]) == (environment["PORT"], "db1")
    assert f"export PORT={environment['PORT']}" in shell_environment(first)
    testbed.close(first)
    assert {slot.place for slot in list_slots(testbed.repo())} == {second.environment["PORT"], "db2"}
    testbed.close(second)
    assert testbed.leftovers() == []


@kinds
def test_without_a_free_slot_nothing_is_left(testbed: WorkspaceTestbed, kind: str) -> None:
    testbed.write_settings(SLOTS)
    testbed.open(kind=kind)
    testbed.open(kind=kind)
    before = testbed.leftovers()

    with pytest.raises(Held) as raised:
        testbed.open(kind=kind, agent="bob")

    assert (raised.value.code, raised.value.exit_code) == ("SLOT_TAKEN", 3)
    assert "DATABASE" in raised.value.message
    assert testbed.leftovers() == before


@kinds
def test_adopting_a_workspace_leases_its_slots(testbed: WorkspaceTestbed, kind: str) -> None:
    testbed.write_settings(SLOTS)
    task = testbed.task()
    first = testbed.open(task, agent="bob", kind=kind).workspace
    testbed.leave("bob")
    assert list_slots(testbed.repo()) == []
    block_task(testbed.repo(), None, task, "looked into")  # so that it is the same attempt still

    second = testbed.open(task, kind=kind).workspace

    assert second.id == first.id
    assert second.environment == first.environment
    assert {slot.agent for slot in list_slots(testbed.repo())} == {"ann"}
