"""The hook of a client where things are odd: clients in clients, ends cut off, strange folders."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from landlane.clients import calling_process as client_processes
from landlane.clients.calling_process import client_process
from landlane.clients.setup_files import hook_words
from landlane.platform.process import Process
from landlane.testing.repositories import git
from tests.hooks.stand_in_client import LANDLANE, HookAnswer, ScriptedClient, change_store, holders
from tests.support.git import commit_text

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def make_repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for name in ("a.py", "b.py", "src/c.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "start")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "work")


def rows(root: Path, query: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(root / ".git/landlane/store.db")
    try:
        return database.execute(query).fetchall()
    finally:
        database.close()


def let_time_pass(root: Path, milliseconds: int) -> None:
    """As if nobody had been heard of for so long."""
    change_store(
        root,
        f"UPDATE sessions SET seen_at = seen_at - {milliseconds}, lapses_at = lapses_at - {milliseconds}",
    )
    change_store(root, f"UPDATE claims SET granted_at = granted_at - {milliseconds}")


# ------------------------------------------------------------------------------------------------ where


@pytest.mark.parametrize("cwd", ["gone", "", "other", "above", "sub"])
def test_held_file_is_refused_from_any_working_directory(
    tmp_path: Path, root: Path, one: ScriptedClient, two: ScriptedClient, cwd: str
) -> None:
    one.edit("a.py")
    make_repository(tmp_path / "other")
    make_repository(root / "sub")
    folder = {"gone": root / "was/here", "": "", "other": tmp_path / "other", "above": tmp_path}.get(
        cwd, root / "sub"
    )
    told = two.hook(
        "PreToolUse",
        cwd=str(folder),
        tool_name="Edit",
        tool_input={"file_path": str(root / "a.py")},
        tool_use_id="t",
    )
    assert told.is_denied
    assert "claimed by" in told.reason
    assert not (root / "sub/.git/landlane").exists()
    assert not (tmp_path / "other/.git/landlane").exists()


def test_edit_of_a_folder_is_refused_and_claims_nothing(one: ScriptedClient, two: ScriptedClient) -> None:
    assert one.before("Edit", file_path=one.root).is_denied
    assert one.before("Write", file_path=f"{one.root}/src").is_denied
    assert holders(one) == {}
    assert two.edit("src/c.py").is_silent


@pytest.mark.parametrize("name", ["with space.py", "ünïcode.py", "new/deep/er.py", "~tilde.py", "[odd]*.py"])
def test_odd_names_are_held_like_any_other(one: ScriptedClient, two: ScriptedClient, name: str) -> None:
    Path(one.root, name).parent.mkdir(parents=True, exist_ok=True)
    assert one.edit(name, "x\n").is_silent
    assert one.edit(name, "y\n").is_silent
    assert two.edit(name).is_denied


def test_the_home_folder_by_its_short_name(root: Path, one: ScriptedClient) -> None:
    one.edit("a.py")
    with ScriptedClient(root, environment={"HOME": str(root.parent)}) as two:
        assert two.before("Edit", file_path=f"~/{root.name}/a.py").is_denied


def test_a_link_to_the_repository_leads_to_the_same_files(
    tmp_path: Path, root: Path, one: ScriptedClient
) -> None:
    (tmp_path / "link").symlink_to(root)
    one.edit("a.py", "x\n")
    with ScriptedClient(tmp_path / "link") as two:
        assert two.edit("a.py").is_denied
        assert two.edit("b.py", "y\n").is_silent
        assert two.edit("b.py", "z\n").is_silent
        assert one.edit("b.py").is_denied


def test_a_worktree_has_the_same_holders(tmp_path: Path, root: Path, one: ScriptedClient) -> None:
    git(root, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    one.edit("a.py", "x\n")
    with ScriptedClient(tmp_path / "tree") as two:
        assert two.edit("a.py").is_denied
        assert two.edit("b.py", "y\n").is_silent


# ------------------------------------------------------------------------------------------------ who


def test_clients_with_the_same_chosen_name_are_separate_sessions(root: Path) -> None:
    chosen = {"LANDLANE_AGENT": "everybody"}
    with ScriptedClient(root, environment=chosen) as one, ScriptedClient(root, environment=chosen) as two:
        assert one.edit("a.py").is_silent
        assert two.edit("a.py").is_denied
        assert holders(one)["a.py"] == "everybody"
        assert two.edit("b.py").is_silent
        assert holders(one)["b.py"].startswith("everybody")
        assert holders(one)["b.py"] != "everybody"


def test_client_started_by_a_client_is_a_session_of_its_own(root: Path, one: ScriptedClient) -> None:
    one.hook("SessionStart", source="startup")
    outer = one._process.pid
    # It inherits what its parent said of itself.
    payload = {
        "session_id": "inner-session",
        "cwd": str(root),
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    body = (
        "import subprocess, sys\n"
        "subprocess.run(sys.argv[2:], input=sys.argv[1], text=True, capture_output=True)\n"
        f"subprocess.run([{LANDLANE!r}, 'claim', 'a.py', '--json'])"
    )
    _, out, _ = one.do(
        ["env", f"CLAUDE_PID={outer}", sys.executable, "-c", body, json.dumps(payload), *hook_words("codex")]
    )
    assert json.loads(out)["granted"][0]["holder"].startswith("codex-")
    assert one.type("claim", "b.py")["granted"][0]["holder"].startswith("claude-")


def test_a_resumed_client_is_known_in_its_new_process(root: Path, two: ScriptedClient) -> None:
    first = ScriptedClient(root, "resumed-1")
    first.edit("a.py", "x\n")
    first.close()
    with ScriptedClient(root, "resumed-1") as again:
        again.hook("SessionStart", source="resume")
        assert again.type("claim", "b.py")["granted"][0]["holder"] == holders(again)["a.py"]
        change_store(root, "UPDATE sessions SET seen_at = seen_at - 11000")
        assert two.edit("a.py").is_denied


def test_a_session_given_by_its_starter_outlives_a_cleared_context(root: Path) -> None:
    done = subprocess.run(
        [LANDLANE, "join", "given", "--json"], cwd=root, capture_output=True, text=True, check=True
    )
    given = json.loads(done.stdout)["session"]
    text = f"{given['id']}:{given['secret']}"
    with ScriptedClient(root, environment={"LANDLANE_SESSION": text}) as one:
        assert not one.edit("a.py").is_denied
        assert holders(one)["a.py"] == "given"
        one.hook("SessionEnd", reason="clear")
        one.session = "after-clear"
        one.hook("SessionStart", source="clear")
        assert not one.edit("b.py").is_denied
        assert holders(one) == {"a.py": "given", "b.py": "given"}
        let_time_pass(root, 24 * 3_600_000)
        assert not one.edit("src/c.py").is_denied
        assert holders(one) == {"src/c.py": "given"}


def test_sessions_whose_names_begin_alike_stay_apart_when_they_start_at_once(root: Path) -> None:
    with ScriptedClient(root) as first:
        first.edit("src/c.py")

    def ask(number: int) -> bool:
        payload = {
            "session_id": f"019a1b2c-{number:04x}",
            "cwd": str(root),
            "hook_event_name": "PreToolUse",
            "tool_name": "Edit",
            "tool_input": {"file_path": str(root / "b.py")},
            "tool_use_id": "t",
        }
        done = subprocess.run(hook_words("claude"), input=json.dumps(payload), capture_output=True, text=True)
        return HookAnswer(done.returncode, done.stdout, done.stderr).is_denied

    with ThreadPoolExecutor(12) as pool:
        denied = list(pool.map(ask, range(12)))
    assert denied.count(False) == 1
    found = rows(
        root, "SELECT count(*), count(DISTINCT session) FROM client_sessions WHERE client_agent = ''"
    )
    assert found[0][0] == found[0][1]


def test_a_subagent_of_a_client_that_died_holds_nothing_for_long(root: Path, two: ScriptedClient) -> None:
    gone = ScriptedClient(root)
    gone.edit("b.py")
    gone.edit("a.py", agent="aaaa11")
    gone.close()
    change_store(root, "UPDATE sessions SET seen_at = seen_at - 11000")
    told = two.edit("a.py")
    assert not told.is_denied, told.reason


# ---------------------------------------------------------------------------------------- what was read


def test_second_session_is_refused_with_the_name_of_the_first(
    one: ScriptedClient, two: ScriptedClient
) -> None:
    one.read("a.py")
    two.read("a.py")
    one.edit("a.py", "one\n")
    told = two.edit("a.py")
    assert told.is_denied
    assert "claimed by" in told.reason


def test_what_was_read_before_the_night_still_counts(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    one.read("a.py")
    let_time_pass(root, 24 * 3_600_000)
    two.edit("a.py", "two\n")
    two.type("release", "a.py")
    told = one.edit("a.py")
    assert told.is_denied
    assert "Read it again" in told.reason


def test_a_file_may_be_read_again_through_the_shell(root: Path, one: ScriptedClient) -> None:
    one.edit("a.py", "one\n")
    Path(root, "a.py").write_text("somebody\n", encoding="utf-8")
    assert "`cat a.py`" in one.edit("a.py").reason
    one.before("Bash", command="cat b.py")
    one.after("Bash", command="cat b.py")
    assert one.edit("a.py").is_denied
    one.before("Bash", command="cat a.py")
    one.after("Bash", command="cat a.py")
    assert not one.edit("a.py").is_denied


def test_a_file_that_was_removed_is_written_again_after_a_word(root: Path, one: ScriptedClient) -> None:
    one.edit("a.py", "one\n")
    Path(root, "a.py").unlink()
    assert "was removed" in one.edit("a.py").reason
    assert one.edit("a.py", "new\n").is_silent


def test_a_failed_edit_has_shown_nothing(root: Path, one: ScriptedClient) -> None:
    one.read("a.py")
    Path(root, "a.py").write_text("somebody\n", encoding="utf-8")
    one.hook("PostToolUseFailure", tool_name="Edit", tool_input={"file_path": str(root / "a.py")})
    assert "Read it again" in one.edit("a.py").reason


def test_who_works_in_a_workspace_edits_there_and_so_do_its_subagents(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    one.edit("b.py", "x\n")
    one.type("task", "add", "Mend it", "--path", "a.py")
    one.type("next")
    place = Path(one.type("workspace", "open", "T1")["workspace"]["path"])
    for agent in ("", "aaaa11"):
        one.read("b.py", agent)
        told = one.edit("b.py", agent=agent)
        assert "lies outside your workspace" in told.reason
    one.root = str(place)
    one.read("a.py")
    assert not one.edit("a.py", "x\n").is_denied
    assert not one.edit("a.py", "y\n").is_denied
    assert not one.edit("src/c.py", agent="aaaa11").is_denied
    two.edit("src/d.py", "x\n")
    two.root = str(place)
    two.type("claim", "new.py")
    (place / "new.py").write_text("x\n", encoding="utf-8")
    two.read("new.py")
    assert "lies in the workspace of" in two.edit("new.py").reason


def test_worktree_uses_the_settings_of_the_target_branch(tmp_path: Path, root: Path) -> None:
    git(root, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    with ScriptedClient(tmp_path / "tree") as one:
        one.edit("a.py", "x\n")
        assert one.edit("a.py", "y\n").is_silent
        assert one.edit("b.py", "x\n").is_silent
        commit_text(root, "landlane.toml", '[hooks]\npolicy = "strict"\n')
        assert one.edit("c.py").is_denied


def test_what_was_read_before_the_end_counts_for_who_is_resumed(
    one: ScriptedClient, two: ScriptedClient
) -> None:
    one.read("a.py")
    one.hook("SessionEnd", reason="other")
    two.edit("a.py", "two\n")
    two.type("release", "a.py")
    one.hook("SessionStart", source="resume")
    assert "Read it again" in one.edit("a.py").reason


def test_reads_of_sessions_that_ended_long_ago_are_deleted(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    one.read("a.py")
    one.hook("SessionEnd", reason="other")
    assert len(rows(root, "SELECT * FROM reads")) == 1
    change_store(root, "UPDATE sessions SET ended_at = ended_at - 8 * 86400000 WHERE ended_at IS NOT NULL")
    two.hook("SessionStart", source="startup")
    let_time_pass(root, 24 * 3_600_000)
    two.edit("b.py")
    assert rows(root, "SELECT * FROM reads WHERE path LIKE '%/a.py'") == []


def test_a_new_tool_of_a_shell_is_looked_at_after_it_too(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    two.edit("a.py")
    one.edit("b.py", "x\n")
    one.before("PowerShell", command="echo x > a.py")
    Path(root, "a.py").write_text("spoilt\n", encoding="utf-8")
    told = one.hook(
        "PostToolUse", tool_name="PowerShell", tool_input={"command": "echo x > a.py"}, tool_use_id="call0"
    )
    assert "a.py" in told.repo


# ------------------------------------------------------------------------------------------------ by whom


@pytest.mark.parametrize("client", ["claude", "opencode"])
def test_in_a_sandbox_the_resident_is_asked_first(tmp_path: Path, root: Path, client: str) -> None:
    path = tmp_path / "door"
    with socket.socket(socket.AF_UNIX) as door, ThreadPoolExecutor(1) as pool:
        door.bind(str(path))
        door.listen()
        door.settimeout(60.0)

        def listen() -> bytes:
            caller, _ = door.accept()
            with caller:
                return caller.recv(65536)

        heard = pool.submit(listen)
        payload = {"session_id": "s", "cwd": str(root), "hook_event_name": "PreToolUse", "tool_name": "Edit"}
        subprocess.run(
            hook_words(client),
            input=json.dumps(payload).encode(),
            env={**os.environ, "LANDLANE_RESIDENT": str(path)},
            capture_output=True,
        )
        assert b"PreToolUse" in heard.result()


def test_parent_of_a_terminal_is_not_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {10: "sh", 9: "bash", 8: "tmux: server", 7: "node"}
    monkeypatch.setattr(client_processes, "read_name", lambda pid: names[pid])
    chain = [Process(boot_id="b", namespace="n", pid=pid, started=1) for pid in names]
    assert client_process(chain) is None
    assert client_process(chain[:2] + chain[3:]) == chain[3]
