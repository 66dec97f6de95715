"""What people read, to the letter, and what programs read, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import at_terminal, masked

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

COLOURS = "xterm-256color"


def test_claims_for_people(shell: Shell) -> None:
    assert shell.tell("claims") == "0 live claims\n"
    shell.ask("claim", "src/api/**", "--as", "ann", "--task", "T7", "--note", "new endpoint")
    shell.ask("claim", "app/[id]/page.tsx", "--literal", "--shared", "--as", "bob")

    assert masked(shell.tell("claims")) == (
        "2 live claims\n"
        "pattern            holder  mode       token       until                     task  note\n"
        "src/api/**         ann     exclusive  TOKEN  TIME  T7    new endpoint\n"
        "app/[id]/page.tsx  bob     shared     TOKEN  TIME\n"
    )
    assert masked(shell.tell("claims", "src")).splitlines()[0] == "1 live claim"


def test_claims_for_programs(shell: Shell) -> None:
    shell.ask("claim", "src/api/**", "--as", "ann", "--task", "T7")

    (claim,) = shell.ask("claims", "src/api/users.py")["claims"]

    assert list(claim) == [
        *("pattern", "kind", "mode", "token", "holder", "session", "since", "until", "task", "note")
    ]
    assert (claim["kind"], claim["task"], claim["note"]) == ("glob", "T7", None)
    assert claim["since"] < claim["until"]
    assert shell.ask("claims", "docs")["claims"] == []


def test_status_for_people(shell: Shell) -> None:
    shell.ask("claim", "src", "--as", "ann")
    with shell.start("claim", "src", "--as", "bob", "--wait", "30s"):
        shell.await_waiter()
        told = masked(shell.tell("status", "--as", "ann"))

    machine = shell.ask("status")["sessions"][0]["machine"]
    assert told.replace(machine, "MACHINE").replace(str(shell.folder), "ROOT") == (
        "repository ROOT\n"
        "you are ann (generation 1)\n"
        "2 here\n"
        f"agent  generation  kind   role  {'machine'.ljust(len(machine))}  seen\n"
        "ann    1           agent        MACHINE  TIME\n"
        "bob    1           agent        MACHINE  TIME\n"
        "1 held\n"
        "pattern  holder  mode       until\n"
        "src      ann     exclusive  TIME\n"
        "1 waiting\n"
        "agent  patterns  since\n"
        "bob    src       TIME\n"
        "journal at 4\n"
    )


def test_status_for_whoever_has_no_session(shell: Shell) -> None:
    told = shell.tell("status", "--as", "newcomer")

    assert "you have no session; claiming begins one\n0 here\n0 held\n0 waiting\njournal at 1\n" in told
    assert shell.ask("status", "--as", "newcomer")["you"] is None
    assert shell.kinds() == ["repository.begun"]


def test_check_for_people(shell: Shell) -> None:
    shell.ask("claim", "src/api.py", "--as", "ann")

    mine = shell.tell("check", "src/api.py", "docs/x.md", "--as", "ann")
    others = shell.tell("check", "src/api.py", "--as", "bob", exit=3)

    assert mine == "src/api.py is yours to change\ndocs/x.md is held by nobody\n"
    assert masked(others) == "src/api.py is held by ann until TIME\n"


def test_check_for_programs(shell: Shell) -> None:
    token = shell.ask("claim", "src/**", "--as", "ann")["granted"][0]["token"]
    (shell.folder / "src").mkdir()

    held = shell.ask("check", "src/api.py", "--token", str(token), "--as", "ann")
    other = shell.at("src").refuse("CLAIM_HELD", "check", "api.py", "--as", "bob", exit=3)

    assert held["paths"][0]["state"] == "held"
    assert held["paths"][0]["claim"]["token"] == token
    assert (other["holder"], other["paths"][0]["allowed"]) == ("ann", False)
    assert other["hint"] == "landlane claim api.py --wait 10m"  # to be typed where the question was


def test_who_for_people(shell: Shell) -> None:
    shell.ask("claim", "README.md", "--as", "ann")
    held = masked(shell.tell("who", "README.md"))
    shell.ask("release", "--all", "--as", "ann")
    free = masked(shell.tell("who", "README.md"))

    change = "last changed by Ada Example at 2026-01-02T03:04:05+00:00: 0eb12e28d48a Begin\n"
    assert (
        held == f"ann holds README.md until TIME\nlast in the journal: claim.taken by ann at TIME\n{change}"
    )
    assert free == f"nobody holds it\nlast in the journal: claim.released by ann at TIME\n{change}"


def test_who_finds_a_literal_name_again(shell: Shell) -> None:
    shell.ask("claim", "app/[id]/page.tsx", "--literal", "--as", "ann")
    shell.ask("release", "--all", "--as", "ann")

    answer = shell.ask("who", "app/[id]/page.tsx")

    assert answer["last_entry"]["kind"] == "claim.released"
    assert answer["last_change"] is None


def test_who_knows_the_agent_that_a_commit_names(shell: Shell) -> None:
    (shell.folder / "README.md").write_text("changed\n", encoding="utf-8")
    shell.git("commit", "--quiet", "--all", "-m", "Change it", "-m", "Landlane-Agent: ann")

    change = shell.ask("who", "README.md")["last_change"]

    assert (change["agent"], change["subject"], change["author"]) == ("ann", "Change it", "Ada Example")


def test_grants_for_people(shell: Shell) -> None:
    assert masked(shell.tell("claim", "a", "b/**", "--as", "ann")) == (
        "granted a  (exclusive, token TOKEN, until TIME)\n"
        "granted b/**  (exclusive, token TOKEN, until TIME)\n"
    )
    assert masked(shell.tell("renew", "a", "--as", "ann")) == "renewed a  (token TOKEN, until TIME)\n"
    assert shell.tell("release", "a", "--as", "ann") == "released a\n"
    assert shell.tell("leave", "--as", "ann") == "ann left; released b/**\n"
    assert shell.tell("release", "--all", "--as", "ann") == "nothing was held\n"
    assert shell.tell("renew", "--as", "ann") == "nothing is held\n"


def test_journal_for_people(shell: Shell) -> None:
    shell.ask("claim", "a", "--as", "ann")

    assert masked(shell.tell("journal")) == (
        "     1  TIME  repository.begun              \n"
        "     2  TIME  session.joined   ann          1\n"
        "     3  TIME  claim.taken      ann          a  token TOKEN\n"
    )


def test_joining_for_people(shell: Shell) -> None:
    first, second = shell.tell("join", "ann"), shell.tell("join", "ann")

    assert masked(first).splitlines()[0] == "joined ann, generation 1, session SESSION"
    assert masked(first).splitlines()[1] == "for its children: LANDLANE_SESSION=SESSION:HASH"
    assert masked(second) == "attached to ann, generation 1, session SESSION\n"


def test_nothing_is_coloured_where_nobody_looks(shell: Shell) -> None:
    shell.ask("claim", "a", "--as", "ann")

    for ended in (
        shell.run("claims"),
        shell.run("status"),
        shell.run("claim", "a", "--as", "bob"),
        shell.run("x"),
    ):
        assert "\x1b" not in ended.out + ended.err


def test_a_terminal_gets_colours_and_names_stay_whole(shell: Shell) -> None:
    shell.ask("claim", "app/[id]/[bold]:bug:.tsx", "--literal", "--as", "ann")

    _, claims = at_terminal(shell, "claims", TERM=COLOURS)
    _, refusal = at_terminal(shell, "claim", "app/**", "--as", "bob", TERM=COLOURS)
    _, plain = at_terminal(shell, "claim", "app/**", "--as", "bob", TERM=COLOURS, NO_COLOR="1")

    assert "\x1b[1m" in claims
    assert "app/[id]/[bold]:bug:.tsx" in claims
    assert "\x1b[31mlandlane:\x1b[0m" in refusal
    assert "landlane: app/**: another session holds it" in plain
