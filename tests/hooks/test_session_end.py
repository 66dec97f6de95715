"""What a session would leave behind: pointed out with the commands that mend it, and never twice."""

from __future__ import annotations

import pytest

from landlane.hooks.session_end import leftovers, should_point_out
from landlane.tasks.add import add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import next_task
from landlane.testing.repositories import git
from landlane.workspaces.open import open_workspace
from tests.support.landing import Yard

pytestmark = pytest.mark.integration


def left(yard: Yard, agent: str = "ann") -> str:
    return leftovers(yard.site, yard.agent(agent))


def is_new(yard: Yard, text: str) -> bool:
    return should_point_out(yard.repo, yard.agent("ann"), text)


def test_nothing_left_is_nothing_said(yard: Yard) -> None:
    (yard.folder / "README.md").write_text("of somebody else\n", encoding="utf-8")
    yard.claim("bob", "README.md")

    assert left(yard) == ""
    assert not is_new(yard, "")


def test_claims_work_and_tasks_are_pointed_out_with_what_to_do(yard: Yard) -> None:
    add_task(yard.repo, None, NewTask(title="Mend it"))
    next_task(yard.repo, yard.agent("ann"))
    yard.claim("ann", "README.md", "src/new file.py")
    yard.claim("bob", "other.py")
    for name in ("README.md", "src/new file.py", "src/more.py", "other.py"):
        (yard.folder / name).parent.mkdir(exist_ok=True)
        (yard.folder / name).write_text("changed\n", encoding="utf-8")

    text = left(yard)

    assert "- not committed: README.md\n- not committed: src/new file.py\n" in text
    assert "landlane commit -m 'What and why' :/README.md ':/src/new file.py'" in text
    assert "- not reported: T1 Mend it" in text
    assert "landlane done T1" in text
    assert "- still held: README.md" in text
    assert "other.py" not in text
    assert "more.py" not in text


def test_work_in_its_own_workspace_counts(yard: Yard) -> None:
    add_task(yard.repo, None, NewTask(title="Mend it"))
    session = yard.agent("ann")
    next_task(yard.repo, session)
    workspace = open_workspace(yard.site, session, "T1", kind="worktree").workspace
    yard.claim("ann", "README.md")
    with open(f"{workspace.path}/README.md", "w", encoding="utf-8") as file:
        file.write("changed there\n")

    text = left(yard)

    assert f"- not committed in {workspace.path}: README.md" in text
    assert f"cd {workspace.path} && landlane commit" in text


@pytest.mark.promise(
    "sessions.never-held-twice",
    "Work that a session would leave behind is reported once, so the session can always end.",
)
def test_the_same_is_pointed_out_once_and_less_of_it_not_again(yard: Yard) -> None:
    yard.claim("ann", "a.py", "b.py")
    (yard.folder / "a.py").write_text("new\n", encoding="utf-8")
    first = left(yard)
    assert is_new(yard, first)
    assert not is_new(yard, first)

    git(yard.folder, "add", "a.py")
    git(yard.folder, "commit", "--quiet", "-m", "Add a")
    less = left(yard)

    assert less != first
    assert not is_new(yard, less)


def test_what_comes_later_is_pointed_out_once_more(yard: Yard) -> None:
    yard.claim("ann", "a.py")
    assert is_new(yard, left(yard))
    yard.claim("ann", "b.py")

    assert is_new(yard, left(yard))
    assert not is_new(yard, left(yard))


def test_much_is_cut_short(yard: Yard) -> None:
    yard.claim("ann", *(f"f{number:03}.py" for number in range(60)))

    text = left(yard)

    assert text.count("- still held") == 10
    assert "and 50 more" in text
