"""How `init` enters the MCP server in the clients' settings, and how it goes again."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from landlane.clients.setup_files import TOML, server_words
from landlane.managed_files.formats import NotMergeable, drop_old_server, insert_content, remove_content
from landlane.setup.init import InitOptions, carry_out, plan_init, plan_undo
from landlane.testing.repositories import make_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

WORDS = server_words()
BLOCK = '[mcp_servers.landlane]\ncommand = "python"'
ENTRIES = {
    "claude": (".mcp.json", ("mcpServers", "landlane", "command"), WORDS[0]),
    "codex": (".codex/config.toml", ("mcp_servers", "landlane", "required"), True),
    "gemini": (".gemini/settings.json", ("mcpServers", "landlane", "trust"), True),
    "qwen": (".qwen/settings.json", ("mcpServers", "landlane", "args"), WORDS[1:]),
    "opencode": (".opencode/opencode.json", ("mcp", "landlane", "command"), WORDS),
    "copilot": (".mcp.json", ("mcpServers", "landlane", "args"), WORDS[1:]),
    "cursor": (".cursor/mcp.json", ("mcpServers", "landlane", "args"), WORDS[1:]),
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


def read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


@pytest.mark.promise(
    "mcp.init-and-undo",
    "`init` adds the MCP server to each client's settings, and undo restores every byte.",
)
@pytest.mark.parametrize("client", ENTRIES)
def test_init_enters_the_server_and_undo_brings_every_byte_back(repository: Path, client: str) -> None:
    name, keys, wanted = ENTRIES[client]
    path = repository / name
    path.parent.mkdir(exist_ok=True)
    before = '# mine\nmodel = "x"\n' if path.suffix == ".toml" else '{ "mine":   true }\r\n'
    path.write_text(before, encoding="utf-8", newline="")

    carry_out(plan_init(str(repository), InitOptions(clients=(client,), has_trust=False)))

    found = read(path)
    assert found.get("mine", found.get("model"))
    for key in keys:
        found = found[key]
    assert found == wanted
    carry_out(plan_undo(str(repository)))
    assert path.read_bytes() == before.encode()


def test_two_clients_that_read_one_list_share_one_entry(repository: Path) -> None:
    chosen = InitOptions(clients=("claude", "copilot"))
    changed = carry_out(plan_init(str(repository), chosen)).changed
    assert [path for path in changed if path.endswith(".mcp.json")] == [str(repository / ".mcp.json")]
    assert plan_init(str(repository), chosen).is_nothing
    carry_out(plan_undo(str(repository)))
    assert not (repository / ".mcp.json").exists()


def test_without_the_sdk_no_server_is_configured(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("managed_files.client_files", "setup.init"):
        monkeypatch.setattr(f"landlane.{name}.sdk_release", lambda: "")
    plan = plan_init(str(repository), InitOptions(clients=("claude",)))
    assert not any(line.path.endswith(".mcp.json") for line in plan.lines)
    assert any("[mcp]'" in left.why for left in plan.changes.skipped)


def test_a_toml_file_that_has_a_server_of_our_name_stays_as_it_is() -> None:
    theirs = b'[mcp_servers.landlane]\ncommand = "mine"\n'
    assert insert_content(TOML, BLOCK, theirs) == theirs
    with pytest.raises(NotMergeable, match="not valid TOML"):
        insert_content(TOML, BLOCK, b"= nothing\n")
    with pytest.raises(NotMergeable, match="no place"):
        insert_content(TOML, BLOCK, b"mcp_servers = 1\n")


def test_a_toml_block_is_renewed_in_place_and_taken_out_of_a_changed_file() -> None:
    first = insert_content(TOML, BLOCK, b"a = 1\n")
    again = insert_content(TOML, BLOCK.replace("python", "python3"), first + b"[other]\nb = 2\n")
    assert tomllib.loads(again.decode()) == {
        "a": 1,
        "mcp_servers": {"landlane": {"command": "python3"}},
        "other": {"b": 2},
    }
    rest = remove_content(TOML, BLOCK, b"a = 1\n", again)
    assert rest is not None
    assert tomllib.loads(rest.decode()) == {"a": 1, "other": {"b": 2}}


def test_an_entry_with_another_interpreter_makes_room_and_a_changed_one_does_not() -> None:
    wanted = {"mcpServers": {"landlane": {"command": WORDS[0], "args": WORDS[1:]}}}
    older = {"mcpServers": {"landlane": {"command": "/old/python", "args": WORDS[1:]}, "x": {"command": "y"}}}
    rest = json.loads(drop_old_server(json.dumps(older), wanted))
    assert rest["mcpServers"] == {"x": {"command": "y"}}
    older["mcpServers"]["landlane"]["args"] = [*WORDS[1:], "--as", "ann"]
    assert json.loads(drop_old_server(json.dumps(older), wanted)) == older
