"""Real clients as workers: an assignment becomes a commit, and of a stopped client nothing is left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clients.as_worker.command import worker_command
from landlane.processes.tree_child import WorkerChild
from landlane.protocol.worker.messages import WorkAssignment, WorkComplete, WorkFailed
from landlane.workers.run_worker import run_worker
from tests.support.real_clients.client import HERE, clients_folder
from tests.support.scripted_model.server import ScriptedModel, marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.workers.run_worker import WorkerEnd
    from tests.support.real_clients import Client, ClientTestbed
    from tests.support.scripted_model.api_formats import Turn

pytestmark = pytest.mark.client

FOLDER = clients_folder()  # read now: the sealed home of a test takes the variable away
ROOT = Path(__file__).resolve().parents[2]
BWRAP = ROOT / ".tools" / "bubblewrap" / "usr" / "bin" / "bwrap"
OLD, NEW = "    return a - b", "    return a + b"
SETTINGS = "[landing]\nchecks = []\nresident = false\n"
LEAD = {"LANDLANE_AGENT": "lead"}
# Copilot tells the tokens of its own provider's models only.
UNKNOWN_USAGE = ("copilot",)
# They tell nothing of their retries, and give up after minutes.
SILENT_RETRIES = ("qwen", "opencode")
AIDER_EDIT = (
    f"I mend it.\n\ncalc.py\n```python\n<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE\n```\n"
)
GPTME_EDIT = (
    f"I mend it.\n\n```patch calc.py\n<<<<<<< ORIGINAL\n{OLD}\n=======\n{NEW}\n>>>>>>> UPDATED\n```\n"
)
TEXTS = {"aider": [AIDER_EDIT], "gptme": [GPTME_EDIT, "It adds.\n```complete\n```\n"]}


def words_for(client: Client, url: str, *, is_sandboxed: bool) -> list[str]:
    """What a client needs on its command line to find the scripted model."""
    if client.name == "gemini":
        return ["-m", "gemini-2.5-flash"]
    if client.name != "codex":
        return []
    words = client.command(url, "")
    found = [word for at, one in enumerate(words) if one == "-c" for word in words[at : at + 2]]
    return found if is_sandboxed else ["--sandbox", "danger-full-access", *found]


def work(
    world: ClientTestbed,
    client: Client,
    turns: Sequence[Turn],
    *,
    folder: Path | None = None,
    before: Sequence[str] = (),
    options: Sequence[str] = (),
    environment: dict[str, str] | None = None,
    on_tick: Callable[[ScriptedModel], str] = lambda _: "",
    **facts: Any,
) -> WorkerEnd:
    """Let a client do an assignment whose model follows these turns."""
    world.add_home_files(client)
    folder = folder or world.repository
    scripts = json.loads(json.dumps({"main": list(turns)}).replace(HERE, str(folder)))
    assignment = WorkAssignment(
        assignment="T1-1",
        task="T1",
        attempt=1,
        title="Mend add",
        body=marker("main"),
        folder=str(folder),
        heartbeat_seconds=60.0,
        base=world.call("git", "rev-parse", "HEAD").stdout.strip(),
        paths=("calc.py",),
        **{"may_commit": True, **facts},
    )
    with ScriptedModel(scripts, listening=world.network.listen()) as model:
        extra = words_for(client, model.url, is_sandboxed=bool(before))
        command = [
            *world.network.enter(),
            *before,
            *worker_command(client.name, extra=extra, options=options),
        ]
        given = {**world.environment(), **client.environment(model.url), **(environment or {})}
        return run_worker(
            lambda streams: WorkerChild(
                command,
                cwd=str(world.repository),
                environment=given,
                without=tuple(os.environ),
                streams=streams,
            ),
            assignment,
            on_tick=lambda: on_tick(model),
        )


def test_a_client_does_an_assignment_and_its_change_is_committed(
    client: Client, world: ClientTestbed
) -> None:
    turns = [
        *client.edit("calc.py", OLD, NEW),
        *client.shell("echo shell > made.txt"),
        *client.say("It adds."),
    ]

    end = work(world, client, turns)

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.commit == world.call("git", "rev-parse", "HEAD").stdout.strip()
    assert world.call("git", "show", "HEAD:calc.py").stdout == f"def add(a, b):\n{NEW}\n"
    assert world.call("git", "log", "-1", "--format=%s").stdout == "Mend add\n"
    assert "It adds." in end.outcome.summary
    assert world.call("git", "status", "--short").stdout == ""
    assert world.processes() == []
    if client.name not in UNKNOWN_USAGE:
        assert end.outcome.usage is not None
        assert (end.outcome.usage.input_tokens or 0) >= 20
        assert (end.outcome.usage.output_tokens or 0) >= 10


def test_stopped_client_leaves_no_process(client: Client, world: ClientTestbed) -> None:
    ready = world.repository / "ready"
    leave = "setsid sleep 1000 >/dev/null 2>&1 & touch ready; sleep 1000"
    turns = [*client.edit("calc.py", OLD, NEW), *client.shell(leave), *client.say("never")]

    end = work(world, client, turns, on_tick=lambda _: "enough" if ready.exists() else "")

    assert isinstance(end.outcome, WorkFailed), end
    assert (end.outcome.code, end.outcome.reason) == ("stopped", "enough")
    assert world.processes() == []
    assert (world.repository / "calc.py").read_text() == f"def add(a, b):\n{NEW}\n"  # to be rescued


def test_rate_limit_is_not_a_failure_of_the_work(client: Client, world: ClientTestbed) -> None:
    if client.name in SILENT_RETRIES:
        pytest.skip(f"{client.name} tells nothing of its retries")
    # Some clients try again for minutes; they are not waited for.
    end = work(world, client, [[{"status": 429}]] * 40, options=("--patience", "0.5"))

    assert isinstance(end.outcome, WorkFailed), end
    assert end.outcome.code == "rate_limited"
    assert world.processes() == []


@pytest.mark.xdist_group("clients-1")
def test_inside_its_sandbox_a_client_is_a_worker_too(world: ClientTestbed, need: Any) -> None:
    name = "claude"
    client = need(name)
    (world.repository / "landlane.toml").write_text(SETTINGS)
    world.call("git", "config", "user.name", "Ada Example")
    world.call("git", "config", "user.email", "ada@example.invalid")
    world.call("git", "add", "--all")
    world.call("git", "commit", "--quiet", "-m", "Settings")
    world.call("landlane", "init", "--yes", "--client", name, environment=LEAD)
    world.call("git", "checkout", "--quiet", "--", ".")
    added = world.call("landlane", "task", "add", "Mend add", "--path", "calc.py", "--json", environment=LEAD)
    task = json.loads(added.stdout)["task"]["id"]
    folder = world.root / "repository.workspaces" / f"{task}-ann"
    turns = [
        *client.edit("calc.py", OLD, NEW),
        *client.write("tests/test_new.py", "x = 1\n"),
        *client.say("Done."),
    ]

    end = work(
        world,
        client,
        turns,
        folder=folder,
        before=("landlane", "exec", "--role", "code", "--task", task, "--name", "ann", "--"),
        environment={**LEAD, "LANDLANE_BWRAP": str(BWRAP) if BWRAP.exists() else "/nowhere"},
    )

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.commit, end
    # Its role may not change tests: the words of its role reached the client through the translator.
    changed = world.call("git", "diff", "--name-only", "main", end.outcome.commit).stdout.split()
    assert changed == ["calc.py"], end


@pytest.mark.parametrize("name", TEXTS)
def test_a_client_that_only_edits_by_text_is_a_worker_too(world: ClientTestbed, name: str) -> None:
    program = FOLDER / name / "bin" / name
    if not program.exists():
        pytest.skip(f"no {name}: `python -m venv {program.parents[1]}` and pip install it there")
    turns: list[Turn] = [[{"text": text}] for text in TEXTS[name]]
    assignment = WorkAssignment(
        assignment="T1-1",
        task="T1",
        attempt=1,
        title="Mend add",
        body=marker("main"),
        folder=str(world.repository),
        heartbeat_seconds=60.0,
        base=world.call("git", "rev-parse", "HEAD").stdout.strip(),
        paths=("calc.py",),
    )
    with ScriptedModel({"main": turns}, listening=world.network.listen()) as model:
        address = f"{model.url}/v1"
        keys = {"OPENAI_API_BASE": address, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "dummy"}
        words = worker_command(name, model="openai/gpt-4o", options=("--program", str(program)))
        end = run_worker(
            lambda streams: WorkerChild(
                [*world.network.enter(), *words],
                cwd=str(world.repository),
                environment={**world.environment(), **keys},
                without=tuple(os.environ),
                streams=streams,
            ),
            assignment,
        )

    assert isinstance(end.outcome, WorkComplete), end
    assert end.outcome.patch
    assert f"+{NEW}" in end.outcome.patch
    assert end.outcome.patch.count("diff --git") == 1  # and nothing of its own files
    assert end.outcome.usage is not None
    assert end.outcome.usage.cost_usd
