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
def desk(shell: Shell) -> Shell:
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


def test_a_question_waits_in_the_inbox_and_its_answer_resumes_the_work(desk: Shell) -> None:
    why = "This changes what people pay. May I?"
    with desk.start("gate", "ask", "T1", "--why", why, "--wait", "60s", "--json", "--as", "ann") as waiting:
        wait_until(lambda: desk.ask("gate", "list")["gates"])
        (row,) = desk.ask("gate", "list")["gates"]
        head = desk.git("rev-parse", "landlane/T1-1/work").strip()
        assert (row["id"], row["kind"], row["agent"], row["task"]) == ("G1", "approval", "ann", "T1")
        assert row["about"] == {"branch": "landlane/T1-1/work", "head": head}
        assert (row["evidence"]["files"], row["evidence"]["paths"]) == (1, ["prices"])
        assert set(desk.holders().values()) == {"gate-G1"}
        refused = desk.refuse("CLAIM_HELD", "claim", "prices", "--as", "bob", exit=3)
        assert "gate show G1" in str(refused)
        shown = desk.tell("gate", "show", "G1")
        assert why in shown
        assert "1 file +1 -0" in shown
        assert "prices | 1 +" in shown

        code, said = at_terminal(desk, "gate", "approve", "G1", "--head", head[:9], "--why", "once")

        assert code == 0, said
        assert "G1 is approved; ann goes on with T1" in said
        ended = waiting.end()
    assert ended.exit == 0, ended
    assert (ended.answer()["gate"]["state"], ended.answer()["gate"]["answer"]) == ("approved", "once")
    assert set(desk.holders().values()) == {"ann"}
    task = desk.ask("task", "show", "T1")["task"]
    assert (task["state"], task["owner"]) == ("active", "ann")
    assert desk.ask("gate", "ask", "T1", "--why", why, "--as", "ann")["gate"]["id"] == "G1", "the same answer"
    assert desk.ask("gate", "list")["gates"] == []
    assert [row["state"] for row in desk.ask("gate", "list", "--all")["gates"]] == ["approved"]


