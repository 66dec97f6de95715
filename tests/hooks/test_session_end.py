"""What a session would leave behind: pointed out with the commands that mend it, and never twice."""

from __future__ import annotations

import pytest

from landlane.hooks.session_end import leftovers, should_point_out
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.repositories import git
from landlane.workspaces.open import open_workspace
from tests.support.landing import LandingTestbed

pytestmark = pytest.mark.integration


def left(testbed: LandingTestbed, agent: str = "ann") -> str:
    return leftovers(testbed.prepared_repo, testbed.agent(agent))


def is_new(testbed: LandingTestbed, text: str) -> bool:
    return should_point_out(testbed.repo, testbed.agent("ann"), text)


def test_nothing_is_reported_when_nothing_is_left(testbed: LandingTestbed) -> None:
    (testbed.folder / "README.md").write_text("of somebody else\n", encoding="utf-8")
    testbed.claim("bob", "README.md")

    assert left(testbed) == ""
    assert not is_new(testbed, "")


def test_claims_work_and_tasks_are_pointed_out_with_what_to_do(testbed: LandingTestbed) -> None:
    add_task(testbed.repo, None, NewTask(title="Mend it"))
    next_task(testbed.repo, testbed.agent("ann"))
    testbed.claim("ann", "README.md", "src/new file.py")
    testbed.claim("bob", "other.py")
    for name in ("README.md", "src/new file.py", "src/more.py", "other.py"):
        (testbed.folder / name).parent.mkdir(exist_ok=True)
        (testbed.folder / name).write_text("changed\n", encoding="utf-8")

    text = left(testbed)

    assert "- not committed: README.md\n- not committed: src/new file.py\n" in text
    assert "landlane commit -m 'What and why' :/README.md ':/src/new file.py'" in text
    assert "- not reported: T1 Mend it" in text
    assert "landlane done T1" in text
    assert "- still held: README.md" in text
    assert "other.py" not in text
    assert "more.py" not in text


def test_work_in_its_own_workspace_counts(testbed: LandingTestbed) -> None:
    add_task(testbed.repo, None, NewTask(title="Mend it"))
    session = testbed.agent("ann")
    next_task(testbed.repo, session)
    workspace = open_workspace(testbed.prepared_repo, session, "T1", kind="worktree").workspace
    testbed.claim("ann", "README.md")
    with open(f"{workspace.path}/README.md", "w", encoding="utf-8") as file:
        file.write("changed there\n")

    text = left(testbed)

    assert f"- not committed in {workspace.path}: README.md" in text
    assert f"cd {workspace.path} && landlane commit" in text


@pytest.mark.promise(
    "sessions.never-held-twice",
    "Work that a session would leave behind is reported once, so the session can always end.",
)
def test_the_same_is_pointed_out_once_and_less_of_it_not_again(testbed: LandingTestbed) -> None:
    testbed.claim("ann", "a.py", "b.py")
    (testbed.folder / "a.py").write_text("new\n", encoding="utf-8")
    first = left(testbed)
    assert is_new(testbed, first)
    assert not is_new(testbed, first)

    git(testbed.folder, "add", "a.py")
    git(testbed.folder, "commit", "--quiet", "-m", "Add a")
    less = left(testbed)

    assert less != first
    assert not is_new(testbed, less)


def test_new_leftovers_are_reported_again(testbed: LandingTestbed) -> None:
    testbed.claim("ann", "a.py")
    assert is_new(testbed, left(testbed))
    testbed.claim("ann", "b.py")

    assert is_new(testbed, left(testbed))
    assert not is_new(testbed, left(testbed))


def test_much_is_cut_short(testbed: LandingTestbed) -> None:
    testbed.claim("ann", *(f"f{number:03}.py" for number in range(60)))

    text = left(testbed)

    assert text.count("- still held") == 10
    assert "and 50 more" in text
