"""Done is what was seen: commits on the task's branch, paths inside its claims, checks run by us."""

from __future__ import annotations

import os
import resource
import time
from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed, SettingsError, Stale
from landlane.sessions import join as sessions
from landlane.settings.load import read_settings
from landlane.tasks.add import add_task
from landlane.tasks.change import drop_task, fail_task
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task, list_tasks, task_history
from landlane.testing.repositories import git
from landlane.values import replace
from tests.support.commits import raises_code
from tests.support.git import commit_text
from tests.support.project import Agent, Background, Project, opened, outlive_lease
from tests.support.tasks import add
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.repository import Repository

pytestmark = pytest.mark.contract

BRANCH = "landlane/T1-1/work"


class TaskTestbed:
    """One agent at work in the repository."""

    def __init__(self, repo: Repository, folder: Path) -> None:
        self.repo = repo
        self.folder = folder
        self.agent = Agent(repo, sessions.join(repo, "ann"))

    def settle(self, text: str) -> None:
        """Use these settings from now on."""
        commit_text(self.folder, "landlane.toml", text)
        settings = read_settings(str(self.folder))
        self.agent.repo = replace(self.repo, settings=settings)

    def begin(self, **facts: object) -> None:
        """Add a task and take it."""
        add(self.agent, "Parse dates", **{"kind": "code", **facts})  # type: ignore[arg-type]
        picked = next_task(self.agent.repo, self.agent.session, "", GitEvidence(self.repo).start)
        assert isinstance(picked, Picked)

    def write(self, **files: str) -> None:
        for name, text in files.items():
            path = self.folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, branch: str = BRANCH, **files: str) -> str:
        """Commit these files on a branch, and go back to main; gives the commit."""
        if git(self.folder, "branch", "--list", branch).strip():
            git(self.folder, "switch", "--quiet", branch)
        else:
            git(self.folder, "switch", "--quiet", "-c", branch)
        self.write(**files)
        git(self.folder, "add", "--all", *[name.replace("__", "/").replace("_", ".") for name in files])
        git(self.folder, "commit", "--quiet", "-m", "Work")
        head = git(self.folder, "rev-parse", "HEAD").strip()
        git(self.folder, "switch", "--quiet", "main")
        return head

    def land(self, branch: str = BRANCH, *how: str) -> None:
        git(self.folder, "merge", "--quiet", *(how or ("--ff-only",)), branch)

    def done(self, task: str = "T1") -> tuple[str, dict[str, bool], str]:
        """How far it is, what was looked at and seen, and the first thing that is missing."""
        completion = complete_task(self.agent.repo, self.agent.session, task)
        missing = [item.found for item in completion.evidence if not item.is_seen]
        seen = {item.name: item.is_seen for item in completion.evidence}
        return completion.task.state, seen, missing[0] if missing else ""


@pytest.fixture
def bench(live_project: Project) -> Iterator[TaskTestbed]:
    with opened(live_project) as repo:
        yield TaskTestbed(repo, live_project.repository)


def test_without_a_branch_it_is_only_reported_and_dependants_stay_blocked(bench: TaskTestbed) -> None:
    bench.begin()
    add(bench.agent, "Release", after=["T1"])
    assert bench.done() == ("reported", {"commit": False}, f"no branch {BRANCH}")
    stored = get_task(bench.agent.repo, "T1")
    assert (stored.why, stored.owner) == (f"no branch {BRANCH}", "ann")
    assert stored.next_action == f"commit your work there: git switch -c {BRANCH}"
    assert get_task(bench.agent.repo, "T2").state == "blocked"


@pytest.mark.promise(
    "evidence.empty-branches-are-no-work",
    "A branch without a commit of its own is not evidence, even when other work has landed meanwhile.",
)
def test_a_branch_without_its_own_commit_is_not_evidence(bench: TaskTestbed) -> None:
    bench.begin()
    git(bench.folder, "branch", BRANCH)
    assert bench.done() == ("reported", {"commit": False}, f"no new commit on {BRANCH}")
    # Nor is what others have landed meanwhile.
    bench.commit("other", b_py="1")
    bench.land("other")
    git(bench.folder, "branch", "--force", BRANCH, "main")
    assert bench.done() == ("reported", {"commit": False}, f"no new commit on {BRANCH}")


