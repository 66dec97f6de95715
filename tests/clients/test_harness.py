"""The controls: without hooks the clients do what the script says, and the world around them is closed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.real_clients import Codex, Launch, list_codex_hooks, trust_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.real_clients import Client, ClientTestbed, Result, Scripts

pytestmark = pytest.mark.client

OLD, NEW = "    return a - b", "    return a + b"


def assert_played(result: Result, scripts: Scripts) -> None:
    assert result.code == 0, result.err or result.out
    for name, turns in scripts.items():
        assert set(range(len(turns))) <= set(result.turns(name)), (
            f"script {name} stopped early:\n{result.out}"
        )


def test_client_edits_writes_and_starts_a_subagent(client: Client, world: ClientTestbed) -> None:
    scripts = {
        "main": client.edit("calc.py", OLD, NEW)
        + client.shell("echo shell > by_shell.txt")
        + client.write("new.txt", "new\n")
        + client.subagent("sub")
        + client.say("done"),
        "sub": client.edit("free.py", "x = 1", "x = 2")
        + client.shell("echo subagent > by_subagent.txt")
        + client.say("done"),
    }

    result = world.run(client, scripts)

    assert_played(result, scripts)
    assert result.files == {
        "calc.py": f"def add(a, b):\n{NEW}\n",
        "free.py": "x = 2\n",
        "new.txt": "new\n",
        "by_shell.txt": "shell\n",
        "by_subagent.txt": "subagent\n",
    }


@pytest.mark.xdist_group("clients-1")
def test_two_clients_work_at_once_in_one_repository(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude, codex = need("claude"), need("codex")
    # Each waits for a file that the other makes: this ends only if they run at the same time.
    meet = "touch {0}.here; for i in $(seq 600); do [ -e {1}.here ] && exit 0; sleep 0.05; done; exit 1"
    first = {"main": claude.shell(meet.format("a", "b")) + claude.shell("echo a > a") + claude.say("done")}
    second = {"main": codex.shell(meet.format("b", "a")) + codex.shell("echo b > b") + codex.say("done")}

    results = world.run_together(
        [
            Launch(client=claude, scripts=first, home="one"),
            Launch(client=codex, scripts=second, home="two"),
        ]
    )

    assert_played(results[0], first)
    assert_played(results[1], second)
    assert world.files().keys() >= {"a", "b"}
    assert (world.home("one") / ".claude").exists()
    assert not (world.home("two") / ".claude").exists()


@pytest.mark.xdist_group("clients-1")
def test_client_in_the_background_waits_at_a_gate(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude = need("claude")
    scripts = {"main": claude.wait_at("go") + claude.shell("cat told.txt") + claude.say("done")}

    running = world.start(claude, scripts)
    assert running.model.wait_for_turn("main", 0)
    (world.repository / "told.txt").write_text("written meanwhile\n")
    running.model.open_gate("go")
    result = running.finish()

    assert_played(result, scripts)
    assert result.turns_containing("written meanwhile") == [2]


@pytest.mark.xdist_group("clients-1")
def test_client_sees_neither_the_callers_environment_nor_its_network(
    world: ClientTestbed, need: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not world.network.is_isolated:
        pytest.skip(f"no network namespace: {world.network.reason}")
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "42")
    claude = need("claude")

    world.run(claude, {"main": claude.shell("env > env; cat /proc/net/dev > net") + claude.say("done")})

    files = world.files()
    assert f"HOME={world.home()}\n" in files["env"]
    assert "SECRET_OF_THE_CALLER" not in files["env"]
    assert [line.split(":")[0].strip() for line in files["net"].splitlines()[2:]] == ["lo"]


@pytest.mark.xdist_group("clients-1")
def test_client_that_does_not_end_is_stopped_with_all_it_started(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude = need("claude")
    leave = claude.shell("setsid sleep 1000 >/dev/null 2>&1 &")
    running = world.start(claude, {"main": leave + claude.wait_at("never")})
    assert running.model.wait_for_turn("main", 1)

    result = running.finish(seconds=0.1)
    left = world.processes()
    world.close()

    assert result.code is None
    assert left
    assert world.processes() == []


@pytest.mark.xdist_group("clients-1")
def test_codex_runs_a_hook_as_its_user_trusts_it(world: ClientTestbed, need: Callable[[str], Client]) -> None:
    need("codex")
    hook = {"type": "command", "command": "echo STOPPED-BY-HOOK >&2; exit 2"}
    settings = world.repository / ".codex" / "hooks.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [hook]}]}}))

    def is_stopped(codex: Codex, name: str) -> bool:
        result = world.run(codex, {"main": codex.write(name, "text\n") + codex.say("done")})
        stopped = name not in result.files
        assert bool(result.turns_containing("STOPPED-BY-HOOK")) == stopped
        return stopped

    as_trusted = Codex(bypass_trust=False)
    assert is_stopped(Codex(bypass_trust=True), "bypassed.txt")
    assert not is_stopped(as_trusted, "untrusted.txt")
    assert [seen["trustStatus"] for seen in list_codex_hooks(world)] == ["untrusted"]
    assert trust_hooks(world) == 1
    assert is_stopped(as_trusted, "trusted.txt")
