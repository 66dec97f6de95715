"""Codex as `init` sets it up: idle until its user trusts the hooks, and then closed, in worktrees as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from landlane.clients.codex import setup as codex_setup
from landlane.clients.setup_files import ClientEnvironment
from tests.support.real_clients import Codex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.real_clients import Client, ClientTestbed

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("clients-1")]

# A hook whose program is gone: its line still has to refuse.
GONE = "/gone/python -I -S /gone/landlane/hook_entry/client_hook.py codex"


def command(word: str, is_guard: bool) -> str:
    return (
        f"{GONE} {word} || {{ echo HOOK-IS-GONE >&2; exit 2; }}"
        if is_guard
        else "true landlane/hook_entry/client_hook.py"
    )


def runner(world: ClientTestbed) -> Callable[[list[str]], str]:
    return lambda words: world.call(*words, check=False).stdout


def place_at(world: ClientTestbed, root: Path) -> ClientEnvironment:
    path = world.environment()["PATH"]
    return ClientEnvironment(root=str(root), home=str(world.home()), search_path=path, variables={})


@pytest.fixture
def codex(world: ClientTestbed, need: Callable[[str], Client]) -> Codex:
    """Codex with our hooks in the repository, which nobody has trusted yet."""
    need("codex")
    client = Codex(bypass_trust=False)
    world.add_home_files(client)
    (hooks,) = codex_setup.SETUP.wanted_files(command)
    path = world.repository / hooks.path
    path.parent.mkdir()
    path.write_text(json.dumps(hooks.content), encoding="utf-8")
    return client


def is_stopped(world: ClientTestbed, codex: Codex, name: str, cwd: Path | None = None) -> bool:
    result = world.run(codex, {"main": codex.write(name, "text\n") + codex.say("done")}, cwd=cwd)
    is_there = ((cwd or world.repository) / name).exists()
    assert bool(result.turns_containing("HOOK-IS-GONE")) != is_there
    return not is_there


def test_hooks_are_idle_until_they_are_trusted_and_then_fail_closed(
    world: ClientTestbed, codex: Codex
) -> None:
    place = place_at(world, world.repository)
    run = runner(world)
    assert not is_stopped(world, codex, "untrusted.txt")
    assert any(one.is_open for one in codex_setup.SETUP.find_problems(place, run))

    codex_setup.trust(place, run)

    assert not any(one.is_open for one in codex_setup.SETUP.find_problems(place, run))
    assert is_stopped(world, codex, "trusted.txt")


def test_a_worktree_needs_a_folder_for_the_hooks_of_its_checkout(world: ClientTestbed, codex: Codex) -> None:
    run = runner(world)
    codex_setup.trust(place_at(world, world.repository), run)
    worktree = world.root / "worktree"
    world.call("git", "worktree", "add", "-q", str(worktree))
    place = place_at(world, worktree)

    assert not is_stopped(world, codex, "open.txt", worktree)
    assert any(one.is_open for one in codex_setup.SETUP.find_problems(place, run))

    (worktree / ".codex").mkdir()

    assert is_stopped(world, codex, "closed.txt", worktree)
    assert not any(one.is_open for one in codex_setup.SETUP.find_problems(place, run))