def test_verified_work_waits_to_land_and_then_unblocks_dependents(bench: TaskTestbed) -> None:
    bench.begin(paths=["src/**"], check="test -f src/a.py")
    add(bench.agent, "Release", after=["T1"])
    head = bench.commit(src__a_py="1")
    assert bench.done() == ("landing", {"commit": True, "paths": True, "check": True}, "")
    stored = get_task(bench.agent.repo, "T1")
    assert (stored.head, stored.why) == (head, "verified, not landed yet")
    assert BRANCH in stored.next_action
    assert get_task(bench.agent.repo, "T2").state == "blocked"
    assert bench.agent.holds() == ["src/**"]
    bench.land()
    git(bench.folder, "branch", "--delete", BRANCH)
    assert bench.done()[0] == "done"
    assert get_task(bench.agent.repo, "T2").state == "ready"
    assert bench.agent.holds() == []
    kinds = [entry.kind for entry in task_history(bench.agent.repo, "T1")]
    assert kinds == ["task.added", "task.taken", "task.reported", "task.proved", "task.done"]
    facts = task_history(bench.agent.repo, "T1")[-1].facts()
    assert facts["head"] == head
    assert [item["name"] for item in facts["evidence"]] == ["commit", "paths", "check"]


@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
def test_work_that_has_landed_before_it_was_reported_is_done_at_once(bench: TaskTestbed, how: str) -> None:
    bench.begin(paths=["src/**"])
    bench.commit(src__a_py="1")
    bench.land(BRANCH, how, "-m", "Land") if how == "--no-ff" else bench.land()
    assert bench.done()[0] == "done"


@pytest.mark.promise(
    "evidence.paths-inside-claims",
    "Changes outside the task's claims are not accepted as evidence, landed or not.",
)
def test_landed_work_outside_the_claims_is_not_accepted(bench: TaskTestbed) -> None:
    bench.begin(paths=["src/**"])
    bench.commit(src__a_py="1", docs__b_md="2")
    bench.land()
    assert bench.done() == (
        "reported",
        {"commit": True, "paths": False},
        "docs/b.md changed, but it is not claimed",
    )


def test_a_change_outside_the_claims_is_named_until_it_is_claimed(bench: TaskTestbed) -> None:
    bench.begin(paths=["src/a.py"])
    bench.commit(src__a_py="1", src__b_py="2")
    assert bench.done()[2] == "src/b.py changed, but it is not claimed"
    bench.agent.take("src/b.py", task="T1")
    assert bench.done()[0] == "landing"


def test_both_ends_of_a_rename_count(bench: TaskTestbed) -> None:
    bench.begin(paths=["src/**"])
    git(bench.folder, "switch", "--quiet", "-c", BRANCH)
    (bench.folder / "src").mkdir()
    git(bench.folder, "mv", "README.md", "src/README.md")
    git(bench.folder, "commit", "--quiet", "-m", "Move")
    git(bench.folder, "switch", "--quiet", "main")
    assert bench.done()[2] == "README.md changed, but it is not claimed"


def test_changes_landed_by_others_meanwhile_do_not_count(bench: TaskTestbed) -> None:
    bench.begin(paths=["src/**"])
    bench.commit("other", docs__b_md="2")
    bench.land("other")
    bench.commit(src__a_py="1")  # from main as it is now
    assert bench.done()[0] == "landing"


def test_names_that_look_like_patterns_are_compared_as_they_are(bench: TaskTestbed) -> None:
    bench.begin(paths=["app/\\[id\\]/*"])
    git(bench.folder, "switch", "--quiet", "-c", BRANCH)
    (bench.folder / "app" / "[id]").mkdir(parents=True)
    (bench.folder / "app" / "[id]" / "pä ge.tsx").write_text("x")
    git(bench.folder, "add", "--all")
    git(bench.folder, "commit", "--quiet", "-m", "Page")
    git(bench.folder, "switch", "--quiet", "main")
    assert bench.done()[0] == "landing"


# -------------------------------------------------------------------------------------------- checks


@pytest.mark.promise("evidence.checks-run-on-the-commit", "An uncommitted fix does not make a check pass.")
def test_an_uncommitted_fix_does_not_pass_the_check(bench: TaskTestbed) -> None:
    bench.begin(check="grep -q good src/a.py")
    bench.commit(src__a_py="bad")
    git(bench.folder, "switch", "--quiet", BRANCH)
    bench.write(src__a_py="good")  # in the author's checkout it passes now
    state, seen, missing = bench.done()
    assert (state, seen["check"]) == ("reported", False)
    assert missing.startswith("grep -q good src/a.py failed on ")
    git(bench.folder, "commit", "--quiet", "--all", "-m", "Fix")
    assert bench.done()[0] == "landing"


def test_uncommitted_files_in_the_checkout_do_not_affect_the_check(bench: TaskTestbed) -> None:
    bench.begin(check="test -f untracked.txt || test -f ignored.txt || test -f staged.txt")
    bench.commit(_gitignore="ignored.txt\n")
    bench.write(untracked_txt="1", ignored_txt="1", staged_txt="1")
    git(bench.folder, "add", "staged.txt")
    assert bench.done()[0] == "reported"


