"""Checklists: what is written is read back, and what people write is understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.tasks.checklist import as_checklist, read_checklist, split_item
from landlane.tasks.model import Task, TaskState

pytestmark = pytest.mark.unit


def task(**facts: object) -> Task:
    base: dict[str, object] = {
        "id": "T1",
        "title": "Parse dates",
        "body": "",
        "kind": "",
        "state": "ready",
        "role": "",
        "priority": 0,
        "rank": 0,
        "stored_paths": "[]",
        "owner": "",
        "session": "",
        "attempt": 0,
        "failures": 0,
        "lapses": 0,
        "max_attempts": 3,
        "lineage": "T1",
        "check": "",
        "output": "",
        "key": "",
        "labels": (),
        "why": "",
        "next_action": "",
        "head": "",
        "result": "",
        "waits_for": 0,
        "created_at": 0,
        "ready_at": 0,
        "taken_at": 0,
    }
    return Task(**{**base, **facts})  # type: ignore[arg-type]


def test_a_list_is_written_for_people() -> None:
    written = as_checklist(
        [
            (task(state="done", owner="ann"), ("src/a.py",)),
            (task(id="T2", title="Call f(x)", after=("T1",), state="active", owner="bob", priority=2), ()),
            (task(id="T3", state="dropped", title="Old", body="one\n\n- [ ] no task\n"), ()),
        ]
    )
    assert written == (
        "# Tasks\n\n"
        "- [x] T1 Parse dates (path: src/a.py)\n"
        "- [ ] T2 Call f\\(x\\) (after: T1) (priority: 2) (state: active) (owner: bob)\n"
        "- [-] T3 Old (state: dropped)\n"
        "  > one\n  >\n  > - [ ] no task\n"
    )


line = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=40).map(
    lambda text: " ".join(text.split())
)
tricky = st.sampled_from(
    [
        "Ping @ann",
        "Do (role: x)",
        "(path: a)",
        "a \\(b",
        "end)",
        "T7",
        "*active*",
        "- [ ] x",
        "x \\",
        "(a (b) c)",
    ]
)
titles = (line | tricky).filter(bool)


@given(
    st.lists(
        st.builds(
            task,
            title=titles,
            state=st.sampled_from(TaskState),
            owner=st.sampled_from(["", "ann"]),
            check=st.just("") | titles,
            output=st.just("") | titles,
            role=st.sampled_from(["", "test"]),
            kind=st.sampled_from(["", "code"]),
            labels=st.lists(st.sampled_from(["x", "y (z)"]), unique=True).map(tuple),
            priority=st.integers(-1000, 1000),
            after=st.lists(st.sampled_from(["T1", "T2"]), unique=True).map(tuple),
            body=st.lists(titles, max_size=3).map("\n".join),
        ),
        max_size=4,
    ),
    st.lists(line, max_size=2, unique=True).map(tuple),
)
def test_written_checklist_is_read_back(tasks: list[Task], paths: tuple[str, ...]) -> None:
    items = read_checklist(as_checklist((one, paths) for one in tasks))
    assert len(items) == len(tasks)
    for item, one in zip(items, tasks, strict=True):
        new = item.task
        assert (item.task_id, item.is_ticked) == (one.id, one.state in ("done", "dropped"))
        assert (new.title, new.paths, new.after, new.labels) == (one.title, paths, one.after, one.labels)
        assert (new.check, new.output, new.role) == (one.check, one.output, one.role)
        assert (new.priority, new.kind, new.body) == (one.priority, one.kind, one.body)


def test_checklist_written_by_people_is_read() -> None:
    items = read_checklist(
        "# Plan\n\nSome words.\n\n"
        "* [ ] Write the parser (path: src/**/*.py) (check: pytest -k '(a or b)') (attempts: 5)\n"
        "    with care,\n\tand soon\n"
        "  - [x] Ask Bob\n"
        "+ [ ] Release (after: Write the parser) (after: T4) (label: v1) (priority: -2)\n"
        "- [] no item\n- [y] nor this\n- [ ] T12 Old one (see: the wiki)\n"
    )
    first, second, third, fourth = items
    assert first.task.title == "Write the parser"
    assert first.task.paths == ("src/**/*.py",)
    assert first.task.check == "pytest -k '(a or b)'"
    assert (first.task.max_attempts, first.task.body) == (5, "with care,\nand soon")
    assert (second.task.title, second.is_ticked) == ("Ask Bob", True)
    assert third.task.after == ("Write the parser", "T4")
    assert (third.task.labels, third.task.priority, third.line) == (("v1",), -2, 9)
    assert (fourth.task_id, fourth.task.title) == ("T12", "Old one (see: the wiki)")


def test_a_task_without_an_id_is_known_by_its_title() -> None:
    keys = {read_checklist(f"- [ ] {title}\n")[0].task.key for title in ("Parse dates", "parse  Dates")}
    assert len(keys) == 1
    assert read_checklist("- [ ] x (key: mine)")[0].task.key == "mine"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- [ ] a\n- [ ] T3", 2),
        ("\n- [ ] a (priority: high)", 2),
        ("- [ ] ", 1),
        ("- [ ] a (attempts: -)", 1),
    ],
)
def test_an_item_that_cannot_be_understood_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(Malformed) as refused:
        read_checklist(text)
    assert refused.value.code == "BAD_CHECKLIST"
    assert refused.value.facts["line"] == line


def test_brackets_that_stand_alone_are_a_title() -> None:
    assert read_checklist("- [ ] (role: x)")[0].task.title == "(role: x)"


def test_another_assignee_changes_no_other_word_that_begins_with_an_at_sign() -> None:
    item = split_item("Ping (check: ping @host now) @bob (T1)", frozenset({"check"}))

    assert item.with_assignee("ann").text() == "Ping @ann (check: ping @host now) (T1)"
    assert item.with_assignee("").text() == "Ping (check: ping @host now) (T1)"
