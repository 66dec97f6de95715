"""What the commands about claims print for people: each transcript is a file beside this one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import run_at_terminal
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

_MASKS = (
    (re.compile(r"\b\d+ (s|min|h) ago"), "AGO"),
    (re.compile(r"after \d+ s"), "after 1 s"),
    (re.compile(r"\bin \d+ min\b"), "in 29 min"),
    (re.compile(r"(?<=  )\d+ s\b *"), "AGE  "),
    (re.compile(r"token \d+"), "token N"),
    (re.compile(r"\b\d{10}$", re.MULTILINE), "N"),
    (re.compile(r"is outside \S+"), "is outside REPOSITORY"),
    (re.compile(r"until \d\d:\d\d:\d\d"), "until 15:02:07"),
    (re.compile(r"^(  last change  )[0-9a-f]{8}", re.MULTILINE), r"\1COMMIT"),
    (re.compile(r"\b[A-Z][a-z]+ Example, (AGO|[^)]*)"), "Ada Example, DATE"),
)


class Transcript:
    """Commands with what they print and their exit codes."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._lines: list[str] = []

    def run(self, *words: str) -> None:
        """Run a command and add it to the transcript."""
        ended = self._shell.run(*words)
        code = f"   (exit {ended.exit})" if ended.exit else ""
        typed = " ".join(f"'{word}'" if " " in word or "*" in word else word for word in words)
        self._lines += [f"$ landlane {typed}{code}", (ended.out + ended.err).rstrip("\n"), ""]

    def check(self, name: str) -> None:
        """Compare with the file, without what differs from run to run."""
        text = "\n".join(self._lines).rstrip("\n")
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        check_snapshot(f"claims/snapshots/{name}.txt", text)


def test_claim_and_release(shell: Shell) -> None:
    transcript = Transcript(shell)
    transcript.run("claim", "src/api.py", "--note", "new endpoint", "--as", "ann")
    transcript.run("claim", "src/api.py", "-v", "--as", "ann")
    transcript.run("renew", "src/api.py", "--as", "ann")
    transcript.run("claim", "docs/a.md", "docs/b.md", "--ttl", "1h30m", "--as", "ann")
    transcript.run("release", "src/api.py", "--as", "ann")
    transcript.run("release", "docs/x.md", "--as", "ann")
    transcript.run("release", "--all", "--as", "ann")
    transcript.run("release", "--all", "--as", "ann")
    transcript.run("release", "--as", "ann")
    transcript.run("claims")
    transcript.check("claim-and-release")


def test_refusals(shell: Shell) -> None:
    shell.run_json("task", "add", "Refund orders")
    shell.run_json("claim", "src/api.py", "--note", "new endpoint", "--as", "ann")
    shell.run_json("claim", "src/pay/refund.py", "--task", "T1", "--as", "dan")
    shell.run_json("claim", "src/pay/card.py", "--as", "eve")
    transcript = Transcript(shell)
    transcript.run("claim", "src/api.py", "--as", "bob")
    transcript.run("claim", "src/pay/**", "docs/x.md", "--as", "bob")
    transcript.run("claim", "src/api.py", "src/pay/card.py", "--note", "both of them", "--as", "bob")
    transcript.run("claim", "src/**", "docs/x.md", "--partial", "--as", "bob")
    transcript.run("check", "src/api.py", "--as", "ann")
    transcript.run("check", "src/api.py", "README.md", "--as", "bob")
    transcript.run("release", "src/api.py", "--as", "bob")
    transcript.run("claim", "../x", "--as", "bob")
    transcript.run("claims")
    transcript.run("claims", "src/api.py", "-v")
    transcript.check("refusals")


def test_waiting(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--note", "new endpoint", "--as", "ann")
    transcript = Transcript(shell)
    with shell.start("claim", "src/api.py", "--as", "bob", "--wait", "--json") as bob:
        shell.wait_for_waiter()
        transcript.run("claim", "src/api.py", "--as", "cara")
        transcript.run("claim", "src/api.py", "--as", "cara", "--wait", "1s")
        transcript.run("claims")
        transcript.run("who", "src/api.py")
        transcript.run("release", "src/api.py", "--as", "ann")
        granted = bob.end().json()
    transcript.check("waiting")
    assert granted["waited_seconds"] > 0


def test_a_live_line_shows_the_place_in_line(shell: Shell) -> None:
    shell.run_json("claim", "src/api.py", "--as", "ann")

    code, text = run_at_terminal(shell, "claim", "src/api.py", "--wait", "3s", "--as", "bob", TERM="xterm")

    assert code == 5
    assert re.search(r"waiting for src/api.py: ann holds it, you are 1st in line \(0:0[12] of 0:03\)", text)
    assert "src/api.py is still claimed by ann after 3 s; you were 1st in line" in text


def test_a_mistyped_folder_of_a_glob_is_corrected_alone(shell: Shell) -> None:
    (shell.folder / "src" / "api").mkdir(parents=True)

    said = shell.run("claim", "src/ap/*.py", "--as", "src").out

    assert "! src/ap/*.py matches no file yet; did you mean src/api/*.py?" in said
    (shell.folder / "src" / "src").mkdir()
    said = shell.run("claim", "src/sr/*.py", "--as", "src").out
    assert "did you mean src/src/*.py?" in said
