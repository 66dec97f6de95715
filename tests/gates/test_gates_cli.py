"""Gates as agents and people type them: one inbox, the riskiest first, and answers that resume the work."""

from __future__ import annotations

import re

import pytest

from landlane.cli.serve_sandboxed import refusal_of
from landlane.cli.specs.table import all_commands
from tests.support.shell import Shell, run_at_terminal
from tests.support.snapshots import check_snapshot
from tests.support.waiting import wait_until

pytestmark = pytest.mark.acceptance

SETTINGS = """\
[landing]
checks = []
resident = false
gate = ["prices"]

[gates]
overdue = "1s"

[deploy.prod]
gate = true
"""


@pytest.fixture
def call(shell: Shell) -> Shell:
    """A repository where ann has T1 in hand, with a commit on its branch."""
    (shell.folder / "landlane.toml").write_text(SETTINGS)
    shell.git("add", ".")
    shell.git("commit", "--quiet", "-m", "Settings")
    shell.run_json("task", "add", "Raise the price", "--path", "src", "--path", "prices", "--as", "lead")
    shell.run_json("next", "--as", "ann")
    shell.git("worktree", "add", "--quiet", "-b", "landlane/T1-1/work", "../ann", "main")
    ann = shell.at(shell.folder.parent / "ann")
    commit(ann, "one")
    return shell


def commit(shell: Shell, text: str) -> str:
    (shell.folder / "prices").write_text(text)
    shell.git("add", "prices")
    shell.git("commit", "--quiet", "-m", f"Say {text}")
    return shell.git("rev-parse", "HEAD").strip()


def test_a_question_waits_in_the_inbox_and_its_answer_resumes_the_work(call: Shell) -> None:
    why = "This changes what people pay. May I?"
    with call.start("gate", "ask", "T1", "--why", why, "--wait", "60s", "--json", "--as", "ann") as waiting:
        wait_until(lambda: call.run_json("gate", "list")["gates"])
        (row,) = call.run_json("gate", "list")["gates"]
        head = call.git("rev-parse", "landlane/T1-1/work").strip()
        assert (row["id"], row["kind"], row["agent"], row["task"]) == ("G1", "approval", "ann", "T1")
        assert row["about"] == {"branch": "landlane/T1-1/work", "head": head}
        assert (row["evidence"]["files"], row["evidence"]["paths"]) == (1, ["prices"])
        assert set(call.holders().values()) == {"G1"}
        refused = call.run_error("CLAIM_HELD", "claim", "prices", "--as", "bob", exit=3)
        assert "gate show G1" in str(refused)
        shown = call.run_text("gate", "show", "G1")
        assert why in shown
        assert "1 file, +1 −0: prices" in shown
        assert "approve: landlane gate approve G1" in shown

        code, said = run_at_terminal(call, "gate", "approve", "G1", "--head", head[:9], "--why", "once")

        assert code == 0, said
        assert "✓ approved G1; ann continues T1 Raise the price" in said
        ended = waiting.end()
    assert ended.exit == 0, ended
    assert (ended.json()["gate"]["state"], ended.json()["gate"]["answer"]) == ("approved", "once")
    assert set(call.holders().values()) == {"ann"}
    task = call.run_json("task", "show", "T1")["task"]
    assert (task["state"], task["owner"]) == ("active", "ann")
    assert call.run_json("gate", "ask", "T1", "--why", why, "--as", "ann")["gate"]["id"] == "G1", (
        "the same answer"
    )
    assert call.run_json("gate", "list")["gates"] == []
    assert [row["state"] for row in call.run_json("gate", "list", "--all")["gates"]] == ["approved"]


