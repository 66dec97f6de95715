"""scripts/clients.sh: what it installs, what it remembers, and that it never stops the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).parents[2] / "scripts" / "clients.sh"
PROGRAMS = ("sh", "git", "awk", "cat", "mkdir", "mktemp", "rm", "chmod", "mv", "dirname")

# Instead of npm: it writes down its words, and makes the folder that npm would make.
NPM = """#!/bin/sh
echo "$*" >>"$NPM_CALLS"
[ "$NPM_FAILS" ] && exit 1
while [ "$1" != --prefix ]; do shift || exit 0; [ $# -gt 0 ] || exit 0; done
mkdir -p "$2/node_modules/.bin"
"""


class Machine:
    """A machine with few programs, and with or without npm."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.clients = folder / "clients"
        self.calls = folder / "calls"
        for name in PROGRAMS:
            (self.bin / name).symlink_to(str(shutil.which(name)))

    def add_npm(self) -> None:
        npm = self.bin / "npm"
        npm.write_text(NPM)
        npm.chmod(0o755)

    def install(self, *words: str, npm_fails: bool = False) -> str:
        self.calls.write_text("")
        environment = {
            "PATH": str(self.bin),
            "HOME": os.environ["HOME"],
            "LANDLANE_CLIENTS": str(self.clients),
            "NPM_CALLS": str(self.calls),
            "NPM_FAILS": "yes" if npm_fails else "",
        }
        done = subprocess.run(
            [str(SCRIPT), *words], env=environment, check=True, capture_output=True, text=True, timeout=60
        )
        assert done.stderr == ""
        return done.stdout

    def installed(self) -> list[str]:
        """The packages npm was told to install."""
        return [line.split()[-1] for line in self.calls.read_text().splitlines() if " install " in line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_pinned_versions_are_installed_once(machine: Machine) -> None:
    machine.add_npm()

    machine.install("claude", "codex")

    node, *others = machine.installed()
    assert node.startswith("node@22.")
    assert sorted(one.rpartition("@")[0] for one in others) == ["@anthropic-ai/claude-code", "@openai/codex"]
    assert (machine.clients / "claude" / "node_modules").is_dir()
    assert machine.install("claude", "codex") == ""
    assert machine.calls.read_text() == ""


def test_another_client_is_added_later(machine: Machine) -> None:
    machine.add_npm()
    machine.install("claude")

    machine.install("claude", "gemini")

    assert [one.rpartition("@")[0] for one in machine.installed()] == ["@google/gemini-cli"]


def test_without_npm_one_line_says_what_is_skipped(machine: Machine) -> None:
    first, second = machine.install(), machine.install()

    for said in (first, second):
        assert "clients: SKIPPED claude codex gemini inspector conformance: not available" in said
    assert second.count("\n") == 1


def test_unreachable_registry_is_asked_once_until_told_to_try_again(machine: Machine) -> None:
    machine.add_npm()

    assert "SKIPPED claude" in machine.install("claude", npm_fails=True)
    assert machine.calls.read_text().count("\n") == 1
    assert "SKIPPED claude" in machine.install("claude")
    assert machine.calls.read_text() == ""
    assert "SKIPPED" not in machine.install("--again", "claude")
    assert (machine.clients / "claude").is_dir()


def test_failed_install_leaves_nothing_behind(machine: Machine) -> None:
    machine.add_npm()
    npm = machine.bin / "npm"
    npm.write_text(NPM.replace('mkdir -p "$2', 'case "$*" in *codex*) exit 1 ;; esac; mkdir -p "$2'))

    said = machine.install("claude", "codex")

    assert "SKIPPED codex:" in said
    left = {entry.name for entry in machine.clients.iterdir()}
    assert left == {"claude", "node", "stamps", "setup.log"}


def test_unknown_client_is_refused(machine: Machine) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        machine.install("clod")

    assert "clod is not in requirements/clients.txt" in refused.value.stderr
