"""Opening workspaces of both kinds: from the fresh base, outside the repository, again and again, at once."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from landlane.claims.read import list_claims
from landlane.errors import Held, Malformed, NotAllowed, RepositoryError
from landlane.git.target import fetch_target, find_target
from landlane.tasks.change import block_task, drop_task, fail_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.pick import resume_task, wait_for_task
from landlane.tasks.records import get_task
from tests.support.git import git
from tests.support.workspaces import KINDS, Yard, add_remote, advance, commit_file

pytestmark = pytest.mark.integration

CROWD = 16

kinds = pytest.mark.parametrize("kind", KINDS)


def in_threads(count: int, work: object) -> list[BaseException | None]:
    """Do something many times at the same moment; what each raised, or nothing."""
    barrier = threading.Barrier(count)
    raised: list[BaseException | None] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            raised[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    return raised


@kinds
def test_a_workspace_is_a_checkout_with_a_branch_beside_the_repository(yard: Yard, kind: str) -> None:
    task = yard.task()
    tip = git(yard.repository, "rev-parse", "main").strip()

    opened = yard.open(task, kind=kind)

    workspace = opened.workspace
    path = Path(workspace.path)
    assert opened.is_new
    assert (workspace.state, workspace.kind, workspace.task) == ("open", kind, task)
    assert path == yard.folder / f"{task}-ann"
    assert (path / "README.md").read_text() == "# A repository for tests\n"
    assert git(path, "symbolic-ref", "--short", "HEAD").strip() == f"landlane/{task}-1/work"
    assert git(path, "rev-parse", "HEAD").strip() == workspace.base == tip
    assert git(path, "status", "--porcelain") == ""
    assert git(yard.repository, "status", "--porcelain") == ""
    assert yard.refs().count(f"refs/landlane/base/{workspace.id}") == 1


@kinds
def test_the_same_call_gives_the_same_workspace(yard: Yard, kind: str) -> None:
    task = yard.task()

    first, second = yard.open(task, kind=kind), yard.open(task, kind=kind)

    assert second.workspace == first.workspace
    assert not second.is_new


@pytest.mark.promise(
    "workspaces.fresh-base",
    "A workspace starts from the current state of the remote, or clearly reports that it does not.",
)
@kinds
def test_it_begins_where_the_remote_is_now(yard: Yard, kind: str) -> None:
    tip = advance(add_remote(yard.repository))

    opened = yard.open(kind=kind)

    assert opened.workspace.base == tip
    assert not opened.workspace.is_offline
    assert Path(opened.workspace.path, "landed.txt").read_text() == "landed\n"


@kinds
def test_a_remote_that_is_gone_is_said_and_nothing_is_left(yard: Yard, kind: str) -> None:
    shutil.rmtree(add_remote(yard.repository))

    with pytest.raises(RepositoryError) as raised:
        yard.open(kind=kind)

    assert (raised.value.code, raised.value.exit_code) == ("OFFLINE", 1)
    assert "--offline" in raised.value.hint
    assert yard.leftovers() == []


@kinds
def test_offline_is_allowed_and_said_loudly(yard: Yard, kind: str) -> None:
    shutil.rmtree(add_remote(yard.repository))

    opened = yard.open(kind=kind, is_offline=True)

    assert opened.workspace.is_offline
    assert opened.notes[0].startswith("OFFLINE: begun from origin/main")


def test_a_remote_without_the_branch_yet_is_not_offline(yard: Yard) -> None:
    remote = yard.repository.with_name("empty.git")
    git(yard.repository, "init", "--quiet", "--bare", str(remote))
    git(yard.repository, "remote", "add", "origin", str(remote))

    assert yard.open().workspace.base == git(yard.repository, "rev-parse", "main").strip()


def test_commits_that_wait_to_be_pushed_are_part_of_the_base(yard: Yard) -> None:
    add_remote(yard.repository)
    tip = commit_file(yard.repository, "own.txt", "not pushed yet\n")

    assert yard.open().workspace.base == tip


@pytest.mark.parametrize("folder", [".", "inside", "src/../inside", "../repository/inside"])
def test_a_folder_inside_the_repository_is_refused(yard: Yard, folder: str) -> None:
    yard.settings(f'[workspace]\nfolder = "{folder}"\n')

    with pytest.raises(Malformed) as raised:
        yard.open()

    assert raised.value.code == "WORKSPACE_INSIDE"
    assert not (yard.repository / "inside").exists()


def test_a_link_that_leads_inside_is_seen_through(yard: Yard) -> None:
    (yard.repository / "deep").mkdir()
    yard.repository.with_name("outside").symlink_to(yard.repository / "deep")
    yard.settings('[workspace]\nfolder = "../outside"\n')

    with pytest.raises(Malformed, match="inside the repository"):
        yard.open()


def test_another_folder_outside_is_used(yard: Yard) -> None:
    yard.settings('[workspace]\nfolder = "../elsewhere"\n')

    assert Path(yard.open().workspace.path).parent == yard.repository.with_name("elsewhere")


def test_a_task_that_another_has_is_refused(yard: Yard) -> None:
    yard.task()
    picked = wait_for_task(yard.repo("bob"), yard.session("bob"), "", 0, GitEvidence(yard.repo("bob")).start)

    with pytest.raises(Held) as raised:
        yard.open(picked.task.id)  # type: ignore[union-attr]

    assert (raised.value.exit_code, raised.value.facts["holder"]) == (3, "bob")
    assert yard.known() == []


def test_whoever_looks_into_the_same_attempt_after_another_left_gets_the_same_workspace(yard: Yard) -> None:
    task = yard.task()
    first = yard.open(task, agent="bob").workspace
    yard.leave("bob")
    block_task(yard.repo(), None, task, "looked into")

    second = yard.open(task).workspace

    assert (second.id, second.path, second.agent) == (first.id, first.path, "ann")


def test_opening_a_workspace_for_a_ready_task_takes_the_task_with_its_paths(yard: Yard) -> None:
    task = yard.task(paths=("src/a.py",))

    yard.open(task)

    repo = yard.repo()
    assert (get_task(repo, task).owner, get_task(repo, task).state) == ("ann", "active")
    assert [(one.agent, one.pattern) for one in list_claims(repo)] == [("ann", "src/a.py")]
    with pytest.raises(Held):
        yard.open(task, agent="bob")


def test_a_task_whose_paths_another_holds_is_not_opened(yard: Yard) -> None:
    yard.open(yard.task(paths=("src",)), agent="bob")
    task = yard.task("other work", paths=("src/a.py",))

    with pytest.raises(Held) as refused:
        yard.open(task)

    assert refused.value.code == "TASK_PATHS_HELD"
    assert get_task(yard.repo(), task).state == "ready"


def test_an_unknown_task_or_kind_is_refused(yard: Yard) -> None:
    with pytest.raises(Malformed, match="T999"):
        yard.open("T999")
    with pytest.raises(Malformed) as raised:
        yard.open(kind="container")
    assert raised.value.code == "UNKNOWN_KIND"


@kinds
def test_what_others_put_at_its_place_is_not_touched(yard: Yard, kind: str) -> None:
    task = yard.task()
    foreign = yard.folder / f"{task}-ann"
    foreign.mkdir(parents=True)
    (foreign / "mine.txt").write_text("mine\n")

    opened = yard.open(task, kind=kind)

    assert opened.workspace.path == f"{foreign}-2"
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]


@kinds
def test_a_folder_that_may_not_be_written_is_said_in_words(yard: Yard, kind: str) -> None:
    yard.folder.write_text("not even a folder")

    with pytest.raises(RepositoryError) as raised:
        yard.open(kind=kind)

    assert raised.value.code == "FOLDER_FORBIDDEN"
    assert yard.known() == []


@kinds
def test_the_branch_of_an_earlier_workspace_goes_on(yard: Yard, kind: str) -> None:
    task = yard.task()
    first = yard.open(task, kind=kind).workspace
    head = commit_file(first.path, "half.txt", "half done\n")
    yard.close(first)
    commit_file(yard.repository, "meanwhile.txt", "landed\n")

    opened = yard.open(task, kind=kind)

    assert git(opened.workspace.path, "rev-parse", "HEAD").strip() == head
    assert opened.workspace.base == first.base
    assert any("goes on" in note for note in opened.notes)


@pytest.mark.slow
@kinds
def test_earlier_attempts_are_in_reach(yard: Yard, kind: str) -> None:
    task = yard.task()
    repo, session = yard.repo(), yard.session()
    wait_for_task(repo, session, "", 0, GitEvidence(yard.repo()).start)
    first = yard.open(task, kind=kind).workspace
    head = commit_file(first.path, "half.txt", "half done\n")
    Path(first.path, "loose.txt").write_text("not committed\n")
    rescue = yard.close(first).rescue
    fail_task(repo, session, task, "tried in vain")
    wait_for_task(repo, session, "", 0, GitEvidence(yard.repo()).start)
    assert resume_task(repo, session) is not None

    opened = yard.open(task, kind=kind)

    assert opened.workspace.branch == f"landlane/{task}-2/work"
    assert opened.branches == (f"landlane/{task}-1/work",)
    assert opened.rescues == (rescue,)
    seen = "refs/heads" if kind == "worktree" else "refs/remotes/home"
    assert git(opened.workspace.path, "rev-parse", f"{seen}/landlane/{task}-1/work").strip() == head
    assert git(opened.workspace.path, "show", f"{head}:half.txt") == "half done\n"


def test_a_branch_that_is_checked_out_elsewhere_is_refused_in_words(yard: Yard) -> None:
    task = yard.task()
    elsewhere = yard.repository.with_name("elsewhere")
    git(yard.repository, "worktree", "add", "--quiet", "-b", f"landlane/{task}-1/work", str(elsewhere))

    with pytest.raises(RepositoryError) as raised:
        yard.open(task)

    assert raised.value.code == "WORKTREE_REFUSED"
    assert "elsewhere" in raised.value.message
    assert git(elsewhere, "status", "--porcelain") == ""
    assert yard.known() == []
    assert not yard.folder.exists() or not list(yard.folder.iterdir())


def test_a_task_that_is_over_gets_none(yard: Yard) -> None:
    task = yard.task()
    drop_task(yard.repo(), yard.session(), task, "not wanted")

    with pytest.raises(NotAllowed):
        yard.open(task)


@kinds
def test_a_folder_removed_by_hand_is_made_anew(yard: Yard, kind: str) -> None:
    task = yard.task()
    first = yard.open(task, kind=kind).workspace
    shutil.rmtree(first.path)

    second = yard.open(task, kind=kind)

    assert second.is_new
    assert Path(second.workspace.path, "README.md").exists()
    assert [one.state for one in yard.known(with_closed=True)] == ["closed", "open"]


@pytest.mark.slow
@kinds
def test_sixteen_at_once_all_succeed(yard: Yard, kind: str) -> None:
    add_remote(yard.repository)
    tasks = [yard.task() for _ in range(CROWD)]
    for number in range(CROWD):
        yard.session(f"a{number}")

    raised = in_threads(CROWD, lambda number: yard.open(tasks[number], agent=f"a{number}", kind=kind))

    assert raised == [None] * CROWD
    opened = yard.known()
    assert len({one.path for one in opened}) == CROWD
    assert {one.state for one in opened} == {"open"}
    assert all(git(one.path, "status", "--porcelain") == "" for one in opened)


def test_worktrees_that_others_add_at_the_same_time_do_not_disturb(yard: Yard) -> None:
    tasks = [yard.task() for _ in range(6)]
    for number in range(6):
        yard.session(f"a{number}")

    def work(number: int) -> None:
        if number < 6:
            yard.open(tasks[number], agent=f"a{number}")
            return
        for turn in range(4):
            place = yard.repository.with_name(f"other-{number}-{turn}")
            subprocess.run(
                ["git", "worktree", "add", "--quiet", "--detach", str(place)],
                cwd=yard.repository,
                capture_output=True,
            )

    raised = in_threads(10, work)

    assert raised[:6] == [None] * 6


def test_sixteen_fetches_at_once_while_the_remote_advances(yard: Yard) -> None:
    remote = add_remote(yard.repository)
    site = yard.site()
    target = find_target(site.home, site.settings)
    trouble: list[str] = []
    tips: list[str] = []

    def work(number: int) -> None:
        if number < CROWD:
            trouble.append(fetch_target(site.home, target))
        else:
            tips.append(advance(remote, f"turn-{len(tips)}.txt"))

    for _ in range(5):
        assert in_threads(CROWD + 1, work) == [None] * (CROWD + 1)

    assert set(trouble) == {""}
    assert len(trouble) == 5 * CROWD
    assert fetch_target(site.home, target) == ""
    assert git(yard.repository, "rev-parse", "origin/main").strip() == tips[-1]


@kinds
def test_two_processes_that_ask_for_one_task_get_one_workspace(yard: Yard, kind: str) -> None:
    task = yard.task()
    yard.session()
    opened: list[str] = []

    raised = in_threads(2, lambda _: opened.append(yard.open(task, kind=kind).workspace.id))

    assert raised == [None, None]
    assert len(set(opened)) == 1