@pytest.mark.slow
def test_without_an_answer_it_ends_with_seven_and_a_no_with_six(call: Shell) -> None:
    words = ("gate", "ask", "T1", "--kind", "taste", "--why", "Red?", "--as", "ann")
    for more in ((), ("--wait", "0.2s")):
        answer = call.run_error("WAITS_FOR_PERSON", *words, *more, exit=7)
        assert answer["gate"]["state"] == "waiting"
    call.run_error("GATE_OPEN", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    wait_until(lambda: call.run_json("gate", "list")["gates"][0]["is_overdue"])
    assert "overdue" in call.run_text("gate", "list")
    assert run_at_terminal(call, "gate", "reject", "G1")[0] == 2, "a no needs a reason"
    code, said = run_at_terminal(call, "gate", "reject", "G1", "--why", "blue it is")
    assert code == 0, said
    answer = call.run_error("GATE_REJECTED", *words, exit=6)
    assert "blue it is" in answer["message"]
    call.run_error("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    assert call.run_json("gate", "withdraw", "G2", "--as", "ann")["gate"]["state"] == "withdrawn"
    assert call.run_json("task", "show", "T1")["task"]["state"] == "active"
    call.run_error("UNKNOWN_GATE", "gate", "show", "G9")
    call.run_error("BAD_GATE_KIND", "gate", "ask", "T1", "--kind", "love", "--why", "x", "--as", "ann")
    call.run_error("BAD_ABOUT", "gate", "ask", "T1", "--why", "x", "--about", "no such", "--as", "ann")
    call.run_error("TASK_NOT_YOURS", "gate", "ask", "T1", "--why", "x", "--as", "bob", exit=4)


@pytest.mark.promise(
    "gates.only-a-person-answers",
    "No agent, role, subagent, tool or sandboxed caller can answer a question for a person.",
)
@pytest.mark.slow
def test_no_agent_can_answer_and_what_moved_cannot_be_approved(call: Shell) -> None:
    call.run_error("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "x", "--as", "ann", exit=7)
    joined = call.run_json("join", "ann")["session"]
    secret = f"{joined['id']}:{joined['secret']}"
    for verb in (("approve", "G1"), ("reject", "G1", "--why", "no")):
        call.run_error("NOT_A_PERSON", "gate", *verb, exit=6)
        for environment in (
            {"LANDLANE_AGENT": "ann"},
            {"LANDLANE_SESSION": secret},
            {"CODEX_SANDBOX": "1"},
        ):
            code, said = run_at_terminal(call, "gate", *verb, **environment)
            assert (code, "NOT_A_PERSON" in said) == (6, True), said
        (command,) = [one for one in all_commands() if one.path == f"gate {verb[0]}"]
        assert refusal_of(command, {}) is not None, "nobody in a sandbox can"
    commit(call.at(call.folder.parent / "ann"), "two")
    code, said = run_at_terminal(call, "gate", "approve", "G1")
    assert (code, "HEAD_MOVED" in said) == (4, True), said
    assert call.run_json("gate", "show", "G1")["gate"]["moved"]


def test_one_inbox_for_gates_and_landings_by_risk(call: Shell) -> None:
    call.run_json("task", "add", "Choose a colour", "--as", "lead")
    call.run_json("next", "--as", "bob")
    call.run_error(
        "WAITS_FOR_PERSON", "gate", "ask", "T2", "--kind", "taste", "--why", "Red?", "--as", "bob", exit=7
    )
    ann = call.at(call.folder.parent / "ann")
    ann.run_error("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)
    call.run_json("task", "add", "Pay", "--as", "lead")
    call.run_json("next", "--as", "cat")
    words = ("gate", "ask", "T3", "--kind", "financial", "--why", "Buy it?", "--about", "amount=120 USD")
    call.run_error("WAITS_FOR_PERSON", *words, "--as", "cat", exit=7)
    rows = call.run_json("gate", "list")["gates"]
    assert [(row["id"], row["kind"]) for row in rows] == [
        ("G2", "financial"),
        ("L1", "landing"),
        ("G1", "taste"),
    ]
    assert rows[1]["evidence"]["added"] == 1
    assert call.run_json("gate", "show", "L1")["gate"]["diffstat"]
    assert run_at_terminal(call, "gate", "approve", "L1")[0] == 0


def test_a_card_and_its_answer_in_the_inbox(call: Shell) -> None:
    call.run_json("task", "add", "Tell the customers", "--after", "T1", "--as", "lead")
    ann = call.at(call.folder.parent / "ann")
    ann.run_error("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)
    check("landing_card", call.run_text("gate", "show", "L1"))
    assert call.run_text("inbox", "l1") == call.run_text("gate", "show", "L1"), "nobody can be asked"
    unblocks = call.run_json("inbox", "L1")["gate"]["unblocks"]
    assert unblocks == [{"task": "T2", "title": "Tell the customers", "waits_for": []}]

    code, said = run_at_terminal(call, "inbox", "L1", typed="d\nl\n", NO_COLOR="1")
    assert (code, "+one" in said) == (0, True), said
    code, said = run_at_terminal(call, "inbox", "L1", typed="a\n", NO_COLOR="1")
    assert code == 0, said
    check("approved", said)
    assert call.run_json("gate", "list")["gates"] == []


def test_a_rejected_landing_says_what_follows(call: Shell) -> None:
    ann = call.at(call.folder.parent / "ann")
    ann.run_error("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)
    code, said = run_at_terminal(call, "inbox", "L1", typed="r\nkeep the old form\n", NO_COLOR="1")
    assert code == 0, said
    check("rejected", said)


def test_questions_and_an_agent_that_answers(call: Shell) -> None:
    asked = call.run("gate", "ask", "T1", "--why", "Drop the table?", "--as", "ann")
    check("asked", asked.err)
    check("gate_list", call.run_text("gate", "list"))
    check("question_card", call.run_text("gate", "show", "G1"))
    check("not_a_person", call.run("gate", "approve", "G1", "--as", "ann").err)


def check(name: str, text: str) -> None:
    """Compare a text with its snapshot, without the parts that differ from run to run."""
    text = re.sub(r"\b[0-9a-f]{8}\b", "COMMIT", text)
    text = re.sub(r" *\b\d+ s\b", "  AGE", text)
    check_snapshot(f"gates/snapshots/{name}.txt", text.rstrip("\n"))


def test_a_gated_deploy_waits_for_this_commit_and_command(call: Shell) -> None:
    ship = ("deploy", "prod", "--as", "dan", "--", "touch", "../live")
    first = call.run_error("WAITS_FOR_PERSON", *ship, exit=7)
    again = call.run_error("WAITS_FOR_PERSON", *ship, exit=7)
    assert first["gate"] == again["gate"] == "G1"
    assert "deploy:prod" not in call.holders(), "nobody is kept off the target meanwhile"
    assert run_at_terminal(call, "gate", "approve", "G1")[0] == 0
    other = call.run_error("WAITS_FOR_PERSON", "deploy", "prod", "--as", "dan", "--", "true", exit=7)
    assert other["gate"] == "G2"
    assert run_at_terminal(call, "gate", "reject", "G2", "--why", "not that one")[0] == 0
    call.run_error("GATE_REJECTED", "deploy", "prod", "--as", "dan", "--", "true", exit=6)
    assert call.run_json(*ship)["state"] == "live"
    assert run_at_terminal(call, "gate", "reject", "G1", "--why", "not again")[0] == 0, "until it is made"
    call.run_error("GATE_REJECTED", *ship, exit=6)
    assert (call.folder.parent / "live").exists()
    (call.folder / "landlane.toml").write_text(SETTINGS.replace("gate = true", "gate = false"))
    call.git("commit", "--quiet", "--all", "-m", "More")
    assert call.run_json(*ship)["state"] == "live", "the target has no gate any more"
