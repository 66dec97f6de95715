"""Typical mistakes: each is answered with the fix and a command that can be pasted, and changes nothing."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from landlane.cli.main import main
from landlane.cli.parse import parse
from tests.support.git import commit_text
from tests.support.shell import Shell
from tests.support.snapshots import check_snapshot
from tests.support.transcripts import mask

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

PROGRAMS = ("git", "cd", "ls", "echo")

# Rows 10 to 16 and 26 to 40 of the errors that are described; a fixture brings about what they need.
DESCRIBED = """
log --since yesterdy
claim ../x
join 'ann b'
check src/api.py --token 17 --as bob
config set claims.tll 1h
run plan.tml
run circle.md
run --agent claud
task show T91
done T1 --as bob
land
gate approve L8 --as ann
release docs/x.md --as ann
state get phase
once build -- make
rescue restore R99
plan check broken.toml
"""

# Mistakes that people make with tools of this kind.
TYPICAL = """
tasks
lock src/api.py
unlock src/api.py
status T12
T1
task T1
task 1
task show 1
task show L1
task show
queue L8
gate G3
review show V9
handoff show T2
done
done T2
done T1 --as=
fail T1 --as ann
next T1 --as ann
next --role coder --as ann
next --wait 5
task list --state redy
task list --state=open
task list T1
task ls
task rm T1
task delete T1
task start T1
task close T1
task new Title
task add Parse the dates
task add ''
task add x --priority=high
task add x --max-attempts -1
task add x --after T99
task add x --after L1
task add x --role tester
task add x --body nofile.md
task add x --depends-on T1
task add x --pth src
task after T1
task after T2 T2
task split T1 nofile.md
task edit T1 --titel x
task edit T1
task log T2 -f
task log T2 --attempt 7
task import nofile.md
task block T2
task drop T99 --why x
claim '' --as ann
claim /etc/passwd --as ann
claim src/api.py --force --as bob
claim src/api.py --as 'b b'
claim src/api.py --ttl -5m --as ann
claim src/api.py --ttl=1x --as ann
claim src/api.py --wait=soon --as bob
claim 'src/[' --as bob
claim src/api.py --timeout 5m
claim --note
release --as ann
check src/api.py --token abc
join änn
handoff T1 --to bob --as ann
handoff T1 --to 'b b' --next x --as ann
handoff --all
handoff accept T1
review give V1
review give V1 --verdict maybe
gate ask T1 --as ann
gate reject G1
rules ack nonsense
role show coder
role show code --for emacs
state get
state set release/phase
state get zzz
slot take prot
number lst
once build
rescue show W1
workspace open T99 --as ann
log --last five
log --limit 5
config get claims.tll
config set run.workers many
stats --since 5
plan chek plan.md
queue show L77
lnad
commit -am x
git
sync --update=squash
unclaim src/api.py --as ann
run do.sh
run T2
run --agent do.sh
run --workers 0 -- ./do.sh
run --task T2
once build --as 'b b' -- make
claim src/api.py --for 1h --as ann
log --tail 5
config set run.silent 10s
help clam
--verson
"""

# The name of the program twice, letters in the wrong order, ids in the wrong place, values of the wrong type.
FURTHER = """
landlane status
stauts
-V
next T1
task show ''
task show 'T1 '
task add 'Refund orders' --body 'In full or in part.'
task add x --max-attempts 0
task add x --priority 2000
task add ''
task after T2 T2
task list --state foo
task show T1 T2
inbox Q3
inbox approve L1
inbox T2
handoff T2 --as ann
handoff accept T9 --as bob
land nobranch --as ann
land mian --as ann
config set landing.checks 'make test'
config set run.workers four
config set claims.ttl soon
config set budgets.day much
usage add
usage add --cost abc
claim ''
claim / --as ann
claim 'src/[' --as ann
release
fail T1 --as ann
task drop T2
queue resume L1
queue eject L9 --why x
gate approve X1
review give V1
workspace close W9
misplaced move B9
rules report --since=someday
log --tail
store move
completion tcsh
run --workers -1 -- ./do.sh
slot take
number
deploy prod --
exec --
merge
version
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A repository with two tasks, of which ann has the first, one claim, one key and one failed run."""
    for name in ("LANDLANE_AGENT", "LANDLANE_SESSION", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    shell = Shell(folder)
    shell.git("init", "--quiet", "--initial-branch=main")
    commit_text(folder, "landlane.toml", '[landing]\nchecks = ["true"]\nresident = false\n')
    (folder / "src" / "api.py").write_text("api\n")
    (folder / "do.sh").write_text("#!/bin/sh\n")
    (folder / "do.sh").chmod(0o755)
    (folder / "plan.toml").write_text('[[task]]\ntitle = "Add refunds"\n')
    (folder / "circle.md").write_text("# Circle\n- [ ] One (after: Two)\n\n- [ ] Two (after: One)\n")
    (folder / "broken.toml").write_text('[[task]]\ntitle = "Two"\naftr = ["One"]\n')
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Start")
    shell.run_json("task", "add", "List users", "--path", "src/api.py", "--as", "ann")
    shell.run_json("task", "add", "Charge cards", "--kind", "chore", "--as", "ann")
    shell.run_json("next", "--as", "ann")
    shell.run_json("state", "set", "release/phase", "freeze", "--as", "ann")
    shell.run("once", "build", "--as", "ann", "--", "false")
    monkeypatch.chdir(folder)
    return shell


def hints_in(text: str) -> list[str]:
    return [line.removeprefix("hint: ") for line in text.splitlines() if line.startswith("hint: ")]


def check_command(hint: str) -> None:
    """Check that a hint ends in a command, and that Landlane can read it if it is one of its own."""
    command = hint if hint.startswith("landlane ") else hint.rpartition(": ")[2].rpartition("? ")[2]
    words = shlex.split(command)
    if words[0] == "landlane" and words[1:] != ["--version"]:
        parse(words[1:])
    else:
        assert words[0] in (*PROGRAMS, "landlane"), hint


@pytest.mark.parametrize("name", ["described", "typical", "further"])
def test_a_mistake_is_answered_with_the_fix_and_changes_nothing(
    shop: Shell, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    calls = {"described": DESCRIBED, "typical": TYPICAL, "further": FURTHER}[name].strip().splitlines()
    before = [one["kind"] for one in shop.run_json("log", "--since", "all")["entries"]]
    lines: list[str] = []
    for call in calls:
        code = main(shlex.split(call))
        told = capfd.readouterr()
        lines += [f"$ landlane {call}  → {code}", *(told.out + told.err).splitlines()]
        assert code in (1, 2, 3, 4, 6), call
        assert "UNEXPECTED" not in told.err
        assert "Traceback" not in told.err
        hints = hints_in(told.err)
        assert hints, call
        for hint in hints:
            check_command(hint)
    after = [one["kind"] for one in shop.run_json("log", "--since", "all")["entries"]]
    # A refused caller may get a session, and a refusal may be recorded; nothing else is.
    harmless = re.compile(r"session\.|claim\.refused|rules\.|client\.")
    assert [kind for kind in after[len(before) :] if not harmless.match(kind)] == []
    text = mask("\n".join(lines).replace(str(shop.folder), "~/shop"))
    check_snapshot(f"cli/snapshots/mistakes_{name}.txt", text)
