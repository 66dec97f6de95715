"""Kills processes with SIGKILL at every step of splitting, joining and judging, and looks at what is left.

Started as a program of its own, so that it can fork. Each victim opens the store anew, prepares a task,
counts its steps inside the transaction that matters, and kills itself at one of them. Whoever comes after
must find all of it or nothing, and be able to go on to exactly one end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.fanout.join import find_fan, list_fans, settle_fans
from landlane.fanout.split import SplitTask, split_task
from landlane.journal.read import read_entries
from landlane.plans.parse import read_plan
from landlane.reviews.give_verdict import give_verdict
from landlane.reviews.model import require_review
from landlane.reviews.open import open_review
from landlane.reviews.records import get_review
from landlane.sessions import join as sessions
from landlane.store.postgres.store import PostgresTransaction
from landlane.store.sqlite.store import SqliteTransaction
from landlane.tasks import records as read
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import drop_task
from landlane.tasks.finish import finish_without_evidence, report_done
from landlane.tasks.model import NewTask
from landlane.tasks.pick import take_task
from landlane.testing.repositories import open_test_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository

PLAN = "- [ ] One (kind: chore)\n- [ ] Two (kind: chore)\n- [ ] Three (kind: chore)\n"
MOST_STEPS = 200


class JoiningAgent:
    """One agent of a process that is about to die."""

    def __init__(self, repo: Repository, name: str) -> None:
        self.repo = repo
        self.session = sessions.join(repo, name).session

    def add(self, title: str) -> str:
        new = NewTask(title=title, kind="chore")
        added = add_task(self.repo, self.session, new, force=True)
        assert isinstance(added, Added)
        return added.task.id

    def take(self, task_id: str) -> None:
        assert take_task(self.repo, self.session, task_id, "") is not None

    def split(self, task_id: str, policy: str) -> SplitTask:
        plan = read_plan(PLAN, "plan.md")
        return split_task(self.repo, self.session, task_id, plan, policy)

    def end(self, task_id: str) -> None:
        finish_without_evidence(self.repo, self.session, task_id, "done")


def arm(steps: int) -> None:
    """Die at so many writes from now on."""
    left = [steps]

    def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for made in (SqliteTransaction, PostgresTransaction):
        made.run = wrapped(made.run)  # type: ignore[method-assign]
        made.record = wrapped(made.record)  # type: ignore[method-assign]


def kinds_of(repo: Repository, noun: str, name: str) -> list[str]:
    """What the journal tells of one task, fan or review."""
    found = [
        (entry.kind, entry.facts()[noun]) for entry in read_entries(repo) if entry.kind.startswith(f"{noun}.")
    ]
    return [kind for kind, about in found if name == (about if noun == "task" else about["id"])]


# ---------------------------------------------------------------------------------------------- splitting


def split_prepare(one: JoiningAgent) -> str:
    task_id = one.add("All")
    one.take(task_id)
    return task_id


def split_act(one: JoiningAgent, task_id: str) -> None:
    one.split(task_id, "all")


def split_check(one: JoiningAgent, task_id: str) -> None:
    task = read.get_task(one.repo, task_id)
    found = [fan for fan in list_fans(one.repo, with_all=True) if fan.task == task_id]
    children = [
        other for other in read.list_tasks(one.repo) if other.lineage == task_id and other.id != task_id
    ]
    if found:
        assert (task.state, task.session, len(children)) == ("blocked", "", 3), task
    else:
        assert (task.state, bool(task.session), len(children)) == ("active", True, 0), task


# ----------------------------------------------------------------------------------------------- joining


def join_prepare(one: JoiningAgent) -> str:
    task_id = one.add("All")
    fan = one.split(task_id, "2").fan
    for child in fan.children[:2]:
        one.take(child)
    one.end(fan.children[0])
    return f"{fan.id} {task_id} {fan.children[1]}"


def join_act(one: JoiningAgent, answer: str) -> None:
    one.end(answer.split()[2])


def join_check(one: JoiningAgent, answer: str) -> None:
    fan_id, task_id, last = answer.split()
    fan, branches = find_fan(one.repo, fan_id)
    task = read.get_task(one.repo, task_id)
    is_over = read.get_task(one.repo, last).state == "done"
    assert (fan.state == "joined") == is_over, (fan, is_over)
    assert task.state == ("ready" if is_over else "blocked"), task
    if not is_over:  # the last owner is dead: another goes on with its branch
        drop_task(one.repo, None, last, "its owner is dead")
        one.take(fan.children[2])
        one.end(fan.children[2])
    fan, branches = find_fan(one.repo, fan_id)
    assert [branch.state for branch in branches].count("done") == 2, branches
    for _ in range(2):
        settle_fans(one.repo)
    assert kinds_of(one.repo, "fan", fan_id).count("fan.joined") == 1
    assert kinds_of(one.repo, "task", task_id).count("task.joined") == 1
    assert read.get_task(one.repo, task_id).state == "ready"
    states = [read.get_task(one.repo, child).state for child in fan.children]
    assert states in (["done", "done", "dropped"], ["done", "dropped", "done"]), states


# ---------------------------------------------------------------------------------------------- clean-up


def rest_prepare(one: JoiningAgent) -> str:
    answer = join_prepare(one)
    one.end(answer.split()[2])
    return answer


def rest_act(one: JoiningAgent, answer: str) -> None:
    del answer
    settle_fans(one.repo)


# ----------------------------------------------------------------------------------------------- judging


def judge_prepare(one: JoiningAgent) -> str:
    task_id = one.add("Work")
    one.take(task_id)
    report_done(one.repo, one.session, task_id)
    required = require_review(1, (), "")
    review = one.repo.change(
        lambda tx: open_review(tx, one.repo, one.session, read.lock_task(tx, task_id), "a" * 40, required)
    )
    return f"{review.id} {task_id}"


def judge_act(one: JoiningAgent, answer: str) -> None:
    judge = JoiningAgent(one.repo, f"{one.session.agent}-judge")
    arm(int(os.environ["STEPS"]))
    give_verdict(judge.repo, judge.session, answer.split(maxsplit=1)[0], verdict="approve")


def judge_check(one: JoiningAgent, answer: str) -> None:
    review_id, task_id = answer.split()
    review = get_review(one.repo, review_id)
    task = read.get_task(one.repo, task_id)
    assert (review.state, task.state) in (
        ("open", "review"),
        ("approved", "reported"),
        ("approved", "review"),
    )
    if review.state == "open":
        give_verdict(one.repo, one.session, review_id, verdict="approve")
    assert get_review(one.repo, review_id).state == "approved"
    assert kinds_of(one.repo, "review", review_id).count("review.approved") == 1


SCENES: dict[str, tuple[Any, Any, Any]] = {
    "split": (split_prepare, split_act, split_check),
    "join": (join_prepare, join_act, join_check),
    "rest": (rest_prepare, rest_act, join_check),
    "judge": (judge_prepare, judge_act, judge_check),
}


def die(repository: Path, place: str, scene: str, steps: int, out: int) -> None:
    """Prepare, tell what was prepared, and die in the act; exit 0 when it survived."""
    prepare, act, _ = SCENES[scene]
    repo = open_test_repository(repository, place)
    one = JoiningAgent(repo, f"{scene}{steps}")
    answer = prepare(one)
    os.write(out, answer.encode())
    os.environ["STEPS"] = str(steps)
    if scene != "judge":
        arm(steps)
    act(one, answer)
    os._exit(0)


def run(repository: Path, place: str, scene: str, stride: int) -> int:
    """Kill at one step after the other until there is none left; tells how many died."""
    for steps in range(1, MOST_STEPS, stride):
        ear, mouth = os.pipe()
        child = os.fork()
        if not child:
            try:
                die(repository, place, scene, steps, mouth)
            finally:
                os._exit(3)
        os.close(mouth)
        _, status = os.waitpid(child, 0)
        answer = os.read(ear, 1000).decode()
        os.close(ear)
        assert os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) == 0, (scene, steps, status)
        checker = os.fork()
        if not checker:
            code = 4
            try:
                repo = open_test_repository(repository, place)
                SCENES[scene][2](JoiningAgent(repo, f"after-{scene}{steps}"), answer)
                code = 0
            finally:
                if code:
                    import traceback

                    traceback.print_exc()
                    sys.stderr.flush()
                os._exit(code)
        _, checked = os.waitpid(checker, 0)
        assert os.waitstatus_to_exitcode(checked) == 0, (scene, steps)
        if not os.WIFSIGNALED(status):
            return steps
    raise AssertionError("it never survived")


def main() -> None:
    repository, place, stride = sys.argv[1:]
    if "://" in place:  # once, and not in each of the processes that are forked
        importlib.import_module("landlane.store.postgres.store")
        importlib.import_module("psycopg")
    print(json.dumps({scene: run(Path(repository), place, scene, int(stride)) for scene in SCENES}))


if __name__ == "__main__":
    main()
