"""Foreign text on its ways to the terminal: reasons, notes, words of a remote, output of a check."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.git import git
from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

HOSTILE = "\x1b[31mX\x1b]0;evil\x07\u202e\n✓ forged"


def shown(shell: Shell, *words: str) -> str:
    ended = shell.run(*words)
    text = ended.out + ended.err
    assert [letter for letter in text if letter != "\n" and not letter.isprintable()] == [], ended
    assert "\n✓ forged" not in text, ended
    return text


def test_no_reason_note_or_subject_controls_the_terminal(repository: Path) -> None:
    shell = Shell(repository, {"LANDLANE_AGENT": "ann"})
    shown(shell, "run", "pause", "--why", HOSTILE)
    assert r'"\x1b[31mX\x1b]0;evil\x07\u202e\n✓ forged"' in shown(shell, "status")
    shown(shell, "claim", "a.py", "--note", HOSTILE)
    shell.run_json("task", "add", "One", "--check", "printf '\\033[31mred\\r\\007'; false", "--kind", "chore")
    shell.run_json("next")
    assert r"\x1b[31mred" in shown(shell, "done", "T1")
    shown(shell, "task", "block", "T1", "--why", HOSTILE)
    for call in ("claims", "claim a.py --as bob", "who a.py", "task list", "log", "inbox"):
        shown(shell, *call.split())


def test_the_words_of_a_remote_do_not_control_the_terminal(repository: Path, tmp_path: Path) -> None:
    shell = Shell(repository, {"LANDLANE_AGENT": "ann"})
    remote = tmp_path / "remote.git"
    (repository / "landlane.toml").write_text("[landing]\nchecks = []\nresident = false\n")
    git(repository, "add", "-A")
    git(repository, "commit", "--quiet", "-m", "Settings")
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    git(repository, "remote", "add", "origin", str(remote))
    git(repository, "push", "--quiet", "origin", "main")
    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nprintf '\\033[31mNO\\033]0;evil\\007\\n' >&2\nexit 1\n")
    hook.chmod(0o755)
    git(repository, "switch", "--quiet", "-c", "work")
    shell.run_json("claim", "new.py")
    (repository / "new.py").write_text("1\n")
    git(repository, "add", "new.py")
    git(repository, "commit", "--quiet", "-m", "Subject \x1b[31m")

    assert r"remote: \x1b[31mNO\x1b]0;evil\x07" in shown(shell, "land", "--wait", "1m")
    said = shown(shell, "queue", "run", "--drain")
    first = said.splitlines()[0]
    assert first.startswith("L1 queued: main cannot be moved: remote: ")
    assert r"\nerror: failed to push" in first
    shown(shell, "queue", "list")
    shown(shell, "queue", "show", "L1")
