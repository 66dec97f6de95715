"""Real clients in a repository that `landlane init` alone set up: what is allowed, refused and caught."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.set_up import ask, set_up
from tests.support.shell import LANDLANE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.conftest import CachedClientTestbed
    from tests.support.real_clients import Client, ClientTestbed

# The first test shows that hooks and our MCP server get along in one client; test_mcp.py shows the rest.
pytestmark = [pytest.mark.client, pytest.mark.usefixtures("without_tools")]

OLD, NEW = "    return a - b", "    return a + b"
HELD = f"def add(a, b):\n{OLD}\n"
WRITER = "open('calc.py', 'a').write('# written by a program\\n')\n"


def holder_of(world: ClientTestbed, path: str) -> str:
    claims = {claim["pattern"]: claim["holder"] for claim in ask(world, "claims")["claims"]}
    return claims.get(path, "")


def journal(world: ClientTestbed) -> list[dict[str, Any]]:
    return ask(world, "log")["entries"]


def test_free_file_is_edited_and_claimed_and_the_rules_are_shown(
    client: Client, world: CachedClientTestbed
) -> None:
    world.has_tools = True
    client = set_up(world, client)
    # Rules hold once they are committed.
    world.call("git", "add", "RULES.md")
    world.call("git", "commit", "--quiet", "-m", "Add rules")
    done = client.edit("free.py", "x = 1", "x = 2") + client.shell("landlane claims") + client.say("done")

    result = world.run(client, {"main": done})

    assert result.files["free.py"] == "x = 2\n", result.out
    taken = [entry for entry in journal(world) if entry["kind"] == "claim.taken"]
    assert [entry["data"]["pattern"] for entry in taken] == ["free.py"]
    assert taken[0]["agent"].startswith(f"{client.name}-")
    # What a command that it types shows is what it holds; and from its start it has known the rules.
    assert result.turns_containing(taken[0]["agent"])
    assert result.turns_containing("Claim before you change")


@pytest.mark.promise(
    "hooks.real-clients",
    "Real clients are refused a claimed file, and the model is told who holds it.",
)
def test_held_file_is_refused_with_a_reason_for_the_model(client: Client, world: ClientTestbed) -> None:
    client = set_up(world, client)
    ask(world, "claim", "calc.py", "--as", "holder")

    result = world.run(client, {"main": client.edit("calc.py", OLD, NEW) + client.say("done")})

    assert result.files["calc.py"] == HELD
    assert result.turns_containing("calc.py is claimed by holder"), result.out


def test_an_edit_of_what_another_session_changed_meanwhile_is_refused(
    client: Client, world: ClientTestbed
) -> None:
    client = set_up(world, client)
    edit = client.edit("calc.py", OLD, NEW, read=False)
    done = client.read("calc.py") + client.wait_at("go") + edit + client.say("done")
    running = world.start(client, {"main": done})
    assert running.model.wait_for_turn("main", 1)
    changed = f"{HELD}# by another\n"
    ask(world, "claim", "calc.py", "--as", "other")
    (world.repository / "calc.py").write_text(changed, encoding="utf-8")
    ask(world, "release", "calc.py", "--as", "other")

    running.model.open_gate("go")
    result = running.finish()

    assert result.files["calc.py"] == changed, result.out
    answer = result.turns_containing("Read it again")
    assert answer or (client.name in ("claude", "qwen") and result.turns_containing("modified since")), (
        result.out
    )


@pytest.mark.parametrize("way", ["shell", "program"])
def test_a_write_through_the_shell_is_caught_in_the_same_turn(
    client: Client, world: ClientTestbed, way: str
) -> None:
    client = set_up(world, client)
    (world.repository / "t.py").write_text(WRITER, encoding="utf-8")
    ask(world, "claim", "calc.py", "--as", "holder")
    command = "echo '# by the shell' >> calc.py" if way == "shell" else "python3 t.py"

    result = world.run(client, {"main": client.shell(command) + client.say("done")})

    assert 1 in result.turns_containing("holder"), result.out
    caught = [entry for entry in journal(world) if entry["kind"] == "rule.violated"]
    assert any("calc.py" in entry["data"].get("paths", []) for entry in caught)


def test_an_agent_with_a_terminal_of_its_own_cannot_answer_a_gate(
    client: Client, world: ClientTestbed
) -> None:
    """`script` makes a terminal; an agent is told from a person by the process it was started below."""
    client = set_up(world, client)
    ask(world, "task", "add", "Risky", "--kind", "chore", "--as", "lead")
    ask(world, "next", "--as", "lead")
    ask(world, "gate", "ask", "T1", "--why", "May I?", "--as", "lead")
    # By its whole path: a client may start a login shell, which has a search path of its own.
    typed = f"script -qec '{LANDLANE} gate approve G1' /dev/null"
    bare = f'script -qec "env -i PATH=$PATH HOME=$HOME {LANDLANE} gate approve G1" /dev/null'

    steps = client.shell(typed) + client.shell(bare) + client.say("done")
    result = world.run(client, {"main": steps})

    assert [one["id"] for one in ask(world, "gate", "list")["gates"]] == ["G1"], result.out
    assert ask(world, "task", "show", "T1")["task"]["state"] == "waiting_for_person"
    assert result.turns_containing("[NOT_A_PERSON]"), result.out


def patch_line(path: str, old: str, new: str) -> str:
    """A patch typed into a shell. Codex applies it itself, and calls no hook after it."""
    return (
        f"apply_patch <<'X'\n*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\nX\n"
    )


def test_a_patch_typed_into_a_shell_is_refused_like_an_edit(client: Client, world: ClientTestbed) -> None:
    client = set_up(world, client)
    ask(world, "claim", "calc.py", "--as", "holder")

    result = world.run(client, {"main": client.shell(patch_line("calc.py", OLD, NEW)) + client.say("done")})

    assert result.files["calc.py"] == HELD
    assert result.turns_containing("calc.py is claimed by holder"), result.out


@pytest.mark.xdist_group("clients-1")
def test_patches_typed_into_a_shell_claim_what_is_free(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    codex = set_up(world, need("codex"))
    first, second = patch_line("free.py", "x = 1", "x = 2"), patch_line("free.py", "x = 2", "x = 3")

    # The second builds on what the first left there, though no hook told of its end.
    result = world.run(codex, {"main": codex.shell(first) + codex.shell(second) + codex.say("done") * 2})

    assert result.files["free.py"] == "x = 3\n", result.out
    taken = [entry for entry in journal(world) if entry["kind"] == "claim.taken"]
    assert [entry["data"]["pattern"] for entry in taken] == ["free.py"]


def test_late_write_of_a_command_is_reported_at_the_end_of_the_turn(
    client: Client, world: ClientTestbed
) -> None:
    if client.name == "opencode":
        pytest.skip("opencode cannot be held at the end of a turn")
    client = set_up(world, client)
    ask(world, "claim", "calc.py", "--as", "holder")
    # In a session of its own: some clients end what a command leaves in theirs. The model ends its turn only
    # when the write has been made, long after the hook that came with the end of the command.
    loop = "for i in $(seq 600); do [ -e go ] && break; sleep 0.05; done; echo late >> calc.py; touch went"
    ends = [[{"gate": "late"}, *client.say("done")[0]]]
    left = client.shell(f"setsid sh -c '{loop}' > /dev/null 2>&1 < /dev/null &")
    done = left + ends + client.say("really done")
    running = world.start(client, {"main": done})
    assert running.model.wait_for_turn("main", 1)
    (world.repository / "go").touch()
    give_up_at = time.monotonic() + 60
    while not (world.repository / "went").exists():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
    running.model.open_gate("late")

    result = running.finish()

    assert result.turns_containing("calc.py, held by holder"), result.out
    caught = [entry for entry in journal(world) if entry["kind"] == "rule.violated"]
    assert any("calc.py" in entry["data"].get("paths", []) for entry in caught)


def test_a_subagent_is_refused_and_caught_too(client: Client, world: ClientTestbed) -> None:
    client = set_up(world, client)
    ask(world, "claim", "calc.py", "--as", "holder")
    scripts = {
        "main": client.subagent("sub") + client.say("done"),
        "sub": client.edit("calc.py", OLD, NEW)
        + client.shell("echo '# by a subagent' >> calc.py")
        + client.say("done"),
    }

    result = world.run(client, scripts)

    assert NEW not in result.files["calc.py"]
    assert result.turns_containing("calc.py is claimed by holder", "sub"), result.out
    last = len(scripts["sub"]) - 1
    assert last in result.turns_containing("by holder", "sub")


def test_with_an_unreadable_store_everything_is_refused(client: Client, world: ClientTestbed) -> None:
    client = set_up(world, client)
    ask(world, "claims")
    garble(world.repository / ".git" / "landlane")

    edit = client.edit("free.py", "x = 1", "x = 2")
    result = world.run(client, {"main": edit + client.shell("echo y >> calc.py") + client.say("done")})

    assert result.files["free.py"] == "x = 1\n"
    assert result.files["calc.py"] == HELD
    assert result.turns_containing("refused"), result.out


def garble(folder: Path) -> None:
    for ending in ("-wal", "-shm"):
        (folder / f"store.db{ending}").unlink(missing_ok=True)
    (folder / "store.db").write_bytes(b"no database at all " * 500)


@pytest.mark.xdist_group("clients-1")
def test_one_of_two_clients_wins_and_the_other_learns_the_holder(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude = set_up(world, need("claude"))
    codex = set_up(world, need("codex"))
    # Two lines: to a client that does not find the line it wants to change, no hook need be called.
    first, second = HELD.splitlines()
    edits = [
        claude.edit("calc.py", first, f"{first}  # claude"),
        codex.edit("calc.py", second, f"{second}  # codex"),
    ]
    running = [
        world.start(one, {"main": edit + one.wait_at("both tried") + one.say("done")})
        for one, edit in zip((claude, codex), edits, strict=True)
    ]
    # None ends before the other has tried: what a session that left held is free again.
    for one, edit in zip(running, edits, strict=True):
        assert one.model.wait_for_turn("main", len(edit))
    for one in running:
        one.model.open_gate("both tried")
    results = [one.finish() for one in running]

    content = world.files()["calc.py"]
    winner, loser = ("claude", 1) if "# claude" in content else ("codex", 0)
    assert content.count("#") == 1, content
    assert results[loser].turns_containing(f"calc.py is claimed by {winner}-"), results[loser].out


@pytest.mark.xdist_group("clients-1")
def test_two_clients_started_by_hand_that_type_claims_are_two_owners(
    world: ClientTestbed, need: Callable[[str], Client]
) -> None:
    claude = set_up(world, need("claude"))
    running = [
        world.start(claude, {"main": claude.shell(f"landlane claim {path}") + claude.wait_at("go")})
        for path in ("calc.py", "free.py")
    ]
    for one in running:
        assert one.model.wait_for_turn("main", 1)

    owners = {holder_of(world, path) for path in ("calc.py", "free.py")}
    for one in running:
        one.model.open_gate("go")
        one.finish()

    assert len(owners) == 2
    assert all(owner.startswith("claude-") for owner in owners)


def test_leftovers_are_reported_once_and_then_the_session_ends(client: Client, world: ClientTestbed) -> None:
    if client.name == "opencode":
        pytest.skip("opencode cannot be held at the end of a turn")
    client = set_up(world, client)
    edit = client.edit("free.py", "x = 1", "x = 2")

    result = world.run(client, {"main": edit + client.say("done") + client.say("really done")})

    last = len(edit) + 1
    assert result.turns_containing("still held: free.py") == [last], result.out
    assert max(result.turns()) == last
    left = [entry["kind"] for entry in journal(world) if entry["kind"].startswith("session.")]
    assert left[-1] == "session.left" or client.name in ("codex", "qwen"), left
