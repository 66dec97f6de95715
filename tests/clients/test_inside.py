"""Real clients inside `landlane exec`: hooks answer through the resident, the kernel holds the rest."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.real_clients.client import HERE
from tests.support.scripted_model.server import ScriptedModel

if TYPE_CHECKING:
    from tests.support.real_clients import Client, ClientTestbed

pytestmark = [pytest.mark.client, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parents[2]
BWRAP = ROOT / ".tools" / "bubblewrap" / "usr" / "bin" / "bwrap"
LIMIT_SECONDS = 150
SETTINGS = "[landing]\nchecks = []\nresident = false\n"
REFUSALS = ("may not change tests/test_calc.py", "denied by your permission settings")
TESTS = "def test_add():\n    assert True\n"


def ask(world: ClientTestbed, *words: str) -> dict[str, Any]:
    found = world.call("landlane", *words, "--json", check=False, environment={"LANDLANE_AGENT": "lead"})
    return json.loads(found.stdout)


def set_up(world: ClientTestbed, client: Client) -> None:
    """A repository with tests, settings and this client's hooks."""
    world.add_home_files(client)
    place = world.repository
    (place / "tests").mkdir()
    (place / "tests" / "test_calc.py").write_text(TESTS)
    (place / "landlane.toml").write_text(SETTINGS)
    # Gemini's shell has git read no settings of the user's.
    world.call("git", "config", "user.name", "Ada Example")
    world.call("git", "config", "user.email", "ada@example.invalid")
    world.call("git", "add", "--all")
    world.call("git", "commit", "--quiet", "-m", "Tests and settings")
    world.call("landlane", "init", "--yes", "--client", client.name, environment={"LANDLANE_AGENT": "lead"})
    world.call("git", "checkout", "--quiet", "--", ".")


@pytest.mark.promise(
    "exec.real-clients",
    "A real client works inside the sandbox: its role and the kernel restrict it, and permitted work lands.",
)
@pytest.mark.parametrize("backend", ["landlock", "bubblewrap"])
def test_a_client_works_in_its_role_and_no_further(
    client: Client, world: ClientTestbed, backend: str
) -> None:
    if backend == "bubblewrap" and not BWRAP.exists():
        pytest.skip("no bubblewrap: `scripts/tools.sh` unpacks it")
    set_up(world, client)
    task = ask(world, "task", "add", "Mend add", "--path", "calc.py")["task"]["id"]
    main = world.call("git", "rev-parse", "main").stdout.strip()
    workspace = world.root / "repository.workspaces" / f"{task}-ann"
    turns = [
        *client.edit("calc.py", "    return a - b", "    return a + b"),
        *client.edit("free.py", "x = 1", "x = 2"),
        *client.edit("tests/test_calc.py", "    assert True", "    assert 1"),
        *client.shell(f"echo evil >> {world.repository}/calc.py; git -C {world.repository} branch evil; id"),
        *client.shell("landlane commit -m Mend calc.py free.py && landlane land --wait"),
        *client.say("done"),
    ]
    scripts = json.loads(json.dumps({"main": turns}).replace(HERE, str(workspace)))
    with ScriptedModel(scripts, listening=world.network.listen()) as model:
        words = [client.name, *client.command(model.url, client.prompt_for("main"))]
        environment = {
            **client.environment(model.url),
            "LANDLANE_AGENT": "lead",
            "LANDLANE_BWRAP": str(BWRAP) if backend == "bubblewrap" else "/nowhere",
        }
        options = ("--role", "code", "--task", task, "--name", "ann")
        try:
            ended = world.call(
                *("landlane", "exec", *options, "--", *words),
                environment=environment,
                check=False,
                seconds=LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"{late.stdout}\n{late.stderr}\n{[one.turn for one in model.requests]}")
        requests = model.requests

    said = ended.stdout[-3000:] + ended.stderr[-3000:]
    assert ended.returncode == 0, said
    changed = world.call("git", "diff", "--name-only", main, "main").stdout.split()
    assert changed == ["calc.py", "free.py"], said
    assert world.call("git", "show", "main:tests/test_calc.py").stdout == TESTS
    # Its own hook refused what its role may not change; the kernel refused the main checkout.
    assert any(one.contains(words) for one in requests for words in REFUSALS), said
    assert "evil" not in (world.repository / "calc.py").read_text()
    assert world.call("git", "branch", "--list", "evil").stdout == ""
    taken = [one["data"]["pattern"] for one in ask(world, "log")["entries"] if one["kind"] == "claim.taken"]
    assert "free.py" in taken  # by its hook, through the resident
    assert [name for name in os.listdir(world.root / "tmp") if name.startswith("landlane-")] == []