def test_the_check_cannot_spoil_the_repository(bench: TaskTestbed) -> None:
    bench.begin(check="git rm -rq . && git commit -qm gone --no-verify; rm -rf .git; false")
    head = bench.commit(src__a_py="1")
    assert bench.done()[0] == "reported"
    assert git(bench.folder, "rev-parse", BRANCH).strip() == head
    assert git(bench.folder, "status", "--porcelain") == ""


def test_the_check_runs_in_its_own_repository_without_a_session(
    bench: TaskTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANDLANE_SESSION", "s-x:y")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    check = 'test -z "$LANDLANE_SESSION$LANDLANE_AGENT$GIT_INDEX_FILE" && test "$(git rev-parse HEAD)" = '
    bench.begin(check="true")
    monkeypatch.delenv("GIT_INDEX_FILE")
    head = bench.commit(src__a_py="1")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    run = GitEvidence(bench.repo).run_check(check + head, head, 20.0, lambda: None)
    assert run.exit_code == 0, run.output


@pytest.mark.promise("evidence.checks-end", "A check that hangs is killed with all its children.")
def test_a_check_that_hangs_is_killed_with_all_its_children(bench: TaskTestbed) -> None:
    bench.settle('[tasks]\ncheck_limit = "1s"\n')
    mark = f"5{os.getpid()}{time.monotonic_ns() % 1000}"
    bench.begin(check=f"sleep {mark} & sleep {mark}")
    bench.commit(src__a_py="1")
    began = time.monotonic()
    state, _, missing = bench.done()
    assert state == "reported"
    assert "was stopped after 1 s" in missing
    assert time.monotonic() - began < 15
    wait_until(lambda: not running(mark), 30)


def test_a_check_that_leaves_something_running_ends_all_the_same(bench: TaskTestbed) -> None:
    mark = f"6{os.getpid()}{time.monotonic_ns() % 1000}"
    bench.begin(check=f"sleep {mark} & echo ok")
    bench.commit(src__a_py="1")
    began = time.monotonic()
    assert bench.done()[0] == "landing"
    assert time.monotonic() - began < 15
    wait_until(lambda: not running(mark), 30)


def running(mark: str) -> list[str]:
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(pid)
    return found


@pytest.mark.slow
def test_a_check_may_say_very_much_and_only_its_end_is_kept(bench: TaskTestbed) -> None:
    bench.begin(check="head -c 200000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 3")
    bench.commit(src__a_py="1")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, _, missing = bench.done()
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
    )  # KiB: it is never all in memory
    assert missing.endswith("the end")
    assert len(missing) < 5000


def test_a_long_check_is_a_sign_of_life(bench: TaskTestbed, live_project: Project) -> None:
    bench.settle('[sessions]\nlease = "1m"\n')
    bench.agent.leave()
    joined = sessions.join(bench.agent.repo, "bob")
    go = bench.folder.parent / "go"
    bench.agent = Agent(bench.agent.repo, joined)
    bench.begin(check=f"while ! test -e {go}; do sleep 0.02; done")
    bench.commit(src__a_py="1")
    # As it was after a third of the lease, from when on the check is a sign of life.
    old = replace(joined.session, seen_at=joined.session.seen_at - 60_000)
    bench.agent = Agent(bench.agent.repo, replace(joined, session=old))
    checking = Background(bench.done)
    outlive_lease(live_project.repo().store, joined.session)
    go.write_text("")
    assert checking.result()[0] == "landing"


def test_a_task_taken_away_during_its_check_is_not_done(bench: TaskTestbed, live_project: Project) -> None:
    bench.begin(check='while ! test -f /proc/self/fd/0/nothing && ! test -e "$0.go"; do sleep 0.02; done')
    go = bench.folder.parent / "go"
    drop_task(bench.agent.repo, bench.agent.session, "T1", "another check is needed")
    add(bench.agent, "Parse dates", kind="code", check=f"while ! test -e {go}; do sleep 0.02; done")
    next_task(bench.agent.repo, bench.agent.session)
    bench.commit("landlane/T2-1/work", src__a_py="1")
    checking = Background(lambda: bench.done("T2"))
    other = live_project.repo()
    wait_until(lambda: get_task(other, "T2").state == "reported")
    drop_task(other, None, "T2", "cancelled")
    go.write_text("")
    with raises_code(Stale, "TASK_NOT_YOURS"):
        checking.result()
    assert get_task(other, "T2").state == "dropped"


