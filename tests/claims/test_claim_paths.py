"""Every entry point claims in the same way: what a former holder left on a path is saved first."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from landlane import Landlane
from landlane.api import Picked, SavedWork, Taken
from landlane.app.open import open_repository
from landlane.claims.force_release import release_by_force
from landlane.sessions.join import Caller, identify
from landlane.testing.repositories import make_repository
from tests.hooks.stand_in_client import LANDLANE, ScriptedClient
from tests.mcp.speaking import McpClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.slow]

NOTE = "bob left changes on a.py: saved as R1 (landlane rescue restore R1)"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A repository in whose checkout bob left a change when his lease expired."""
    root = make_repository(tmp_path / "shop", files={"a.py": "as committed\n"})
    with Landlane(root, agent="bob") as bob:
        bob.claim("a.py", ttl="1s")
        (root / "a.py").write_text("half done by bob\n", encoding="utf-8")
    with Landlane(root, agent="zoe") as zoe:
        wait_until(lambda: not zoe.claims())
    return root


def claim_with_library(root: Path) -> str:
    with Landlane(root, agent="ann") as ann:
        outcome = ann.claim("a.py")
    assert isinstance(outcome, Taken)
    assert outcome.saved is not None
    assert outcome.saved == SavedWork(rescue="R1", note=NOTE)
    return outcome.saved.note


def claim_with_command_line(root: Path) -> str:
    with ScriptedClient(root) as client:
        _, _, notes = client.do([LANDLANE, "claim", "a.py", "--as", "ann"])
    return notes.strip()


def claim_with_mcp(root: Path) -> str:
    with McpClient(root, "--as", "ann") as ann:
        found: dict[str, Any] = ann.call("claim", paths=["a.py"])
    assert found["rescued"] == "R1"
    return found["rescue_note"]


def claim_with_edit_hook(root: Path) -> str:
    with ScriptedClient(root) as client:
        return client.edit("a.py").repo


def add_task(root: Path) -> None:
    with Landlane(root, agent="zoe") as zoe:
        zoe.tasks.add("Fix it", paths=["a.py"])


def take_next_task_with_library(root: Path) -> str:
    add_task(root)
    with Landlane(root, agent="ann") as ann:
        picked = ann.tasks.next()
    assert isinstance(picked, Picked)
    assert picked.saved is not None
    return picked.saved.note


def take_named_task_with_library(root: Path) -> str:
    add_task(root)
    with Landlane(root, agent="ann") as ann:
        picked = ann.tasks.take("T1")
    assert picked is not None
    assert picked.saved is not None
    return picked.saved.note


def take_next_task_with_mcp(root: Path) -> str:
    add_task(root)
    with McpClient(root, "--as", "ann") as ann:
        found: dict[str, Any] = ann.call("next")
    return found["rescue_note"]


@pytest.mark.parametrize(
    "claim",
    [
        claim_with_library,
        claim_with_command_line,
        claim_with_mcp,
        claim_with_edit_hook,
        take_next_task_with_library,
        take_named_task_with_library,
        take_next_task_with_mcp,
    ],
)
def test_every_entry_point_saves_what_a_former_holder_left(left: Path, claim: Callable[[Path], str]) -> None:
    assert claim(left) == NOTE

    saved = subprocess.run(
        ["git", "for-each-ref", "refs/landlane/"], cwd=left, capture_output=True, text=True, check=True
    )
    assert "R1" in saved.stdout


def test_odd_names_in_the_checkout_do_not_stop_a_claim(left: Path) -> None:
    (left / "odd\nname").write_text("x\n", encoding="utf-8")

    assert claim_with_library(left) == NOTE


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_what_a_holder_left_is_saved_after_a_person_released_its_claim(
    tmp_path: Path, is_rebuilt: bool
) -> None:
    root = make_repository(tmp_path / "shop", files={"a.py": "as committed\n"})
    with Landlane(root, agent="bob") as bob:
        taken = bob.claim("a.py")
        assert isinstance(taken, Taken)
        (root / "a.py").write_text("half done by bob\n", encoding="utf-8")
        repo = open_repository(str(root))
        try:
            person = identify(repo, Caller(person="pat")).session
            release_by_force(repo, person, taken.granted[0].token, "bob is stuck")
        finally:
            repo.close()
    if is_rebuilt:
        subprocess.run([LANDLANE, "store", "rebuild"], cwd=root, check=True, capture_output=True)

    assert claim_with_library(root) == NOTE
