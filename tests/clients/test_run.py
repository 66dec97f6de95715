"""Real clients as workers of `landlane run`: task, workspace, edit, commit, done, landed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.test_workers import LEAD, NEW, OLD, UNKNOWN_USAGE, words_for
from tests.support.real_clients.client import HERE
from tests.support.scripted_model.server import ScriptedModel, marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.support.real_clients import Client, ClientTestbed
    from tests.support.scripted_model.api_formats import Turn

pytestmark = [pytest.mark.client, pytest.mark.sandbox]

LIMIT_SECONDS = 150


class Scripts(dict[str, "list[Turn]"]):
    """Scripts that speak of the checkout of a run, whose name is known only once it is there."""

    def __init__(self, scripts: Mapping[str, Sequence[Turn]], places: Path, scratch: Path) -> None:
        super().__init__({name: list(turns) for name, turns in scripts.items()})
        self._places = places
        self._scratch = scratch

    def __getitem__(self, name: str) -> list[Turn]:
        found = str(next(self._checkouts(), "nowhere"))
        return json.loads(json.dumps(super().__getitem__(name)).replace(HERE, found))

    def _checkouts(self) -> Iterator[Path]:
        for folder in (self._places, self._scratch):
            if folder.is_dir():
                # The queue's own test checkout begins with a dot.
                yield from (one for one in folder.glob("[!.]*") if (one / ".git").exists())
                yield from (one / "checkout" for one in folder.iterdir() if (one / "checkout").exists())


def ask(world: ClientTestbed, *words: str) -> dict[str, Any]:
    return json.loads(world.call("landlane", *words, "--json", check=False, environment=LEAD).stdout)


def left(world: ClientTestbed) -> list[str]:
    """The processes that a run left; the resident ends by itself."""
    found = [Path(f"/proc/{pid}/cmdline") for pid in world.processes()]
    lines = [one.read_bytes().replace(b"\0", b" ").decode() for one in found if one.exists()]
    return [line for line in lines if line and "resident" not in line]


def run(
    world: ClientTestbed, client: Client, turns: Sequence[Turn], role: str, hooks: bool
) -> dict[str, Any]:
    world.add_home_files(client)
    world.call("git", "config", "user.name", "Ada Example")
    world.call("git", "config", "user.email", "ada@example.invalid")
    with ScriptedModel({"main": []}, listening=world.network.listen()) as model:
        model.scripts = Scripts({"main": turns}, world.root / "repository.workspaces", world.root / "tmp")
        words = json.dumps(words_for(client, model.url, is_sandboxed=True))
        (world.repository / "landlane.toml").write_text(
            f'[landing]\ntarget = "main"\nchecks = ["grep -q return calc.py"]\n[run]\nagent = "mine"\n{role}'
            f'[agents.mine]\nclient = "{client.name}"\nwords = {words}\n'
        )
        world.call("git", "add", "--all")
        world.call("git", "commit", "--quiet", "-m", "Settings")
        if hooks:
            world.call("landlane", "init", "--yes", "--client", client.name, environment=LEAD)
            world.call("git", "checkout", "--quiet", "--", ".")
        (world.root / "body.md").write_text(marker("main"))
        world.call(
            *("landlane", "task", "add", "Mend add", "--path", "calc.py", "--body", "../body.md"),
            environment=LEAD,
        )
        environment = {**client.environment(model.url), **LEAD}
        ended = world.call(
            *("landlane", "run", "--json"), environment=environment, check=False, seconds=LIMIT_SECONDS
        )
        assert ended.returncode == 0, (
            ended.stdout[-3000:],
            ended.stderr[-3000:],
            ask(world, "task", "log", "T1"),
        )
        return json.loads(ended.stdout)


def test_a_client_takes_a_task_through_to_the_target(client: Client, world: ClientTestbed) -> None:
    turns = [*client.edit("calc.py", OLD, NEW), *client.say("It adds now.")]

    answer = run(world, client, turns, 'role = "code"\n', hooks=True)

    assert answer["summary"]["done"] == ["T1"]
    assert world.call("git", "show", "main:calc.py").stdout == f"def add(a, b):\n{NEW}\n"
    booked = ask(world, "usage", "list")["usage"]
    assert len(booked) == 1
    assert client.name in UNKNOWN_USAGE or booked[0]["input_tokens"] > 0
    assert left(world) == []
    assert ask(world, "claims")["claims"] == []


def test_a_client_that_may_not_commit_hands_its_change_back(client: Client, world: ClientTestbed) -> None:
    turns = [*client.edit("calc.py", OLD, NEW), *client.say("It adds now.")]

    answer = run(world, client, turns, "", hooks=False)

    assert answer["summary"]["done"] == ["T1"]
    assert world.call("git", "show", "main:calc.py").stdout == f"def add(a, b):\n{NEW}\n"
    assert "It adds now." in ask(world, "task", "show", "T1")["task"]["result"]
    assert left(world) == []
