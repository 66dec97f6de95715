"""Plan files: TOML and Markdown are read, and errors have a line."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.plans.fields import FIELDS
from landlane.plans.model import MOST_TASKS, Plan, PlanTask, money_text, new_task
from landlane.plans.parse import read_plan

pytestmark = pytest.mark.unit

TOML = """
title = "Dates everywhere"
budget = 20

[defaults]
role = "code"
agent = "claude"
attempts = 2

[[task]]
name = "api"
title = "Agree on the interface"
paths = ["src/dates/api.py"]
contract = true
estimate = "20m"

[[task]]
title = "Parse dates"
body = '''
Two forms:
[[task]]
name = "no table"
'''
paths = ["src/dates/{parse,read}.py", "tests/dates/**"]
after = ["api"]
agent = "codex"
check = "pytest tests/dates"
budget = 1.25
needs = { gpu = 8 }
priority = 2
labels = ["v1"]
"""
MARKDOWN = """# Dates everywhere

Some words about it all.

- [ ] Agree on the interface (name: api) (role: code) (agent: claude) (attempts: 2) (contract: yes)
  - estimate: 20m
  - paths: src/dates/api.py
- [ ] Parse dates (role: code)
  - **paths**: `src/dates/{parse,read}.py`, tests/dates/**
  - after: api
  - agent: codex
  - attempts: 2
  - check: `pytest tests/dates`
  - budget: $1.25
  - needs: gpu=8
  - priority: 2
  - label: v1
  Two forms:
  - a bullet that is no fact
"""


def refused(text: str, name: str = "plan.toml") -> Malformed:
    with pytest.raises(Malformed) as caught:
        read_plan(text, name)
    assert caught.value.code == "BAD_PLAN"
    assert caught.value.hint
    return caught.value


def by_name(plan: Plan) -> dict[str, PlanTask]:
    return {task.name: task for task in plan.tasks}


def test_toml_plan_is_read_with_its_defaults() -> None:
    plan = read_plan(TOML, "plan.toml")

    assert (plan.title, plan.budget_micros) == ("Dates everywhere", 20_000_000)
    api, parse = plan.tasks
    assert (api.name, api.is_contract, api.estimate_ms, api.agent) == ("api", True, 20 * 60_000, "claude")
    assert (parse.name, parse.after, parse.agent, parse.attempts) == ("Parse dates", ("api",), "codex", 2)
    assert parse.paths == ("src/dates/{parse,read}.py", "tests/dates/**")
    assert (parse.budget_micros, parse.needs, parse.priority) == (1_250_000, (("gpu", 8),), 2)
    assert "[[task]]" in parse.body
    assert (api.line, parse.line) == (10, 17)


def test_toml_and_markdown_give_the_same_plan() -> None:
    toml, markdown = read_plan(TOML, "plan.toml"), read_plan(MARKDOWN, "PLAN.md")

    assert markdown.title == toml.title
    for one, other in zip(toml.tasks, markdown.tasks, strict=True):
        for field, _ in FIELDS.values():
            if field != "body":
                assert getattr(other, field) == getattr(one, field), field
    assert markdown.tasks[1].body == "Two forms:\n- a bullet that is no fact"
    assert [task.line for task in markdown.tasks] == [5, 8]


def test_format_is_detected_from_the_text_if_the_file_name_does_not_say_it() -> None:
    assert read_plan(TOML, "-").tasks[0].name == "api"
    assert read_plan(MARKDOWN, "-").tasks[0].name == "api"


def test_titles_can_be_used_as_names_in_any_case_and_with_commas() -> None:
    plan = read_plan(
        "- [x] Parse, then show\n- [ ] T9 Ship\n- [ ] Tell (after: parse,  THEN show) (after: T9)\n", "p.md"
    )

    assert plan.tasks[0].is_ticked
    assert plan.tasks[1].name == "T9"
    assert plan.tasks[2].after == ("Parse, then show", "T9")


def test_invalid_plan_is_refused_with_the_line() -> None:
    assert refused("[[task]]\ntitle = \n").facts["line"] == 2
    assert refused('[[task]]\ntitle = "A"\npahts = ["a"]\n').facts["line"] == 3
    misspelled = refused('[[task]]\ntitle = "A"\npahts = ["a"]\n')
    assert (misspelled.message, misspelled.facts["remark"]) == (
        "line 3: unknown key pahts",
        "did you mean paths?",
    )
    assert misspelled.hint == "a complete example: landlane help plan check"
    assert refused('[[task]]\ntitle = "A"\n\n[[task]]\nname = ""\n').facts["line"] == 4
    assert refused('[[task]]\ntitle = "A"\nestimate = 20\n').facts["line"] == 3
    assert refused('[[task]]\ntitle = "A"\nestimate = "soon"\n').facts["line"] == 3
    assert refused('[[task]]\ntitle = "A"\nbudget = nan\n').facts["line"] == 3
    assert refused('[[task]]\ntitle = "A"\npaths = [1]\n').facts["line"] == 3
    assert refused('[[task]]\ntitle = "A"\nattempts = 1000\n').facts["line"] == 3
    assert refused('[[task]]\ntitle = "A"\n[[task]]\nname = "a"\n').facts["line"] == 3
    assert refused('[defaults]\ntitle = "x"\n').facts["line"] == 2
    assert refused("tasks = 3\n").message.startswith("line 1: unknown key tasks")
    assert "no task" in refused("title = 'x'\n").message
    assert "no task" in refused("# Nothing\n", "p.md").message
    assert refused("- [ ] A\n- [ ] B (pahts: src)\n", "p.md").facts["line"] == 2
    assert refused("- [ ] A\n- [ ]   (role: code)\n", "p.md").facts["line"] == 2
    assert refused("- [ ] A\n  - role: code\n  - role: test\n", "p.md").facts["line"] == 3
    assert refused("- [ ] A\n\n- [ ] a\n", "p.md").facts["line"] == 3
    assert refused("- [ ] A\n  - contract: perhaps\n", "p.md").facts["line"] == 2
    assert refused("- [ ] A\n\0", "p.md").facts["line"] == 2


def test_tables_inside_multi_line_strings_do_not_shift_the_lines() -> None:
    bodies = "body = " + '"""' + r'[[task]] \"""' + "\n[[task]]\n" + '"""'
    text = f'# it\'s """\n[[task]]\ntitle = "A # \'\'\'"\n{bodies}\n\n[[task]]\ntitle = "B"\n'
    assert [task.line for task in read_plan(text, "p.toml").tasks] == [2, 8]


def test_sizes_are_bounded() -> None:
    many = "".join(f"- [ ] Task {number}\n" for number in range(MOST_TASKS + 1))
    assert refused(many, "p.md").facts["line"] == MOST_TASKS + 1
    wide = "".join(f"- [ ] A{n} (paths: {', '.join(f'p{n}/{i}' for i in range(90))})\n" for n in range(40))
    assert "3,600 paths" in refused(wide, "p.md").message
    assert "characters" in refused("x" * 4_000_001, "p.md").message
    assert refused("a = " + "[" * 100_000).code == "BAD_PLAN"


def test_plan_keeps_its_identity_when_tasks_are_added_or_ticked() -> None:
    short = read_plan("# Dates\n- [ ] Parse\n", "p.md")
    longer = read_plan("# Dates\n- [x] Parse\n- [ ] Show\n", "p.md")
    other = read_plan("# Times\n- [ ] Parse\n", "p.md")
    named = read_plan("# Times\n<!-- plan: dates-1 -->\n- [ ] Parse\n", "p.md")
    bare = read_plan("- [ ] Parse\n", "p.md")

    assert longer.key_of(longer.tasks[0]) == short.key_of(short.tasks[0])
    assert len({one.key_of(one.tasks[0]) for one in (short, other, named, bare)}) == 4
    assert bare.digest != read_plan("- [ ] Parse it\n", "p.md").digest


def test_fields_that_the_queue_does_not_have_become_labels() -> None:
    task = by_name(read_plan(TOML, "plan.toml"))["Parse dates"]

    new = new_task(task, "k", after=("T1",))

    assert new.labels == ("v1", "agent:codex", "needs:gpu=8", "budget:1.25")
    assert (new.key, new.after, new.max_attempts, new.role) == ("k", ("T1",), 2, "code")
    assert money_text(1_500_001) == "1.500001"


@given(st.text(max_size=400), st.sampled_from(["p.md", "p.toml", ""]))
def test_any_text_is_a_plan_or_refused(text: str, name: str) -> None:
    with suppress(Malformed):
        assert read_plan(text, name).tasks


LINES = st.lists(
    st.sampled_from(
        [
            "[[task]]",
            "[defaults]",
            'title = "A"',
            'name = "b"',
            "paths = [",
            '"x",',
            "]",
            "'''",
            "budget = 1e400",
            "needs = {a = -1}",
            "- [ ] A (after: B)",
            "- [x] B (paths: {a,",
            "  - after: A, B, `C",
            "  - budget: -3",
            "# T",
            "```",
        ]
    ),
    max_size=12,
)


@given(LINES, st.sampled_from(["p.md", "p.toml", ""]))
def test_lines_in_any_order_are_a_plan_or_refused(lines: list[str], name: str) -> None:
    with suppress(Malformed):
        assert read_plan("\n".join(lines), name).tasks
