"""What people read, to the letter, and what programs read, field by field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import masked, run_at_terminal
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

COLOURS = "xterm-256color"


def test_claims_for_people(shell: Shell) -> None:
    assert shell.run_text("claims") == "No claims.\n"
    shell.run_json("claim", "src/api/**", "--as", "ann", "--task", "T7", "--note", "new endpoint")
    shell.run_json("claim", "app/[id]/page.tsx", "--literal", "--shared", "--as", "bob")

    header, first, second = shell.run_text("claims").splitlines()
    assert header.split() == ["PATH", "HOLDER", "FOR", "HELD", "LEASE", "ENDS"]
    assert first.startswith('src/api/**                  ann     T7 "new endpoint"  ')
    assert second.startswith("app/[id]/page.tsx (shared)  bob  ")
    assert first.endswith("in 29 min")
    assert len(shell.run_text("claims", "src").splitlines()) == 2


def test_claims_for_programs(shell: Shell) -> None:
    shell.run_json("claim", "src/api/**", "--as", "ann", "--task", "T7")

    (claim,) = shell.run_json("claims", "src/api/users.py")["claims"]

    assert list(claim) == [
        *("pattern", "kind", "mode", "token", "holder", "session", "since", "until", "task", "note"),
        *("title", "holder_kind", "for", "ends", "waiting"),
    ]
    assert (claim["kind"], claim["task"], claim["note"]) == ("glob", "T7", None)
    assert claim["since"] < claim["until"]
    assert shell.run_json("claims", "docs")["claims"] == []


def test_check_for_people(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--as", "ann")

    mine = shell.run_text("check", "src/api.py", "docs/x.md", "--as", "ann")
    others = shell.run("check", "src/api.py", "--as", "bob")

    assert mine == "✓ ann may change src/api.py\n✓ ann may change docs/x.md (it is not claimed)\n"
    assert (others.exit, others.out) == (3, "")
    assert others.err.startswith("refused: src/api.py is claimed by ann (")


def test_check_for_programs(shell: Shell) -> None:
    token = shell.run_json("claim", "src/**", "--as", "ann")["granted"][0]["token"]
    (shell.folder / "src").mkdir()

    held = shell.run_json("check", "src/api.py", "--token", str(token), "--as", "ann")
    other = shell.at("src").run_error("CLAIM_HELD", "check", "api.py", "--as", "bob", exit=3)

    assert held["paths"][0]["state"] == "held"
    assert held["paths"][0]["claim"]["token"] == token
    assert (other["holder"], other["paths"][0]["allowed"]) == ("ann", False)
    assert other["hint"] == "wait in line: landlane claim api.py --as bob --wait"  # to be typed in src


def test_who_for_people(shell: Shell) -> None:
    shell.run_json("claim", "README.md", "--as", "ann")
    held = shell.run_text("who", "README.md")
    shell.run_json("release", "--all", "--as", "ann")
    free = shell.run_text("who", "README.md")

    change = "  last change  0eb12e28 Begin (Ada Example, "
    assert held.startswith("README.md\n  claimed      by ann (")
    assert f" ago, lease ends in 29 min)\n{change}" in held
    assert free.startswith(f"README.md\n  not claimed\n{change}")


def test_who_finds_a_literal_name_again(shell: Shell) -> None:
    shell.run_json("claim", "app/[id]/page.tsx", "--literal", "--as", "ann")
    shell.run_json("release", "--all", "--as", "ann")

    answer = shell.run_json("who", "app/[id]/page.tsx")

    assert answer["last_entry"]["kind"] == "claim.released"
    assert answer["last_change"] is None


def test_who_knows_the_agent_that_a_commit_names(shell: Shell) -> None:
    (shell.folder / "README.md").write_text("changed\n", encoding="utf-8")
    shell.git("commit", "--quiet", "--all", "-m", "Change it", "-m", "Landlane-Agent: ann")

    change = shell.run_json("who", "README.md")["last_change"]

    assert (change["agent"], change["subject"], change["author"]) == ("ann", "Change it", "Ada Example")


def test_grants_for_people(shell: Shell) -> None:
    assert shell.run_text("claim", "a", "b/**", "--as", "ann") == (
        "✓ claimed a for 30 min\n✓ claimed b/** for 30 min\n"
        "! b/** matches no file yet\nhint: landlane release 'b/**' --as ann\n"
    )
    assert shell.run_text("renew", "a", "--as", "ann") == "✓ renewed a for 30 min\n"
    assert shell.run_text("release", "a", "--as", "ann") == "✓ released a\n"
    assert shell.run_text("leave", "--as", "ann") == "ann left; released b/**\n"
    assert shell.run_text("release", "--all", "--as", "ann") == "No claims.\n"
    assert shell.run_text("renew", "--as", "ann") == "No claims.\n"


def test_journal_for_people(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--note", "new endpoint", "--as", "ann")
    shell.run_json("task", "add", "List users", "--path", "src", "--as", "lead")
    shell.run_json("task", "add", "Sort them", "--as", "lead")
    shell.run_json("next", "--as", "bob")
    shell.run_json("fail", "T2", "--why", "1 of 212 tests failed", "--as", "bob")
    shell.run_json("next", "--as", "bob")
    shell.run("gate", "ask", "T2", "--why", "May I?", "--as", "bob")

    shown = [shell.run_text("log", *words) for words in ((), ("t2",), ("src/api.py",), ("ann",))]

    text = re.sub(r"(?m)^\d\d:\d\d", "HH:MM", "---\n".join(shown))
    check_snapshot("status/snapshots/log.txt", text.rstrip("\n"))
    entries = shell.run_json("log", "T1")["entries"]
    assert [entry["text"] for entry in entries] == ["added T1 List users"]
    shell.run_error("BAD_PERIOD", "log", "--since", "yesterdy")
    assert shell.run_json("log", "--since", "1h")["entries"]


def test_joining_for_people(shell: Shell) -> None:
    first, second = shell.run_text("join", "ann"), shell.run_text("join", "ann")

    assert masked(first).splitlines()[0] == "joined ann, generation 1, session SESSION"
    assert masked(first).splitlines()[1] == "for its children: LANDLANE_SESSION=SESSION:HASH"
    assert masked(second) == "attached to ann, generation 1, session SESSION\n"


def test_nothing_is_coloured_where_nobody_looks(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")

    for ended in (
        shell.run("claims"),
        shell.run("status"),
        shell.run("claim", "a", "--as", "bob"),
        shell.run("x"),
    ):
        assert "\x1b" not in ended.out + ended.err


def test_a_terminal_gets_colours_and_names_stay_whole(shell: Shell) -> None:
    shell.run_json("claim", "app/[id]/[bold]:bug:.tsx", "--literal", "--as", "ann")

    _, claims = run_at_terminal(shell, "claims", TERM=COLOURS)
    _, refusal = run_at_terminal(shell, "claim", "app/**", "--as", "bob", TERM=COLOURS)
    _, plain = run_at_terminal(shell, "claim", "app/**", "--as", "bob", TERM=COLOURS, NO_COLOR="1")

    assert "\x1b[2mPATH" in claims
    assert "app/[id]/[bold]:bug:.tsx" in claims
    assert "\x1b[33mrefused:\x1b[0m" in refusal
    assert "refused: app/** overlaps app/[id]/[bold]:bug:.tsx, which is claimed by ann (" in plain
