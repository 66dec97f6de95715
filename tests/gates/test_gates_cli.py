"""Gates as agents and people type them: one inbox, the riskiest first, and answers that resume the work."""

from __future__ import annotations

import pytest

from landlane.cli.sandboxed.serve import refusal_of
from landlane.cli.specs.table import COMMANDS
from tests.support.shell import Shell, at_terminal
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
    shell.ask("task", "add", "Raise the price", "--path", "src", "--path", "prices", "--as", "lead")
    shell.ask("next", "--as", "ann")
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
        wait_until(lambda: call.ask("gate", "list")["gates"])
        (row,) = call.ask("gate", "list")["gates"]
        head = call.git("rev-parse", "landlane/T1-1/work").strip()
        assert (row["id"], row["kind"], row["agent"], row["task"]) == ("G1", "approval", "ann", "T1")
        assert row["about"] == {"branch": "landlane/T1-1/work", "head": head}
        assert (row["evidence"]["files"], row["evidence"]["paths"]) == (1, ["prices"])
        assert set(call.holders().values()) == {"gate-G1"}
        refused = call.refuse("CLAIM_HELD", "claim", "prices", "--as", "bob", exit=3)
        assert "gate show G1" in str(refused)
        shown = call.tell("gate", "show", "G1")
        assert why in shown
        assert "1 file +1 -0" in shown
        assert "prices | 1 +" in shown

        code, said = at_terminal(call, "gate", "approve", "G1", "--head", head[:9], "--why", "once")

        assert code == 0, said
        assert "G1 is approved; ann goes on with T1" in said
        ended = waiting.end()
    assert ended.exit == 0, ended
    assert (ended.answer()["gate"]["state"], ended.answer()["gate"]["answer"]) == ("approved", "once")
    assert set(call.holders().values()) == {"ann"}
    task = call.ask("task", "show", "T1")["task"]
    assert (task["state"], task["owner"]) == ("active", "ann")
    assert call.ask("gate", "ask", "T1", "--why", why, "--as", "ann")["gate"]["id"] == "G1", "the same answer"
    assert call.ask("gate", "list")["gates"] == []
    assert [row["state"] for row in call.ask("gate", "list", "--all")["gates"]] == ["approved"]


