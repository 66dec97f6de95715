"""Roles at a coding client's hook: edits are refused at once, and what the shell wrote is told."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import make_repository
from tests.hooks.stand_in_client import LANDLANE, ScriptedClient
from tests.support.git import commit_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FILES = {"src/a.py": "a = 1\n", "tests/a.py": "assert 1\n", "README.md": "# R\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo", files=FILES)


def in_role(root: Path, role: str, *, policy: str = "auto") -> ScriptedClient:
    """A client that acts as an agent to whom a role was given."""
    commit_text(root, "landlane.toml", f'[hooks]\npolicy = "{policy}"\n')
    subprocess.run([LANDLANE, "join", "ann", "--role", role], cwd=root, check=True, timeout=60)
    return ScriptedClient(root, environment={"LANDLANE_AGENT": "ann"})


@pytest.fixture
def coder(root: Path) -> Iterator[ScriptedClient]:
    with in_role(root, "code") as client:
        yield client


def edit(client: ScriptedClient, path: str) -> str:
    """Why an edit is refused; empty when it is not."""
    told = client.before("Edit", file_path=f"{client.root}/{path}")
    return told.reason if told.is_denied else ""


def test_an_edit_outside_of_the_role_is_refused_with_what_to_do(coder: ScriptedClient) -> None:
    assert edit(coder, "src/a.py") == ""
    refused = edit(coder, "tests/a.py")

    assert "The role code may not change tests/a.py." in refused
    assert "landlane role show code" in refused
    assert edit(coder, "Tests/new.py")
    assert edit(coder, ".gitattributes")
    assert edit(coder, "tests/new/deep.py")
    assert coder.before("Read", file_path=f"{coder.root}/tests/a.py").exit_code == 0
    assert [one["rule"] for one in coder.type("rules", "report")["rules"]] == ["stay in your role"]


def test_a_wide_claim_opens_no_way_around_the_role(coder: ScriptedClient) -> None:
    assert coder.type("claim", "**")["ok"]
    for _ in range(2):  # the second time the quick road would know the file
        coder.before("Read", file_path=f"{coder.root}/tests/a.py")
        assert edit(coder, "tests/a.py")
        assert edit(coder, "src/a.py") == ""


@pytest.mark.parametrize("policy", ["auto", "strict"])
@pytest.mark.parametrize("role", ["debug", "review", "verify", "explore"])
def test_a_reader_edits_nothing_under_any_policy(root: Path, role: str, policy: str, tmp_path: Path) -> None:
    with in_role(root, role, policy=policy) as client:
        for path in FILES:
            assert f"The role {role} changes no file." in edit(client, path)
        assert not client.before("Write", file_path=str(tmp_path / "scratch.txt")).is_denied


def test_to_watch_is_only_to_tell(root: Path) -> None:
    with in_role(root, "review", policy="watch") as client:
        told = client.before("Edit", file_path=f"{root}/src/a.py")
        assert not told.is_denied
        assert "let this edit pass" in told.repo


def test_shell_write_outside_of_the_role_is_reported(coder: ScriptedClient, root: Path) -> None:
    command = {"command": "echo evil > tests/a.py"}
    coder.before("Bash", **command)
    (root / "tests/a.py").write_text("evil\n")
    told = coder.after("Bash", **command)

    assert "tests/a.py" in told.repo
    assert "your role may not" in told.repo


def test_a_client_that_another_starts_has_its_role(root: Path) -> None:
    with in_role(root, "review") as client:
        client.hook("SessionStart", source="startup")
        nested = (
            f"import os; os.environ.pop('LANDLANE_AGENT'); "
            f"os.execv({LANDLANE!r}, ['landlane', 'join', 'bob', '--role', 'code', '--json'])"
        )
        code, out, _ = client.do([sys.executable, "-c", nested])
        assert (code, "ROLE_FORBIDS" in out) == (6, True)
        assert client.type("join", "bob")["session"]["role"] == "review"
