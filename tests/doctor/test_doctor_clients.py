"""The doctor and the coding clients: a canary proves each guard, and what keeps it from standing is told."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.client_programs import write_fake_client
from tests.support.git import commit_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.shell import Answer, Shell

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

WAYS = ("edits", "subagents", "shell", "fails closed")
CLAUDE = ".claude/settings.local.json"
NEW_CLAUDE = "2.1.325 (Claude Code)"


def rows_of(answer: Answer) -> dict[str, Answer]:
    return {row["name"]: row for row in answer["checks"]}


def enforced(answer: Answer, client: str) -> list[bool]:
    rows = rows_of(answer)
    return [rows[f"{client}: {way}"]["enforced"] for way in WAYS]


@pytest.fixture
def guarded(shell: Shell, programs: Path) -> Shell:
    """A repository that is set up for Claude Code."""
    write_fake_client(programs, "claude", NEW_CLAUDE)
    shell.run_json("init", "--yes")
    return shell


def change_settings(shell: Shell, change: Callable[[Answer], object], name: str = CLAUDE) -> None:
    path = shell.folder / name
    settings = json.loads(path.read_text(encoding="utf-8"))
    change(settings)
    path.write_text(json.dumps(settings), encoding="utf-8")


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_canary_is_refused_and_leaves_nothing(guarded: Shell) -> None:
    guarded.run_json("claim", "README.md", "--as", "ann")
    before = {path for path in guarded.folder.rglob("*") if ".git" not in path.parts}

    answer = guarded.with_env(LANDLANE_AGENT="ann").run_json("doctor")

    assert enforced(answer, "claude") == [True] * 4
    assert rows_of(answer)["claude"]["found"] == "Claude Code (2.1.325), hooks in place"
    assert {path for path in guarded.folder.rglob("*") if ".git" not in path.parts} == before
    assert guarded.holders() == {"README.md": "ann"}
    assert [one["agent"] for one in guarded.run_json("status")["sessions"]] == ["ann"]
    assert sorted(path.name for path in (guarded.state / "sessions").iterdir()) == ["ann"]
    assert "landlane" not in guarded.git("for-each-ref")
    assert guarded.run_json("misplaced", "list")["strays"] == []


def test_a_client_in_use_that_is_not_set_up_is_reported(shell: Shell, programs: Path) -> None:
    write_fake_client(programs, "claude", NEW_CLAUDE)

    row = rows_of(shell.run_json("doctor"))["clients"]

    assert (row["enforced"], row["found"]) == (False, "in use here, but not set up: Claude Code")
    assert "landlane init" in row["hint"]


def test_without_any_client_the_doctor_says_so(shell: Shell) -> None:
    assert rows_of(shell.run_json("doctor"))["clients"]["found"] == "no coding client is set up here"


def test_a_client_that_is_not_installed_is_reported(guarded: Shell, programs: Path) -> None:
    (programs / "claude").unlink()

    row = rows_of(guarded.run_json("doctor"))["claude"]

    assert (row["enforced"], row["found"]) == (False, "Claude Code (not on the search path), hooks in place")


@pytest.mark.parametrize("text", [None, "{}", "{", '{"hooks": {}}'])
def test_missing_hooks_are_reported(guarded: Shell, text: str | None) -> None:
    path = guarded.folder / CLAUDE
    path.unlink()
    if text is not None:
        path.write_text(text, encoding="utf-8")

    rows = rows_of(guarded.run_json("doctor", exit=1))

    assert [rows[f"claude: {way}"]["enforced"] for way in WAYS[:3]] == [False] * 3
    assert rows["claude: edits"]["hint"]
    if text != "{":
        guarded.run_json("init", "--yes")
        assert enforced(guarded.run_json("doctor"), "claude") == [True] * 4


def test_disabled_hooks_are_reported(guarded: Shell) -> None:
    change_settings(guarded, lambda settings: settings.update(disableAllHooks=True))

    row = rows_of(guarded.run_json("doctor", exit=1))["claude: edits"]

    assert (row["enforced"], row["found"]) == (False, "Claude Code's hooks are switched off")
    assert "disableAllHooks" in row["hint"]


def test_an_old_release_that_fails_open_is_reported(guarded: Shell, programs: Path) -> None:
    write_fake_client(programs, "claude", "2.1.197 (Claude Code)")

    answer = guarded.run_json("doctor")

    assert enforced(answer, "claude") == [True, True, True, False]
    assert "2.1.197" in rows_of(answer)["claude: fails closed"]["found"]
    assert "update Claude Code" in rows_of(answer)["claude: fails closed"]["hint"]


@pytest.mark.parametrize("gone", [sys.executable, "hook_entry/client_hook.py"])
def test_a_missing_interpreter_or_package_refuses_everything_and_is_reported(
    guarded: Shell, gone: str
) -> None:
    path = guarded.folder / CLAUDE
    replace_in(
        path,
        gone,
        gone.replace("python", "nopython") if gone.startswith("/") else "gone/hook_entry/client_hook.py",
    )

    rows = rows_of(guarded.run_json("doctor", exit=1))

    assert rows["claude"]["enforced"] is False
    assert CLAUDE in rows["claude"]["found"]
    assert rows["claude: edits"]["found"].startswith("everything is refused")
    assert guarded.run_json("init", "--yes")["changed"] == [str(path)]
    assert enforced(guarded.run_json("doctor"), "claude") == [True] * 4


def test_a_hook_without_its_guard_is_reported(guarded: Shell) -> None:
    def weaken(settings: Answer) -> None:
        for group in settings["hooks"]["PreToolUse"]:
            for hook in group["hooks"]:
                hook["command"] = hook["command"].partition(" || ")[0]

    change_settings(guarded, weaken)

    answer = guarded.run_json("doctor", exit=1)

    assert enforced(answer, "claude") == [True, True, True, False]
    assert "missing interpreter" in rows_of(answer)["claude: fails closed"]["found"]


def test_a_hook_that_allows_everything_is_reported(guarded: Shell) -> None:
    replace_in(guarded.folder / CLAUDE, f"{sys.executable} -I", "/bin/true -I")

    row = rows_of(guarded.run_json("doctor", exit=1))["claude: edits"]

    assert row["enforced"] is False
    assert row["found"].startswith("an edit of a claimed file was not refused: exit 0")


def test_a_watch_policy_is_reported(guarded: Shell) -> None:
    commit_text(guarded.folder, "landlane.toml", "[hooks]\npolicy = 'watch'\n")

    row = rows_of(guarded.run_json("doctor"))["claude: edits"]

    assert (row["enforced"], row["found"]) == (
        False,
        "an edit of a claimed file is only reported: the policy is watch",
    )


def test_a_canary_that_cannot_be_sent_leaves_no_session(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from landlane.app.open import open_repository
    from landlane.doctor.clients import check_clients
    from landlane.doctor.try_client_hooks import CanarySession

    shell.run_json("init", "--yes", "--client", "claude")
    repo = open_repository(str(shell.folder))

    def fail(self: CanarySession, command: str) -> object:
        raise OSError(2, "No such file or directory", command)

    monkeypatch.setattr(CanarySession, "reset", fail)
    rows = {check.name: check for check in check_clients(repo)}
    repo.close()

    assert rows["claude: edits"].found.startswith("cannot be tried")
    assert shell.run_json("status")["sessions"] == []
    assert shell.holders() == {}


CODEX = """#!{python}
import json, os, sys
root = {root!r}
if "--version" in sys.argv:
    print("codex-cli 0.166.0")
