"""Opening workspaces of both kinds: from the fresh base, outside the repository, again and again, at once."""

from __future__ import annotations

import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from landlane.claims.take import list_claims
from landlane.errors import Held, Malformed, NotAllowed, RepositoryError
from landlane.git.target import fetch_target, find_target
from landlane.tasks.change import block_task, drop_task, fail_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.pick import next_task, resume_task
from landlane.tasks.records import get_task
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed, add_remote, advance, commit_file

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
def test_a_workspace_is_a_checkout_with_a_branch_beside_the_repository(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    task = testbed.task()
    tip = git(testbed.repository, "rev-parse", "main").strip()

    opened = testbed.open(task, kind=kind)

    workspace = opened.workspace
    path = Path(workspace.path)
    assert opened.is_new
    assert (workspace.state, workspace.kind, workspace.task) == ("open", kind, task)
    assert path == testbed.folder / f"{task}-ann"
    assert (path / "README.md").read_text() == "# A repository for tests\n"
    assert git(path, "symbolic-ref", "--short", "HEAD").strip() == f"landlane/{task}-1/work"
    assert git(path, "rev-parse", "HEAD").strip() == workspace.base == tip
    assert git(path, "status", "--porcelain") == ""
    assert git(testbed.repository, "status", "--porcelain") == ""
    assert testbed.refs().count(f"refs/landlane/base/{workspace.id}") == 1


@kinds
def test_the_same_call_gives_the_same_workspace(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()

    first, second = testbed.open(task, kind=kind), testbed.open(task, kind=kind)

    assert second.workspace == first.workspace
    assert not second.is_new


@pytest.mark.promise(
    "workspaces.fresh-base",
    "A workspace starts from the current state of the remote, or clearly reports that it does not.",
)
@kinds
def test_a_workspace_starts_at_the_current_commit_of_the_remote(testbed: WorkspaceTestbed, kind: str) -> None:
    tip = advance(add_remote(testbed.repository))

    opened = testbed.open(kind=kind)

    assert opened.workspace.base == tip
    assert not opened.workspace.is_offline
    assert Path(opened.workspace.path, "landed.txt").read_text() == "landed\n"


@kinds
def test_an_unreachable_remote_is_reported_and_nothing_is_left(testbed: WorkspaceTestbed, kind: str) -> None:
    shutil.rmtree(add_remote(testbed.repository))

    with pytest.raises(RepositoryError) as raised:
        testbed.open(kind=kind)

    assert (raised.value.code, raised.value.exit_code) == ("OFFLINE", 1)
    assert "--offline" in raised.value.hint
    assert testbed.leftovers() == []


@kinds
def test_opening_offline_is_allowed_and_reported(testbed: WorkspaceTestbed, kind: str) -> None:
    shutil.rmtree(add_remote(testbed.repository))

    opened = testbed.open(kind=kind, is_offline=True)

    assert opened.workspace.is_offline
    assert opened.notes[0].startswith("OFFLINE: started from origin/main")


def test_a_remote_without_the_branch_yet_is_not_offline(testbed: WorkspaceTestbed) -> None:
    remote = testbed.repository.with_name("empty.git")
    git(testbed.repository, "init", "--quiet", "--bare", str(remote))
    git(testbed.repository, "remote", "add", "origin", str(remote))

    assert testbed.open().workspace.base == git(testbed.repository, "rev-parse", "main").strip()


def test_unpushed_commits_are_part_of_the_base(testbed: WorkspaceTestbed) -> None:
    add_remote(testbed.repository)
    tip = commit_file(testbed.repository, "own.txt", "not pushed yet\n")

    assert testbed.open().workspace.base == tip


@pytest.mark.parametrize("folder", [".", "inside", "src/../inside", "../repository/inside"])
def test_a_folder_inside_the_repository_is_refused(testbed: WorkspaceTestbed, folder: str) -> None:
    testbed.write_settings(f'[workspace]\nfolder = "{folder}"\n')

    with pytest.raises(Malformed) as raised:
        testbed.open()

    assert raised.value.code == "WORKSPACE_INSIDE"
    assert not (testbed.repository / "inside").exists()


def test_a_link_to_a_path_inside_is_resolved(testbed: WorkspaceTestbed) -> None:
    (testbed.repository / "deep").mkdir()
    testbed.repository.with_name("outside").symlink_to(testbed.repository / "deep")
    testbed.write_settings('[workspace]\nfolder = "../outside"\n')

    with pytest.raises(Malformed, match="inside the repository"):
        testbed.open()


def test_another_folder_outside_is_used(testbed: WorkspaceTestbed) -> None:
    testbed.write_settings('[workspace]\nfolder = "../elsewhere"\n')

    assert Path(testbed.open().workspace.path).parent == testbed.repository.with_name("elsewhere")


def test_a_task_that_another_has_is_refused(testbed: WorkspaceTestbed) -> None:
    testbed.task()
    picked = next_task(
        testbed.repo("bob"), testbed.session("bob"), "", GitEvidence(testbed.repo("bob")).start
    )

    with pytest.raises(Held) as raised:
        testbed.open(picked.task.id)  # type: ignore[union-attr]

    assert (raised.value.exit_code, raised.value.facts["holder"]) == (3, "bob")
    assert testbed.workspaces() == []


def test_the_next_session_of_the_same_attempt_gets_the_same_workspace(
    testbed: WorkspaceTestbed,
) -> None:
    task = testbed.task()
    first = testbed.open(task, agent="bob").workspace
    testbed.leave("bob")
    block_task(testbed.repo(), None, task, "looked into")

    second = testbed.open(task).workspace

    assert (second.id, second.path, second.agent) == (first.id, first.path, "ann")


def test_opening_a_workspace_for_a_ready_task_takes_the_task_with_its_paths(
    testbed: WorkspaceTestbed,
) -> None:
    task = testbed.task(paths=("src/a.py",))

    testbed.open(task)

    repo = testbed.repo()
    assert (get_task(repo, task).owner, get_task(repo, task).state) == ("ann", "active")
    assert [(one.agent, one.pattern) for one in list_claims(repo)] == [("ann", "src/a.py")]
    with pytest.raises(Held):
        testbed.open(task, agent="bob")


def test_a_task_whose_paths_another_holds_is_not_opened(testbed: WorkspaceTestbed) -> None:
    testbed.open(testbed.task(paths=("src",)), agent="bob")
    task = testbed.task("other work", paths=("src/a.py",))

    with pytest.raises(Held) as refused:
        testbed.open(task)

    assert refused.value.code == "TASK_PATHS_HELD"
    assert get_task(testbed.repo(), task).state == "ready"


def test_an_unknown_task_or_kind_is_refused(testbed: WorkspaceTestbed) -> None:
    with pytest.raises(Malformed, match="T999"):
        testbed.open("T999")
    with pytest.raises(Malformed) as raised:
        testbed.open(kind="container")
    assert raised.value.code == "UNKNOWN_KIND"


@kinds
def test_files_of_others_at_the_path_are_not_touched(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    foreign = testbed.folder / f"{task}-ann"
    foreign.mkdir(parents=True)
    (foreign / "mine.txt").write_text("mine\n")

    opened = testbed.open(task, kind=kind)

    assert opened.workspace.path == f"{foreign}-2"
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]


@kinds
def test_an_unwritable_folder_is_reported(testbed: WorkspaceTestbed, kind: str) -> None:
    testbed.folder.write_text("not even a folder")

    with pytest.raises(RepositoryError) as raised:
        testbed.open(kind=kind)

    assert raised.value.code == "FOLDER_FORBIDDEN"
    assert testbed.workspaces() == []


@kinds
def test_the_branch_of_an_earlier_workspace_goes_on(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    first = testbed.open(task, kind=kind).workspace
    head = commit_file(first.path, "half.txt", "half done\n")
    testbed.close(first)
    commit_file(testbed.repository, "meanwhile.txt", "landed\n")

    opened = testbed.open(task, kind=kind)

    assert git(opened.workspace.path, "rev-parse", "HEAD").strip() == head
    assert opened.workspace.base == first.base
    assert any("continues at" in note for note in opened.notes)


@pytest.mark.slow
@kinds
def test_branches_and_rescues_of_earlier_attempts_are_listed(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    repo, session = testbed.repo(), testbed.session()
    next_task(repo, session, "", GitEvidence(testbed.repo()).start)
    first = testbed.open(task, kind=kind).workspace
    head = commit_file(first.path, "half.txt", "half done\n")
    Path(first.path, "loose.txt").write_text("not committed\n")
    rescue = testbed.close(first).rescue
    fail_task(repo, session, task, "tried in vain")
    next_task(repo, session, "", GitEvidence(testbed.repo()).start)
    assert resume_task(repo, session) is not None

    opened = testbed.open(task, kind=kind)

    assert opened.workspace.branch == f"landlane/{task}-2/work"
    assert opened.branches == (f"landlane/{task}-1/work",)
    assert opened.rescues == (rescue,)
    seen = "refs/heads" if kind == "worktree" else "refs/remotes/home"
    assert git(opened.workspace.path, "rev-parse", f"{seen}/landlane/{task}-1/work").strip() == head
    assert git(opened.workspace.path, "show", f"{head}:half.txt") == "half done\n"


def test_opening_a_branch_checked_out_elsewhere_is_refused(testbed: WorkspaceTestbed) -> None:
    task = testbed.task()
    elsewhere = testbed.repository.with_name("elsewhere")
    git(testbed.repository, "worktree", "add", "--quiet", "-b", f"landlane/{task}-1/work", str(elsewhere))

    with pytest.raises(RepositoryError) as raised:
        testbed.open(task)

    assert raised.value.code == "WORKTREE_REFUSED"
    assert "elsewhere" in raised.value.message
    assert git(elsewhere, "status", "--porcelain") == ""
    assert testbed.workspaces() == []
    assert not testbed.folder.exists() or not list(testbed.folder.iterdir())


def test_an_ended_task_gets_no_workspace(testbed: WorkspaceTestbed) -> None:
    task = testbed.task()
    drop_task(testbed.repo(), testbed.session(), task, "not wanted")

    with pytest.raises(NotAllowed):
        testbed.open(task)


@kinds
def test_a_folder_removed_by_hand_is_created_again(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    first = testbed.open(task, kind=kind).workspace
    shutil.rmtree(first.path)

    second = testbed.open(task, kind=kind)

    assert second.is_new
    assert Path(second.workspace.path, "README.md").exists()
    assert [one.state for one in testbed.workspaces(with_closed=True)] == ["closed", "open"]


@pytest.mark.slow
@kinds
def test_sixteen_at_once_all_succeed(testbed: WorkspaceTestbed, kind: str) -> None:
    add_remote(testbed.repository)
    tasks = [testbed.task() for _ in range(CROWD)]
    for number in range(CROWD):
        testbed.session(f"a{number}")

    raised = in_threads(CROWD, lambda number: testbed.open(tasks[number], agent=f"a{number}", kind=kind))

    assert raised == [None] * CROWD
    opened = testbed.workspaces()
    assert len({one.path for one in opened}) == CROWD
    assert {one.state for one in opened} == {"open"}
    assert all(git(one.path, "status", "--porcelain") == "" for one in opened)


def test_worktrees_that_others_add_at_the_same_time_do_not_disturb(testbed: WorkspaceTestbed) -> None:
    tasks = [testbed.task() for _ in range(6)]
    for number in range(6):
        testbed.session(f"a{number}")

    def work(number: int) -> None:
        if number < 6:
            testbed.open(tasks[number], agent=f"a{number}")
            return
        for turn in range(4):
            place = testbed.repository.with_name(f"other-{number}-{turn}")
            subprocess.run(
                ["git", "worktree", "add", "--quiet", "--detach", str(place)],
                cwd=testbed.repository,
                capture_output=True,
            )

    raised = in_threads(10, work)

    assert raised[:6] == [None] * 6


def test_sixteen_fetches_at_once_while_the_remote_advances(testbed: WorkspaceTestbed) -> None:
    remote = add_remote(testbed.repository)
    repo = testbed.prepared_repo()
    target = find_target(repo.home, repo.settings)
    trouble: list[str] = []
    tips: list[str] = []

    def work(number: int) -> None:
        if number < CROWD:
            trouble.append(fetch_target(repo.home, target))
        else:
            tips.append(advance(remote, f"turn-{len(tips)}.txt"))

    for _ in range(5):
        assert in_threads(CROWD + 1, work) == [None] * (CROWD + 1)

    assert set(trouble) == {""}
    assert len(trouble) == 5 * CROWD
    assert fetch_target(repo.home, target) == ""
    assert git(testbed.repository, "rev-parse", "origin/main").strip() == tips[-1]


@kinds
def test_two_processes_that_ask_for_one_task_get_one_workspace(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    testbed.session()
    opened: list[str] = []

    raised = in_threads(2, lambda _: opened.append(testbed.open(task, kind=kind).workspace.id))

    assert raised == [None, None]
    assert len(set(opened)) == 1
