"""Real clients whose model works through the MCP tools that `landlane init` alone entered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.set_up import ask, set_up
from tests.support.real_clients import Launch
from tests.support.real_clients.client import call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.real_clients import Client, ClientTestbed
    from tests.support.scripted_model.api_formats import Turn

pytestmark = pytest.mark.client
pytest.importorskip("mcp", reason="the extra `mcp` is not installed")

OLD, NEW = "    return a - b", "    return a + b"
NAMES = {
    "claude": "mcp__landlane__{}",
    "qwen": "mcp__landlane__{}",
    "gemini": "mcp_landlane_{}",
    "opencode": "landlane_{}",
    "copilot": "landlane-{}",
}
# These tell the subagents of one client apart, by a call id or by a session of its own.
TELL_SUBAGENTS = ("claude", "codex", "opencode")


def tool(client: Client, name: str, **given: Any) -> list[Turn]:
    """One turn in which the model calls a tool of ours, by the name that this client gives it."""
    if client.name == "codex":
        return [[{"tool": name, "namespace": "mcp__landlane", "input": given}]]
    return call(NAMES[client.name].format(name), **given)


def taken(world: ClientTestbed) -> dict[str, str]:
    """Who took which pattern first; later, an entry of the queue may hold it too."""
    entries = [one for one in ask(world, "log")["entries"] if one["kind"] == "claim.taken"]
    return {one["data"]["pattern"]: one["agent"] for one in reversed(entries)}


def test_a_task_is_taken_edited_proved_and_landed_through_tools(client: Client, world: ClientTestbed) -> None:
    (world.repository / "landlane.toml").write_text("[landing]\nchecks = []\n", encoding="utf-8")
    world.call("git", "add", "landlane.toml")
    world.call("git", "commit", "-qm", "settings")
    client = set_up(world, client)
    ask(world, "task", "add", "Add, do not subtract", "--check", "grep -q 'a + b' calc.py", "--as", "lead")
    # Some clients give their shell nothing of the user's git settings.
    commit = "git -c user.name=Ada -c user.email=ada@example.invalid commit -qm 'Add' calc.py"
    branch = f"git checkout -q -b landlane/T1-1/work && {commit} && git checkout -q --detach"
    script = (
        tool(client, "next")
        + tool(client, "claim", paths=["calc.py"], task="T1")
        + client.edit("calc.py", OLD, NEW)
        + client.shell(branch)
        + tool(client, "done", task="T1")
        + tool(client, "land", task="T1", wait=50)
        + client.say("done")
    )

    result = world.run(client, {"main": script})

    assert taken(world)["calc.py"].startswith(f"{client.name}-"), result.out
    task = ask(world, "task", "show", "T1")["task"]
    assert task["state"] == "done", (task, result.out)
    assert NEW in world.call("git", "show", "main:calc.py").stdout
    # What the server says of itself reached the model, except in Copilot CLI.
    assert client.name == "copilot" or result.turns_containing("claim a path before you change it")


def test_second_client_is_refused_through_the_tool_with_the_holder(
    client: Client, world: ClientTestbed
) -> None:
    client = set_up(world, client)
    ask(world, "claim", "calc.py", "--as", "holder", "--note", "the new sums")
    script = (
        tool(client, "claim", paths=["calc.py"])
        + tool(client, "claim", paths=["free.py"])
        + client.say("done")
    )

    result = world.run(client, {"main": script})

    assert result.turns_containing("CLAIM_HELD"), result.out
    assert result.turns_containing("the new sums")
    assert taken(world) == {"calc.py": "holder", "free.py": taken(world)["free.py"]}
    assert taken(world)["free.py"].startswith(f"{client.name}-")


def test_a_claim_of_a_subagent_is_the_subagents(client: Client, world: ClientTestbed) -> None:
    client = set_up(world, client)
    scripts = {
        "main": tool(client, "claim", paths=["calc.py"]) + client.subagent("sub") + client.say("done"),
        "sub": tool(client, "claim", paths=["free.py"]) + client.say("done"),
    }

    result = world.run(client, scripts)

    holders = taken(world)
    main, sub = holders["calc.py"], holders["free.py"]
    assert main.startswith(f"{client.name}-"), result.out
    if client.name in TELL_SUBAGENTS:
        assert sub.startswith(f"{main}."), result.out
    else:  # to its hooks and servers, this client shows its subagents as itself
        assert sub == main


@pytest.mark.xdist_group("clients-1")
def test_of_two_different_clients_one_gets_it_and_the_other_waits_for_it(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude, codex = set_up(world, need("claude")), set_up(world, need("codex"))
    first = world.launch(
        Launch(
            client=claude,
            scripts={
                "main": tool(claude, "claim", paths=["calc.py"])
                + claude.wait_at("held")
                + tool(claude, "release", paths=["calc.py"])
                + claude.say("done")
            },
        )
    )
    first.model.wait_for_turn("main", 1)
    second = world.launch(
        Launch(
            client=codex,
            scripts={
                "main": tool(codex, "claim", paths=["calc.py"])
                + tool(codex, "claim", paths=["calc.py"], wait=45)
                + codex.say("done")
            },
        )
    )
    second.model.wait_for_turn("main", 1)
    first.model.open_gate("held")

    answer = second.finish()
    first.finish()

    assert 1 in answer.turns_containing("CLAIM_HELD"), answer.out
    entries = [one for one in ask(world, "log")["entries"] if one["kind"] == "claim.taken"]
    assert [one["agent"].partition("-")[0] for one in entries] == ["claude", "codex"]
