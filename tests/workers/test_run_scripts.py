"""Plain commands as workers: the task as variables and a file, the result by exit code and changed files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell
from tests.workers.running import LIMIT_SECONDS, WorkerTestbed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.soak, pytest.mark.sandbox]

# Does what the body of the task says, in a shell.
OBEY = '#!/bin/sh\neval "$LANDLANE_BODY"\n'


@pytest.fixture
def scripts(repository: Path) -> WorkerTestbed:
    script = repository / "do.sh"
    script.write_text(OBEY)
    script.chmod(0o755)
    (repository / ".gitignore").write_text("out/\n")
    return WorkerTestbed(repository)


def add(works: WorkerTestbed, body: str, *words: str, title: str = "Do it") -> str:
    """A task whose body is the script that does it; its id."""
    ended = works.shell.run("task", "add", title, "--force", "--body", "-", *words, "--json", stdin=body)
    assert ended.exit == 0, ended
    return ended.json()["task"]["id"]


def test_changed_files_and_exit_0_land(scripts: WorkerTestbed) -> None:
    wrote = (
        'mkdir -p docs; echo "$LANDLANE_TASK $LANDLANE_ATTEMPT $LANDLANE_TITLE" > "$LANDLANE_PATHS"; '
        "echo wrote it"
    )
    task = add(scripts, wrote, "--path", "docs/a.md", "--role", "propose")

    answer = scripts.run("--", "./do.sh")

    assert answer["summary"]["done"] == [task]
    assert scripts.text("docs/a.md") == f"{task} 1 Do it"
    assert scripts.task(task)["result"] == "wrote it"
    scripts.check_clean()


def test_a_role_that_commits_gets_its_files_committed(scripts: WorkerTestbed) -> None:
    task = add(scripts, "rm log.txt; cat > b.md", "--path", "b.md", "--path", "log.txt")
    (scripts.root / "log.txt").write_text("old\n")
    scripts.git("add", "log.txt")
    scripts.git("commit", "--quiet", "-m", "Add a log")

    scripts.run("--", "./do.sh")

    assert scripts.text("b.md").startswith(f"Task {task}: Do it\n")  # the prompt is on standard input
    assert scripts.git("ls-tree", "--name-only", "main", "log.txt") == ""


def test_standard_error_is_the_feedback_of_the_next_attempt(scripts: WorkerTestbed) -> None:
    body = (
        'if [ "$LANDLANE_ATTEMPT" = 1 ]; then echo half > a.md; echo "no such endpoint" >&2; exit 4; fi; '
        'grep -q "exit 4: no such endpoint" "$LANDLANE_TASK_FILE" && echo done > a.md'
    )
    task = add(scripts, body, "--path", "a.md", "--role", "propose")

    scripts.run("--", "./do.sh")

    assert scripts.text("a.md") == "done"
    assert scripts.task(task)["attempt"] == 2


def test_feedback_repeats_no_line_and_names_files_as_in_the_checkout(scripts: WorkerTestbed) -> None:
    task = add(
        scripts, 'echo "$PWD/a.md: no such endpoint" >&2; exit 4', "--path", "a.md", "--max-attempts", "1"
    )

    answer = scripts.run("--", "./do.sh", exit=7)

    (asked,) = answer["summary"]["waiting_for_person"]
    assert (asked["task"], asked["question"]) == (
        task,
        "its only attempt failed: exit 4: a.md: no such endpoint: retry?",
    )


def test_exit_0_without_a_change_has_failed(scripts: WorkerTestbed) -> None:
    task = add(scripts, "true", "--path", "a.md", "--max-attempts", "1")

    answer = scripts.run("--", "./do.sh", exit=7)

    question = "its only attempt failed: it reported success but changed no file: retry?"
    (asked,) = answer["summary"]["waiting_for_person"]
    assert (asked["task"], asked["title"], asked["question"]) == (task, "Do it", question)


def test_a_deleted_file_and_an_ignored_output_are_returned(scripts: WorkerTestbed) -> None:
    output = add(
        scripts, "mkdir -p out; echo x > out/x", "--output", "out/x", "--path", "out/x", "--role", "propose"
    )
    words = ("--path", "old.md", "--path", "new.md", "--role", "propose")
    deleted = add(scripts, "rm old.md; echo y > new.md", *words)
    (scripts.root / "old.md").write_text("old\n")
    scripts.git("add", "old.md")
    scripts.git("commit", "--quiet", "-m", "Add a file")

    answer = scripts.run("--", "./do.sh")

    assert set(answer["summary"]["done"]) == {output, deleted}
    assert (scripts.root / "out/x").read_text() == "x\n"
    assert scripts.git("ls-tree", "--name-only", "main", "old.md", "new.md") == "new.md"


def test_a_silent_script_is_stopped_and_a_busy_one_is_not(repository: Path) -> None:
    (repository / "do.sh").write_text(OBEY)
    works = WorkerTestbed(
        repository,
        more='[agents.do]\ncommand = ["sh", "do.sh"]\nheartbeat = "3s"\n[retries]\nbackoff = "100ms"\n',
    )
    hang = 'if [ "$LANDLANE_ATTEMPT" = 1 ]; then sleep 1000; fi; echo a > a.md'
    task = add(works, hang, "--path", "a.md")
    busy = add(works, "for i in 1 2 3 4 5; do sleep 1; echo $i; done; echo b > b.md", "--path", "b.md")

    works.run("--agent", "do")

    assert works.task(task)["attempt"] == 2
    assert works.task(busy)["attempt"] == 1
    assert "no output for 3 s" in str(works.shell.run_json("task", "show", task))
    works.check_clean()


@pytest.mark.slow
def test_a_hang_twice_asks_a_person_after_the_second_attempt(repository: Path) -> None:
    (repository / "do.sh").write_text(OBEY)
    more = '[agents.do]\ncommand = ["sh", "do.sh"]\nheartbeat = "1s"\n[retries]\nbackoff = "100ms"\n'
    works = WorkerTestbed(repository, more=more)
    task = add(works, "sleep 1000", "--path", "a.md", "--max-attempts", "5")

    ended = works.shell.run("run", "--agent", "do", limit_seconds=LIMIT_SECONDS)

    assert (ended.exit, works.task(task)["attempt"]) == (7, 2)
    assert f"! {task} Do it" in ended.out
    assert "landlane inbox G1" in ended.out
    assert "✗" not in ended.out
    assert works.shell.run_text("inbox", "G1").count("no output for 1 s") >= 2, "the whole history"


@pytest.mark.slow
def test_a_committing_worker_on_a_task_without_paths_claims_what_it_changes(works: WorkerTestbed) -> None:
    task = works.add("Write it", script={"write": {"new/a.txt": "x\n"}})

    works.run()

    assert works.states()[task] == "done"
    assert works.text("new/a.txt") == "x"


@pytest.mark.slow
def test_a_task_for_another_agent_or_a_person_is_not_started(works: WorkerTestbed) -> None:
    mine = works.add("Mine", "a.txt", script={"write": {"a.txt": "x\n"}}, assign="scripted")
    anns = works.add("Ann's", "b.txt", script={"write": {"b.txt": "x\n"}}, assign="ann")
    pats = works.add("Pat's", "c.txt", script={"write": {"c.txt": "x\n"}}, assign="person:pat")
    asked = works.add("Asked", "d.txt", script={"write": {"d.txt": "x\n"}}, gate="Is that wanted?")

    answer = works.run(exit=7)

    assert works.states() == {mine: "done", anns: "ready", pats: "ready", asked: "waiting_for_person"}
    waiting = {one["task"] for one in answer["summary"]["waiting_for_person"]}
    assert waiting == {pats, asked}


def test_a_command_and_an_agent_together_are_refused(works: WorkerTestbed) -> None:
    ended = works.shell.run("run", "--agent", "scripted", "--json", "--", "./do.sh")

    assert ended.exit == 2
    assert ended.json()["hint"] == "landlane run -- ./do.sh"


@pytest.mark.promise(
    "run.first-script", "An own script lands its first task after five commands and two lines of settings."
)
def test_from_nothing_to_the_first_landed_task_takes_five_commands(repository: Path) -> None:
    script = repository / "do.sh"
    script.write_text('#!/bin/sh\necho "# $LANDLANE_TITLE" > "$LANDLANE_PATHS"\n')
    script.chmod(0o755)
    shell = Shell(repository)

    shell.run_text("config", "set", "landing.checks", '["test -s do.sh"]')
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Add a worker")
    shell.run_text("task", "add", "Opening hours", "--path", "hours.md")
    ended = shell.run("run", "--", "./do.sh", limit_seconds=LIMIT_SECONDS)

    assert ended.exit == 0
    assert ended.out.startswith("1 landed in ")
    assert shell.git("show", "main:hours.md") == "# Opening hours\n"
    assert len((repository / "landlane.toml").read_text().splitlines()) <= 3


@pytest.mark.promise(
    "run.ignores-modules", "Files of the repository named like Python modules are never imported by a run."
)
def test_a_file_named_queue_neither_breaks_a_run_nor_is_executed(scripts: WorkerTestbed) -> None:
    executed = scripts.root.parent / "executed"
    for name in ("queue.py", "selectors.py", "json.py"):
        (scripts.root / name).write_text(f"open({str(executed)!r}, 'w')\nraise SystemExit('imported')\n")
    scripts.git("add", "--all")
    scripts.git("commit", "--quiet", "-m", "Add modules")
    task = add(scripts, "echo a > a.md", "--path", "a.md")

    scripts.run("--", "./do.sh")

    assert scripts.states()[task] == "done"
    assert not executed.exists()


def test_a_run_ends_while_a_person_reviews_and_says_who_is_waited_for(scripts: WorkerTestbed) -> None:
    task = add(scripts, "echo 1 > a.md", "--path", "a.md", "--role", "explore", "--reviewer", "person")

    answer = scripts.run("--", "./do.sh", exit=7)

    assert [one["task"] for one in answer["summary"]["waiting_for_person"]] == [task]
    (item,) = scripts.shell.run_json("inbox")["items"]
    assert item["id"] == "V1"
    waits = {one["id"]: one["waits_for"] for one in scripts.shell.run_json("task", "list")["tasks"]}
    assert {task_id: [wait["id"] for wait in found] for task_id, found in waits.items()} == {
        task: ["V1"],
        "T2": ["V1"],
    }
    listed = scripts.shell.run_text("task", "list")
    assert listed.count("a person: V1") == 2
    assert "landlane next" not in scripts.shell.run_text()
