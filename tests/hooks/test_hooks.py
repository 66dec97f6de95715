"""The hook of a client, called as a client calls it: what it allows, takes, refuses and tells."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import landlane
from landlane.clients.setup_files import hook_words
from landlane.resident.messages import AnswerLost, BadMessage, find_socket, pack_request, send_request
from landlane.testing.repositories import git
from tests.hooks.stand_in_client import ScriptedClient, change_store, holders
from tests.support.git import commit_text
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.soak]

# Read now: the sealed home of a test takes the variable away.
CALLS = int(os.environ.get("LANDLANE_HOOK_CALLS", "64"))  # 1,000 in `make soak`


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("a.py", "b.py", "src/c.py"):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"# {name}\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "start")
    return folder


def test_a_free_file_is_allowed_and_claimed(one: ScriptedClient) -> None:
    assert one.edit("a.py", "x = 1\n").is_silent
    held = holders(one)
    assert list(held) == ["a.py"]
    assert held["a.py"].startswith("claude-")


def test_a_held_file_is_refused_with_holder_end_and_next_action(
    one: ScriptedClient, two: ScriptedClient
) -> None:
    one.edit("a.py")
    told = two.edit("a.py", "spoilt\n")
    assert told.is_denied
    holder = holders(one)["a.py"]
    for word in (
        "a.py is claimed by",
        holder,
        "lease ends in 29 min",
        "landlane next",
        "landlane claim a.py --wait",
    ):
        assert word in told.reason
    assert told.answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert Path(one.root, "a.py").read_text(encoding="utf-8") == "# a.py\n"


@pytest.mark.slow
def test_a_refusal_names_the_task(one: ScriptedClient, two: ScriptedClient) -> None:
    one.type("task", "add", "Mend the parser", "--path", "a.py")
    one.edit("b.py")
    assert one.type("next")["task"]["id"] == "T1"
    told = two.edit("a.py")
    assert ": T1 Mend the parser (" in told.reason


@pytest.mark.slow
def test_typed_commands_belong_to_the_client_that_runs_them(one: ScriptedClient, two: ScriptedClient) -> None:
    for client in (one, two):
        client.hook("SessionStart", source="startup")
    one.type("claim", "src/c.py")
    refused = two.type("claim", "src/c.py")
    assert refused["ok"] is False
    assert refused["refused"][0]["holder"] == holders(one)["src/c.py"]
    assert two.type("claim", "b.py")["granted"][0]["holder"] != holders(one)["src/c.py"]


def test_what_is_held_and_unchanged_takes_the_quick_road(one: ScriptedClient) -> None:
    one.edit("a.py", "x = 1\n")
    before = one.type("log")["entries"]
    for number in range(3):
        assert one.edit("a.py", f"x = {number}\n").is_silent
    assert one.type("log")["entries"] == before


def test_the_quick_road_alone_marks_the_last_action(one: ScriptedClient, root: Path, tmp_path: Path) -> None:
    one.edit("a.py", "x = 1\n")
    (file,) = (root / ".git/landlane/activity").iterdir()
    file.write_text("stale".ljust(240), encoding="utf-8")
    os.utime(file, (1, 1))

    done = call_half_installed(tmp_path, edit_payload(one.session, root / "a.py"))

    assert (done.returncode, done.stderr) == (0, b""), "the ordinary road is not there"
    assert file.read_text(encoding="utf-8") == "editing a.py".ljust(240)
    assert file.stat().st_mtime > 1


def test_status_shows_client_action_and_age(one: ScriptedClient) -> None:
    one.read("b.py")
    one.edit("a.py", "x = 1\n")
    one.read("src/c.py")
    (row,) = one.type("status")["working"]

    assert (row["client"], row["doing"], row["seen_accuracy_seconds"]) == ("claude", "reading src/c.py", 1)
    assert row["idle_seconds"] < 60


@pytest.mark.promise(
    "hooks.no-lost-update",
    "An edit based on an outdated version of a file is refused until the file is read again.",
)
@pytest.mark.slow
def test_an_edit_on_a_version_that_is_gone_is_refused_until_it_is_read_again(
    one: ScriptedClient, two: ScriptedClient
) -> None:
    one.read("a.py")
    two.edit("a.py", "changed by two\n")
    two.type("release", "a.py")
    told = one.edit("a.py", "lost update\n")
    assert told.is_denied
    assert "Read it again" in told.reason
    one.read("a.py")
    assert one.edit("a.py", "both\n").is_silent


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["cat src/c.py", "cd src && sed -n 1,9p c.py", "bash -lc 'cat src/c.py'", "cat < src/c.py"]
)
def test_a_file_that_a_shell_call_names_counts_as_read(
    one: ScriptedClient, two: ScriptedClient, command: str
) -> None:
    one.before("Bash", command=command)
    one.after("Bash", command=command)
    two.edit("src/c.py", "changed by two\n")
    two.type("release", "src/c.py")

    told = one.edit("src/c.py", "lost update\n")

    assert told.is_denied
    assert "Read it again" in told.reason
    one.before("Bash", command=command)
    one.after("Bash", command=command)
    assert one.edit("src/c.py", "both\n").is_silent


def test_file_changed_by_the_sessions_own_shell_call_need_not_be_read_again(
    root: Path, one: ScriptedClient
) -> None:
    command = "sed -i s/a/b/ a.py"
    one.before("Bash", command=command)
    (root / "a.py").write_text("# b.py\n", encoding="utf-8")
    one.after("Bash", command=command)

    assert one.edit("a.py", "more\n").is_silent


def test_a_touched_file_with_the_same_content_has_not_changed(one: ScriptedClient) -> None:
    one.edit("a.py", "x = 1\n")
    os.utime(Path(one.root, "a.py"))
    assert one.edit("a.py", "x = 2\n").is_silent


def test_strict_policy_requires_a_claim_first(root: Path, one: ScriptedClient, two: ScriptedClient) -> None:
    commit_text(root, "landlane.toml", '[hooks]\npolicy = "strict"\n')
    told = one.edit("a.py")
    assert told.is_denied
    assert "landlane claim a.py" in told.reason
    one.type("claim", "a.py")
    assert one.edit("a.py").is_silent
    assert "claimed by" in two.edit("a.py").reason


def test_watch_only_tells(root: Path, one: ScriptedClient, two: ScriptedClient) -> None:
    commit_text(root, "landlane.toml", '[hooks]\npolicy = "watch"\n')
    one.hook("SessionStart", source="startup")
    one.type("claim", "a.py")
    told = two.edit("a.py")
    assert not told.is_denied
    assert "claimed by" in told.repo


def test_a_changed_setting_counts_at_once(root: Path, one: ScriptedClient) -> None:
    one.edit("a.py", "x = 1\n")
    one.type("release", "a.py")
    commit_text(root, "landlane.toml", '[hooks]\npolicy = "strict"\n')
    assert one.edit("a.py").is_denied


def test_files_outside_the_repository_are_not_checked(one: ScriptedClient, tmp_path: Path) -> None:
    assert one.edit(str(tmp_path / "elsewhere.txt")).is_silent


def test_gits_own_files_are_not_edited(one: ScriptedClient) -> None:
    assert one.edit(".git/config").is_denied
    assert one.edit(".git/hooks/pre-commit").is_denied


def test_a_link_leads_to_the_file_that_is_claimed(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    Path(root, "link.py").symlink_to("src/c.py")
    one.edit("src/c.py")
    assert two.edit("link.py").is_denied


@pytest.mark.slow
def test_a_released_file_is_not_waved_through_by_the_quick_road(
    one: ScriptedClient, two: ScriptedClient
) -> None:
    one.edit("a.py", "x = 1\n")
    one.edit("a.py", "x = 2\n")
    one.type("release", "a.py")
    two.read("a.py")
    two.edit("a.py", "two\n")
    assert one.edit("a.py").is_denied


# ------------------------------------------------------------------------------------------- subagents


def test_a_subagent_is_a_session_of_its_own_under_its_parent(one: ScriptedClient) -> None:
    one.edit("a.py")
    one.edit("b.py", agent="aaaa11")
    held = holders(one)
    assert held["b.py"] == held["a.py"] + ".aaaa11"


@pytest.mark.slow
def test_what_the_parent_holds_is_not_in_its_subagents_way(one: ScriptedClient) -> None:
    one.type("status")
    one.edit("b.py")
    one.type("claim", "src/**")
    assert one.edit("src/c.py", agent="aaaa11").is_silent


def test_two_subagents_are_in_each_others_way(one: ScriptedClient) -> None:
    one.edit("a.py", agent="aaaa11")
    assert one.edit("a.py", agent="bbbb22").is_denied
    assert one.edit("a.py").is_denied


@pytest.mark.slow
def test_what_a_subagent_held_is_its_parents_when_it_ends(one: ScriptedClient, two: ScriptedClient) -> None:
    one.edit("b.py")
    one.edit("a.py", agent="aaaa11")
    one.hook("SubagentStop", agent="aaaa11", stop_hook_active=False)
    held = holders(one)
    assert held["a.py"] == held["b.py"]
    assert two.edit("a.py").is_denied
    assert one.edit("a.py").is_silent


@pytest.mark.slow
def test_the_end_of_a_session_frees_what_it_held(one: ScriptedClient, two: ScriptedClient) -> None:
    one.edit("a.py")
    one.edit("b.py", agent="aaaa11")
    one.hook("SessionEnd", reason="other")
    assert two.edit("a.py").is_silent
    assert two.edit("b.py").is_silent


def test_a_client_that_died_without_a_word_holds_nothing_for_long(root: Path, two: ScriptedClient) -> None:
    gone = ScriptedClient(root)
    gone.edit("a.py")
    gone.close()
    database = sqlite3.connect(root / ".git/landlane/store.db")
    with database:  # a session that was heard of a moment ago is given a grace
        database.execute("UPDATE sessions SET seen_at = seen_at - 11000")
    database.close()
    assert two.edit("a.py").is_silent


def test_session_without_a_start_event_is_briefed_with_its_first_tool_result(one: ScriptedClient) -> None:
    one.before("Edit", file_path=os.path.join(one.root, "a.py"))
    told = one.after("Edit", file_path=os.path.join(one.root, "a.py"))
    assert "You are claude-" in told.repo
    assert one.after("Edit", file_path=os.path.join(one.root, "a.py")).is_silent


@pytest.mark.postgres
def test_with_the_state_in_postgres_a_resident_answers(root: Path, postgres_url: str) -> None:
    commit_text(root, "landlane.toml", f'[store]\nurl = "{postgres_url}"\n')
    state = str(root / ".git/landlane")
    try:
        with ScriptedClient(root) as one, ScriptedClient(root) as two:
            one.edit("a.py", "x = 1\n")
            wait_until(lambda: resident_of(state) > 0)
            assert one.edit("a.py", "x = 2\n").is_silent
            assert two.edit("a.py").is_denied
            claims = one.type("claims")["claims"]
            assert [claim["pattern"] for claim in claims] == ["a.py"]
            assert claims[0]["holder"].startswith("claude-")
            pid = resident_of(state)
            assert pid
            os.kill(pid, signal.SIGKILL)
            assert two.edit("a.py").is_denied
            assert two.edit("b.py").is_silent
    finally:
        if pid := resident_of(state):
            os.kill(pid, signal.SIGKILL)


def resident_of(state: str) -> int:
    try:
        found = send_request(find_socket(state), pack_request(b"ping", b"", (), {}, b""), 10.0)
    except (AnswerLost, BadMessage):
        return 0
    return int(found[1]) if found else 0


@pytest.mark.slow
def test_under_strict_what_the_parent_claimed_is_for_its_subagents_one_at_a_time(
    root: Path, one: ScriptedClient
) -> None:
    commit_text(root, "landlane.toml", '[hooks]\npolicy = "strict"\n')
    one.hook("SessionStart", source="startup")
    one.type("claim", "a.py")
    assert one.edit("a.py", agent="aaaa11").is_silent
    assert "claimed by" in one.edit("a.py", agent="bbbb22").reason
    assert one.edit("b.py", agent="aaaa11").is_denied


@pytest.mark.slow
def test_a_client_in_the_workspace_of_a_person_works_there_for_them(root: Path) -> None:
    """Opened in a terminal, and the client is started in it: what it may do is what they may."""
    typed = ["landlane", "workspace", "open", "T1", "--json"]
    add = ["landlane", "task", "add", "Mend a.py", "--path", "a.py", "--json"]
    program = str(Path(sys.executable).with_name("landlane"))
    for words in (add, typed):
        done = subprocess.run([program, *words[1:]], cwd=root, capture_output=True, check=True, timeout=60)
    folder = Path(json.loads(done.stdout)["workspace"]["path"])
    with ScriptedClient(folder) as client:
        client.hook("SessionStart", source="startup")
        assert client.edit("a.py", "mended\n").is_silent
        assert "outside your workspace" in client.edit(str(root / "b.py"), "spoilt\n").reason
        assert client.type("commit", "-m", "Mend", "a.py")["ok"]
        assert client.type("done", "T1")["task"]["state"] == "landing"
        client.hook("SessionEnd", reason="other")
        assert {claim["kind"] for claim in client.type("claims")["claims"]} == {"literal"}


@pytest.mark.slow
def test_the_workspace_of_another_agent_is_not_entered(root: Path, one: ScriptedClient) -> None:
    one.hook("SessionStart", source="startup")
    one.type("task", "add", "Mend a.py", "--path", "a.py")
    folder = Path(one.type("workspace", "open", "T1")["workspace"]["path"])
    with ScriptedClient(folder) as other:
        other.hook("SessionStart", source="startup")
        assert "lies in the workspace of claude-" in other.edit("a.py", "spoilt\n").reason


# --------------------------------------------------------------------------------------------- trouble


def garble_store(root: Path) -> None:
    Path(root, ".git/landlane/store.db").write_bytes(b"no database at all" * 1000)
    for ending in ("-wal", "-shm"):
        Path(root, f".git/landlane/store.db{ending}").unlink(missing_ok=True)


def remove_store(root: Path) -> None:
    for path in Path(root, ".git/landlane").glob("store.db*"):
        path.unlink()


def make_store_newer(root: Path) -> None:
    change_store(root, "UPDATE meta SET value = '999' WHERE key IN ('schema', 'readable_by')")


def make_schema_newer(root: Path) -> None:
    change_store(root, "UPDATE meta SET value = '99' WHERE key = 'schema'")


def make_store_older(root: Path) -> None:
    change_store(root, "UPDATE meta SET value = '0' WHERE key = 'schema'")


def change_user_version(root: Path) -> None:
    change_store(root, "PRAGMA user_version=99")


def change_application_id(root: Path) -> None:
    change_store(root, "PRAGMA application_id=0x494C434B")


def break_settings(root: Path) -> None:
    Path(root, ".git/landlane/local.toml").write_text("[hooks\n", encoding="utf-8")


def test_in_a_broken_repository_nothing_new_is_edited(root: Path, one: ScriptedClient) -> None:
    one.edit("b.py")
    Path(root, ".git/HEAD").unlink()
    assert one.before("Edit", file_path=str(root / "a.py")).is_denied


@pytest.mark.promise(
    "hooks.trouble-refuses",
    "Any error that keeps a hook from checking an edit or a shell call is a refusal; reading is still "
    "allowed.",
)
@pytest.mark.promise(
    "store.hooks-refuse-other-versions",
    "No hook allows an edit or a commit because the store has another version or belongs to another program.",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble",
    [
        *(garble_store, remove_store, make_store_newer, make_schema_newer, make_store_older),
        *(change_user_version, change_application_id, break_settings),
    ],
)
def test_internal_error_refuses_edits_but_not_reads(root: Path, one: ScriptedClient, trouble: object) -> None:
    one.edit("a.py", "x = 1\n")
    one.edit("b.py", "x = 1\n")
    trouble(root)  # type: ignore[operator]
    for path in ("a.py", "b.py", "src/c.py"):
        told = one.before("Edit", file_path=str(root / path))
        assert told.is_denied, told.stdout
        assert "refused" in told.reason
    assert one.before("Bash", command="echo hello").is_denied
    assert not one.read("a.py").is_denied
    assert not one.hook("Stop", stop_hook_active=False).is_denied
    assert not one.hook("UserPromptSubmit", prompt="go").is_denied


@pytest.mark.promise(
    "hooks.state-folder-decides",
    "Client hooks and git hooks use the store that the state folder names, also right after it has moved.",
)
def test_a_hook_follows_a_move_of_the_store_at_once(
    one: ScriptedClient, two: ScriptedClient, tmp_path: Path
) -> None:
    for number in range(2):
        one.edit("a.py", f"x = {number}\n")
    assert one.type("store", "move", str(tmp_path / "new.db"))["ok"]
    one.type("release", "a.py")
    assert two.type("claim", "a.py", "--as", "bob")["ok"]

    told = one.edit("a.py", "spoilt\n")

    assert told.is_denied
    assert "a.py is claimed by bob" in told.reason


def test_a_hook_that_is_told_of_another_store_refuses(
    root: Path, one: ScriptedClient, tmp_path: Path
) -> None:
    one.edit("a.py", "x = 1\n")
    with ScriptedClient(root, environment={"LANDLANE_STORE": str(tmp_path / "other.db")}) as other:
        told = other.edit("a.py", "spoilt\n")

    assert told.is_denied
    assert "LANDLANE_STORE names" in told.reason
    assert not (tmp_path / "other.db").exists()


@pytest.mark.slow
def test_deleted_store_is_not_created_again_by_a_hook(
    root: Path, one: ScriptedClient, two: ScriptedClient
) -> None:
    one.edit("a.py", "x = 1\n")
    shutil.rmtree(root / ".git/landlane")
    told = two.edit("a.py", "spoilt\n")
    assert told.is_denied
    assert "landlane init" in told.reason
    assert one.type("claims")["code"] == "STATE_GONE"
    assert one.type("init", "--yes", "--no-clients")["ok"]
    assert two.edit("a.py", "after all\n").is_silent


def test_a_store_locked_for_long_is_a_refusal(root: Path, one: ScriptedClient) -> None:
    commit_text(root, "landlane.toml", '[store]\nwait = "1s"\n')
    one.edit("a.py", "x = 1\n")
    database = sqlite3.connect(root / ".git/landlane/store.db", isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    try:
        assert one.before("Edit", file_path=str(root / "b.py")).is_denied
    finally:
        database.close()
    assert one.edit("b.py").is_silent


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe\x00",
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit"}',
        b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": 7}, "cwd": "."}',
        b'{"hook_event_name": "PreToolUse", "session_id": ["x"], "tool_name": "Edit", "tool_input": []}',
        b"{" * 100_000,
    ],
)
def test_unreadable_input_is_a_refusal(root: Path, given: bytes) -> None:
    done = subprocess.run(hook_words("claude"), input=given, cwd=root, capture_output=True, timeout=60)
    answer = json.loads(done.stdout) if done.stdout else {}
    assert done.returncode == 2 or answer.get("decision") == "block"
    assert b"Traceback" not in done.stderr


def test_an_unknown_client_is_a_refusal(root: Path) -> None:
    done = subprocess.run(hook_words("nobody"), input=b"{}", cwd=root, capture_output=True, timeout=60)
    assert done.returncode == 2


def call_half_installed(folder: Path, payload: dict[str, Any]) -> subprocess.CompletedProcess[bytes]:
    """Call a hook that has only the quick road, as in the middle of an upgrade."""
    package = folder / "half" / "landlane"
    shutil.copytree(Path(landlane.__file__).parent / "hook_entry", package / "hook_entry")
    words = hook_words("claude")
    words[3] = str(package / "hook_entry" / "client_hook.py")
    return subprocess.run(words, input=json.dumps(payload).encode(), capture_output=True, timeout=60)


def edit_payload(session: str, file: Path) -> dict[str, Any]:
    payload = {"session_id": session, "cwd": str(file.parent), "hook_event_name": "PreToolUse"}
    return payload | {"tool_name": "Edit", "tool_input": {"file_path": str(file)}}


def test_a_hook_whose_package_is_gone_refuses(root: Path, tmp_path: Path) -> None:
    """Half of an upgrade: the quick road is there, the ordinary one is not."""
    done = call_half_installed(tmp_path, edit_payload("1", root / "a.py"))
    assert done.returncode == 2
    assert b"refused" in done.stderr


@pytest.mark.promise(
    "hooks.check-and-take",
    "When many sessions want to edit the same file at once, one may; no other call is allowed by mistake.",
)
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_of_many_at_once_none_falls_open(root: Path) -> None:
    """16 at a time: all calls for a held file are denied; of 16 that want one free file, one gets it."""
    with ScriptedClient(root) as holder:
        holder.edit("a.py", "held\n")

        def ask(number: int, path: str) -> bool:
            payload = {
                "session_id": f"{number % 16:08x}-many",
                "cwd": str(root),
                "hook_event_name": "PreToolUse",
                "tool_name": "Edit",
                "tool_input": {"file_path": str(root / path), "old_string": "a", "new_string": "b"},
                "tool_use_id": f"t{number}",
            }
            done = subprocess.run(
                hook_words("claude"), input=json.dumps(payload).encode(), capture_output=True, timeout=110
            )
            answer = json.loads(done.stdout) if done.stdout else {}
            return done.returncode == 2 or answer.get("decision") == "block"

        with ThreadPoolExecutor(16) as pool:
            denied = list(pool.map(lambda number: ask(number, "a.py"), range(CALLS)))
            raced = list(pool.map(lambda number: ask(number, "b.py"), range(16)))
    assert all(denied)
    assert raced.count(False) == 1