for line in sys.stdin if "app-server" in sys.argv else ():
    call = json.loads(line)
    if call.get("id") is None:
        continue
    hooks = json.load(open(root + "/.codex/hooks.json"))["hooks"]
    listed = [
        dict(key=f"{{root}}:{{event}}:{{number}}", currentHash="h", trustStatus="{trust}", enabled=True,
             eventName=event[0].lower() + event[1:], command=group["hooks"][0]["command"])
        for event, groups in hooks.items() for number, group in enumerate(groups)
    ]
    answer = {{"id": call["id"], "result": {{"data": [{{"hooks": listed}}]}}}}
    print(json.dumps(answer, separators=(",", ":")), flush=True)
"""


def put_codex(programs: Path, root: Path, trust: str) -> None:
    path = programs / "codex"
    path.write_text(CODEX.format(python=sys.executable, root=str(root), trust=trust), encoding="utf-8")
    path.chmod(0o755)


def test_hooks_that_codex_does_not_trust_are_reported(
    shell: Shell, programs: Path, sealed_home: Path
) -> None:
    put_codex(programs, shell.folder, "untrusted")
    shell.run_json("init", "--yes", "--no-trust")
    (sealed_home / ".codex").mkdir()
    config = sealed_home / ".codex/config.toml"
    config.write_text(f'[projects."{shell.folder}"]\ntrust_level = "trusted"\n', encoding="utf-8")

    row = rows_of(shell.run_json("doctor", exit=1))["codex: edits"]
    assert row["enforced"] is False
    assert "untrusted" in row["found"]
    assert "landlane init" in row["hint"]
    put_codex(programs, shell.folder, "trusted")
    assert enforced(shell.run_json("doctor"), "codex")[:3] == [True] * 3


def test_asking_codex_for_trust_is_a_step_of_the_plan(
    shell: Shell, programs: Path, sealed_home: Path
) -> None:
    put_codex(programs, shell.folder, "untrusted")
    config = str(sealed_home / ".codex/config.toml")

    assert config in shell.run_json("init", "--dry-run")["plan"]
    assert config not in shell.run_json("init", "--dry-run", "--no-trust")["plan"]
    assert "lets Codex run these hooks" in shell.run_text("init", "--dry-run")


@pytest.mark.parametrize("text", [None, "export const Landlane = async () => ({})\n"])
def test_a_missing_or_broken_plugin_is_reported(shell: Shell, programs: Path, text: str | None) -> None:
    write_fake_client(programs, "opencode", "1.18.33")
    changed = shell.run_json("init", "--yes")["changed"]
    plugin = next(shell.folder / path for path in changed if path.endswith(".js"))
    assert enforced(shell.run_json("doctor"), "opencode")[:3] == [True] * 3

    plugin.unlink()
    if text is not None:
        plugin.write_text(text, encoding="utf-8")

    rows = rows_of(shell.run_json("doctor", exit=1))
    assert rows["opencode: edits"]["enforced"] is False


def test_every_client_passes_after_init_alone(shell: Shell) -> None:
    for name in ("claude", "codex", "gemini", "qwen", "copilot", "opencode", "cursor"):
        shell.run_json("init", "--yes", "--client", name)

    rows = rows_of(shell.run_json("doctor"))

    for name in ("claude", "codex", "gemini", "qwen", "opencode", "cursor"):
        found = [rows[f"{name}: {way}"] for way in WAYS[:3]]
        assert [row["enforced"] for row in found] == [True] * 3, found
    assert shell.run_json("status")["sessions"] == []


def test_a_client_without_a_version_answer_counts_as_installed(guarded: Shell, programs: Path) -> None:
    (programs / "claude").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")

    rows = rows_of(guarded.run_json("doctor"))

    assert rows["claude"]["found"] == "Claude Code (did not answer --version), hooks in place"
    assert [rows[f"claude: {way}"]["enforced"] for way in WAYS] == [True, True, True, False]
    assert "did not answer --version" in rows["claude: fails closed"]["found"]


def test_a_hook_without_its_interpreter_is_reported_to_refuse_everything(guarded: Shell) -> None:
    replace_in(guarded.folder / CLAUDE, sys.executable, "/gone/python")

    ended = guarded.run("doctor")
    rows = rows_of(guarded.run_json("doctor", exit=1))

    assert "reported" not in rows["claude: shell"]["found"]
    assert "everything is refused" in rows["claude: shell"]["found"]
    assert rows["claude: fails closed"]["found"] == (
        "it does: /gone/python does not exist, so everything is refused"
    )
    problems = [line for line in ended.out.splitlines() if line.startswith("✗ claude")]
    assert len(problems) == len(set(problems)) > 0


@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc"])
def test_settings_that_stop_opencode_from_starting_are_reported(
    shell: Shell, programs: Path, name: str
) -> None:
    write_fake_client(programs, "opencode", "1.18.33")
    shell.run_json("init", "--yes")
    (shell.folder / name).write_text('{"model": // mine\n', encoding="utf-8")

    row = rows_of(shell.run_json("doctor"))["opencode: fails closed"]

    assert row["enforced"] is False
    assert row["found"].startswith("opencode does not start here: ")
    assert name in row["hint"]


def test_a_shell_without_our_command_is_a_hint_and_not_a_failure(shell: Shell) -> None:
    row = rows_of(shell.run_json("doctor"))["command"]

    assert row["ok"]
    assert row["enforced"] == row["found"].startswith("a login shell finds it: /")