@pytest.mark.slow
def test_without_an_answer_it_ends_with_seven_and_a_no_with_six(desk: Shell) -> None:
    words = ("gate", "ask", "T1", "--kind", "taste", "--why", "Red?", "--as", "ann")
    for more in ((), ("--wait", "0.2s")):
        answer = desk.refuse("WAITS_FOR_PERSON", *words, *more, exit=7)
        assert answer["gate"]["state"] == "waiting"
    desk.refuse("GATE_OPEN", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    wait_until(lambda: desk.ask("gate", "list")["gates"][0]["is_overdue"])
    assert "overdue" in desk.tell("gate", "list")
    assert at_terminal(desk, "gate", "reject", "G1")[0] == 2, "a no needs a reason"
    code, said = at_terminal(desk, "gate", "reject", "G1", "--why", "blue it is")
    assert code == 0, said
    answer = desk.refuse("GATE_REJECTED", *words, exit=6)
    assert "blue it is" in answer["message"]
    desk.refuse("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "Or blue?", "--as", "ann", exit=7)
    assert desk.ask("gate", "withdraw", "G2", "--as", "ann")["gate"]["state"] == "withdrawn"
    assert desk.ask("task", "show", "T1")["task"]["state"] == "active"
    desk.refuse("UNKNOWN_GATE", "gate", "show", "G9")
    desk.refuse("BAD_GATE_KIND", "gate", "ask", "T1", "--kind", "love", "--why", "x", "--as", "ann")
    desk.refuse("BAD_ABOUT", "gate", "ask", "T1", "--why", "x", "--about", "no such", "--as", "ann")
    desk.refuse("TASK_NOT_YOURS", "gate", "ask", "T1", "--why", "x", "--as", "bob", exit=4)


@pytest.mark.promise(
    "gates.only-a-person-answers",
    "No agent, role, subagent, tool or sandboxed caller can answer a question for a person.",
)
@pytest.mark.slow
def test_no_agent_can_answer_and_what_moved_cannot_be_approved(desk: Shell) -> None:
    desk.refuse("WAITS_FOR_PERSON", "gate", "ask", "T1", "--why", "x", "--as", "ann", exit=7)
    joined = desk.ask("join", "ann")["session"]
    secret = f"{joined['id']}:{joined['secret']}"
    for verb in (("approve", "G1"), ("reject", "G1", "--why", "no")):
        desk.refuse("NOT_A_PERSON", "gate", *verb, exit=6)
        for environment in (
            {"LANDLANE_AGENT": "ann"},
            {"LANDLANE_SESSION": secret},
            {"CODEX_SANDBOX": "1"},
        ):
            code, said = at_terminal(desk, "gate", *verb, **environment)
            assert (code, "NOT_A_PERSON" in said) == (6, True), said
        (command,) = [one for one in COMMANDS if one.path == f"gate {verb[0]}"]
        assert refusal_of(command, {}) is not None, "nobody in a sandbox can"
    commit(desk.at(desk.folder.parent / "ann"), "two")
    code, said = at_terminal(desk, "gate", "approve", "G1")
    assert (code, "HEAD_MOVED" in said) == (4, True), said
    assert desk.ask("gate", "show", "G1")["gate"]["moved"]


def test_one_inbox_for_gates_and_landings_by_risk(desk: Shell) -> None:
    desk.ask("task", "add", "Choose a colour", "--as", "lead")
    desk.ask("next", "--as", "bob")
    desk.refuse(
        "WAITS_FOR_PERSON", "gate", "ask", "T2", "--kind", "taste", "--why", "Red?", "--as", "bob", exit=7
    )
    ann = desk.at(desk.folder.parent / "ann")
    ann.refuse("WAITS_FOR_PERSON", "land", "--as", "ann", exit=7)
    desk.ask("task", "add", "Pay", "--as", "lead")
    desk.ask("next", "--as", "cat")
    words = ("gate", "ask", "T3", "--kind", "financial", "--why", "Buy it?", "--about", "amount=120 USD")
    desk.refuse("WAITS_FOR_PERSON", *words, "--as", "cat", exit=7)
    rows = desk.ask("gate", "list")["gates"]
    assert [(row["id"], row["kind"]) for row in rows] == [
        ("G2", "financial"),
        ("L1", "landing"),
        ("G1", "taste"),
    ]
    assert rows[1]["evidence"]["added"] == 1
    assert desk.ask("gate", "show", "L1")["gate"]["diffstat"]
    assert at_terminal(desk, "gate", "approve", "L1")[0] == 0


def test_a_gated_deploy_waits_for_this_commit_and_command(desk: Shell) -> None:
    ship = ("deploy", "prod", "--as", "dan", "--", "touch", "../live")
    first = desk.refuse("WAITS_FOR_PERSON", *ship, exit=7)
    again = desk.refuse("WAITS_FOR_PERSON", *ship, exit=7)
    assert first["gate"] == again["gate"] == "G1"
    assert "deploy:prod" not in desk.holders(), "nobody is kept off the target meanwhile"
    assert at_terminal(desk, "gate", "approve", "G1")[0] == 0
    other = desk.refuse("WAITS_FOR_PERSON", "deploy", "prod", "--as", "dan", "--", "true", exit=7)
    assert other["gate"] == "G2"
    assert at_terminal(desk, "gate", "reject", "G2", "--why", "not that one")[0] == 0
    desk.refuse("GATE_REJECTED", "deploy", "prod", "--as", "dan", "--", "true", exit=6)
    assert desk.ask(*ship)["state"] == "live"
    assert at_terminal(desk, "gate", "reject", "G1", "--why", "not again")[0] == 0, "until it is made"
    desk.refuse("GATE_REJECTED", *ship, exit=6)
    assert (desk.folder.parent / "live").exists()
    (desk.folder / "landlane.toml").write_text(SETTINGS.replace("gate = true", "gate = false"))
    desk.git("commit", "--quiet", "--all", "-m", "More")
    assert desk.ask(*ship)["state"] == "live", "the target has no gate any more"