@pytest.mark.slow
def test_without_an_answer_it_ends_with_seven_and_a_no_with_six(call: Shell) -> None:
    words = ("gate", "ask", "T1", "--kind", "taste", "--why", "Red?", "--as", "ann")
    for more in ((), ("--wait", "0.2s")):
        answer = call.refuse("WAITS_FOR_PERSON", *words, *more, exit=7)
        assert answer["gate"]["state"] == "waiting"
    call.refuse("GATE_OPEN", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    wait_until(lambda: call.ask("gate", "list")["gates"][0]["is_overdue"])
    assert "overdue" in call.tell("gate", "list")
    assert at_terminal(call, "gate", "reject", "G1")[0] == 2, "a no needs a reason"
    code, said = at_terminal(call, "gate", "reject", "G1", "--why", "blue it is")
    assert code == 0, said
    answer = call.refuse("GATE_REJECTED", *words, exit=6)
    assert "blue it is" in answer["message"]
    call.refuse("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    assert call.ask("gate", "withdraw", "G2", "--as", "ann")["gate"]["state"] == "withdrawn"
    assert call.ask("task", "show", "T1")["task"]["state"] == "active"
    call.refuse("UNKNOWN_GATE", "gate", "show", "G9")
    call.refuse("BAD_GATE_KIND", "gate", "ask", "T1", "--kind", "love", "--why", "x", "--as", "ann")
    call.refuse("BAD_ABOUT", "gate", "ask", "T1", "--why", "x", "--about", "no such", "--as", "ann")
    call.refuse("TASK_NOT_YOURS", "gate", "ask", "T1", "--why", "x", "--as", "bob", exit=4)


@pytest.mark.promise(
    "gates.only-a-person-answers",
    "No agent, role, subagent, tool or sandboxed caller can answer a question for a person.",
)
@pytest.mark.slow
def test_no_agent_can_answer_and_what_moved_cannot_be_approved(call: Shell) -> None:
    call.refuse("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "x", "--as", "ann", exit=7)
    joined = call.ask("join", "ann")["session"]
    secret = f"{joined['id']}:{joined['secret']}"
    for verb in (("approve", "G1"), ("reject", "G1", "--why", "no")):
        call.refuse("NOT_A_PERSON", "gate", *verb, exit=6)
        for environment in (
            {"LANDLANE_AGENT": "ann"},
            {"LANDLANE_SESSION": secret},
            {"CODEX_SANDBOX": "1"},
        ):
            code, said = at_terminal(call, "gate", *verb, **environment)
            assert (code, "NOT_A_PERSON" in said) == (6, True), said
        (command,) = [one for one in COMMANDS if one.path == f"gate {verb[0]}"]
        assert refusal_of(command, {}) is not None, "nobody in a sandbox can"
    commit(call.at(call.folder.parent / "ann"), "two")
    code, said = at_terminal(call, "gate", "approve", "G1")
    assert (code, "HEAD_MOVED" in said) == (4, True), said
    assert call.ask("gate", "show", "G1")["gate"]["moved"]


def test_one_inbox_for_gates_and_landings_by_risk(call: Shell) -> None:
    call.ask("task", "add", "Choose a colour", "--as", "lead")
    call.ask("next", "--as", "bob")
    call.refuse(
        "WAITS_FOR_PERSON", "gate", "ask", "T2", "--kind", "taste", "--why", "Red?", "--as", "bob", exit=7
    )
    ann = call.at(call.folder.parent / "ann")
    ann.refuse("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)
    call.ask("task", "add", "Pay", "--as", "lead")
    call.ask("next", "--as", "cat")
    words = ("gate", "ask", "T3", "--kind", "financial", "--why", "Buy it?", "--about", "amount=120 USD")
    call.refuse("WAITS_FOR_PERSON", *words, "--as", "cat", exit=7)
    rows = call.ask("gate", "list")["gates"]
    assert [(row["id"], row["kind"]) for row in rows] == [
        ("G2", "financial"),
        ("L1", "landing"),
        ("G1", "taste"),
    ]
    assert rows[1]["evidence"]["added"] == 1
    assert call.ask("gate", "show", "L1")["gate"]["diffstat"]
    assert at_terminal(call, "gate", "approve", "L1")[0] == 0


def test_a_gated_deploy_waits_for_this_commit_and_command(call: Shell) -> None:
    ship = ("deploy", "prod", "--as", "dan", "--", "touch", "../live")
    first = call.refuse("WAITS_FOR_PERSON", *ship, exit=7)
    again = call.refuse("WAITS_FOR_PERSON", *ship, exit=7)
    assert first["gate"] == again["gate"] == "G1"
    assert "deploy:prod" not in call.holders(), "nobody is kept off the target meanwhile"
    assert at_terminal(call, "gate", "approve", "G1")[0] == 0
    other = call.refuse("WAITS_FOR_PERSON", "deploy", "prod", "--as", "dan", "--", "true", exit=7)
    assert other["gate"] == "G2"
    assert at_terminal(call, "gate", "reject", "G2", "--why", "not that one")[0] == 0
    call.refuse("GATE_REJECTED", "deploy", "prod", "--as", "dan", "--", "true", exit=6)
    assert call.ask(*ship)["state"] == "live"
    assert at_terminal(call, "gate", "reject", "G1", "--why", "not again")[0] == 0, "until it is made"
    call.refuse("GATE_REJECTED", *ship, exit=6)
    assert (call.folder.parent / "live").exists()
    (call.folder / "landlane.toml").write_text(SETTINGS.replace("gate = true", "gate = false"))
    call.git("commit", "--quiet", "--all", "-m", "More")
    assert call.ask(*ship)["state"] == "live", "the target has no gate any more"