def test_commits_after_verification_are_verified_again(bench: TaskTestbed) -> None:
    bench.begin(check="! grep -q bad src/a.py")
    first = bench.commit(src__a_py="good")
    assert bench.done()[0] == "landing"
    bench.commit(src__a_py="bad")
    state, seen, _ = bench.done()
    assert (state, seen["check"]) == ("reported", False)
    third = bench.commit(src__a_py="better")
    assert bench.done()[0] == "landing"
    assert get_task(bench.agent.repo, "T1").head == third != first
    assert bench.commit(src__a_py="best")
    assert bench.done()[0] == "landing"
    assert get_task(bench.agent.repo, "T1").head != third


# -------------------------------------------------------------------------- other kinds, other people


def test_an_output_and_its_check_are_the_evidence_of_a_task_without_git(bench: TaskTestbed) -> None:
    bench.begin(kind="", output="out/intro.wav", check="grep -q RIFF out/intro.wav")
    assert bench.done() == ("reported", {"output": False}, "out/intro.wav does not exist")
    bench.write(out__intro_wav="")
    assert bench.done()[2] == "out/intro.wav is empty"
    bench.write(out__intro_wav="MIDI")
    assert bench.done()[1] == {"output": True, "check": False}
    bench.write(out__intro_wav="RIFF")
    assert bench.done() == ("done", {"output": True, "check": True}, "")


def test_a_chore_without_a_check_needs_no_evidence(bench: TaskTestbed) -> None:
    bench.begin(kind="chore")
    assert bench.done() == ("done", {}, "")


def test_a_chore_with_a_check_is_not(bench: TaskTestbed) -> None:
    bench.begin(kind="chore", check="test -f told.txt")
    assert bench.done()[0] == "reported"
    bench.write(told_txt="1")
    assert bench.done()[0] == "done"


def test_settings_define_the_required_evidence(bench: TaskTestbed) -> None:
    bench.settle('[tasks.evidence]\ncode = ["commit"]\nspike = []\n')
    bench.begin(paths=["src/**"], check="false")
    bench.commit(docs__b_md="outside, and its check would fail")
    assert bench.done() == ("landing", {"commit": True}, "")
    add(bench.agent, "Try it out", kind="spike")
    next_task(bench.agent.repo, bench.agent.session)
    assert bench.done("T2") == ("done", {}, "")


def test_an_undefined_kind_is_an_error_and_changes_nothing(bench: TaskTestbed) -> None:
    with pytest.raises(SettingsError):
        bench.begin(kind="video")
    assert list_tasks(bench.agent.repo) == []


def test_a_kind_that_is_described_no_more_is_an_error_and_changes_nothing(bench: TaskTestbed) -> None:
    repo = bench.agent.repo
    settings = replace(repo.settings, tasks=replace(repo.settings.tasks, evidence={"video": ("check",)}))
    described = replace(repo, settings=settings)
    add_task(described, bench.agent.session, NewTask(title="Cut the film", kind="video"))
    next_task(described, bench.agent.session)
    with pytest.raises(SettingsError):
        bench.done()
    assert get_task(repo, "T1").state == "active"


def test_any_session_may_verify_a_reported_task_but_not_report_it(
    bench: TaskTestbed, live_project: Project
) -> None:
    bench.begin()
    bob = live_project.agent("bob")
    with pytest.raises(Stale) as stale:
        complete_task(bob.repo, bob.session, "T1")
    assert stale.value.facts["holder"] == "ann"
    with pytest.raises(NotAllowed):
        complete_task(bob.repo, None, "T1")
    bench.done()
    bench.commit(src__a_py="1")
    completion = complete_task(bob.repo, bob.session, "T1")
    assert (completion.task.state, completion.task.owner) == ("landing", "ann")


def test_reporting_done_again_returns_the_same(bench: TaskTestbed) -> None:
    bench.begin(kind="chore")
    bench.done()
    before = len(task_history(bench.agent.repo, "T1"))
    assert bench.done() == ("done", {}, "")
    assert len(task_history(bench.agent.repo, "T1")) == before


def test_the_same_missing_evidence_is_recorded_once(bench: TaskTestbed) -> None:
    bench.begin()
    bench.done()
    bench.done()
    kinds = [entry.kind for entry in task_history(bench.agent.repo, "T1")]
    assert kinds.count("task.doubted") == 1


def test_the_second_attempt_has_its_own_branch_and_sees_the_first(bench: TaskTestbed) -> None:
    bench.begin()
    bench.commit(src__a_py="1")
    fail_task(bench.agent.repo, bench.agent.session, "T1", "half done; see my branch")
    picked = next_task(bench.agent.repo, bench.agent.session)
    assert isinstance(picked, Picked)
    assert picked.task.branch == "landlane/T1-2/work"
    assert picked.lessons[0].why == "half done; see my branch"
    assert bench.done()[2] == "no branch landlane/T1-2/work"
    names = [BRANCH, "landlane/T1-2/work"]
    assert GitEvidence(bench.repo).branches_among(names) == [BRANCH]
