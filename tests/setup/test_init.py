"""Setting a repository up: the plan first, nothing lost, nothing overwritten, and the way back."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.support.client_programs import put_client
from tests.support.shell import Shell, fingerprint

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("programs")]

SHARED = ("landlane.toml", "RULES.md", "AGENTS.md")


def settings_id(folder: Path) -> str:
    return tomllib.loads((folder / "landlane.toml").read_text(encoding="utf-8"))["repository"]["id"]


def store_id(shell: Shell) -> str:
    return shell.ask("store", "info")["store"]["repository"]


def test_init_shows_its_plan_then_writes_settings(shell: Shell) -> None:
    ended = shell.run("init")

    path = shell.folder / "landlane.toml"
    assert ended.exit == 0
    assert f"create  {path}" in ended.err
    assert f"changed {path}" in ended.out.splitlines()
    assert settings_id(shell.folder) == store_id(shell)
    assert shell.ask("doctor")["ok"]


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    before = fingerprint(shell.folder)

    answer = shell.ask("init", "--dry-run")

    assert answer["changed"] == []
    assert str(shell.folder / "landlane.toml") in answer["plan"]
    assert fingerprint(shell.folder) == before
    assert not shell.state.exists()


def test_init_twice_changes_nothing_the_second_time(shell: Shell) -> None:
    assert shell.ask("init")["changed"]
    before = fingerprint(shell.folder)

    assert shell.ask("init")["changed"] == []
    assert fingerprint(shell.folder) == before


def test_settings_that_are_there_stay_as_they_are(shell: Shell) -> None:
    text = '[claims]\nttl = "10m"  # ours\n'
    (shell.folder / "landlane.toml").write_text(text, encoding="utf-8")

    shell.ask("init")
    shell.ask("init", "--undo")

    assert (shell.folder / "landlane.toml").read_text(encoding="utf-8") == text


def test_settings_that_cannot_be_understood_are_told_before_anything_is_written(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text("[nonsense]\n", encoding="utf-8")

    shell.refuse("SETTINGS_UNKNOWN_KEY", "init")


def test_undo_removes_only_what_init_wrote_and_nobody_changed(shell: Shell) -> None:
    path = shell.folder / "landlane.toml"
    shell.ask("init")
    shell.ask("claim", "a", "--as", "ann")
    name = store_id(shell)
    assert str(path) in shell.ask("init", "--undo")["changed"]
    assert not path.exists()
    assert (store_id(shell), shell.holders()) == (name, {"a": "ann"})

    shell.ask("init")
    path.write_text(path.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")

    assert str(path) not in shell.ask("init", "--undo")["changed"]
    assert path.exists()
    assert shell.ask("init", "--undo", "--dry-run")["changed"] == []


def test_claims_made_before_init_survive_it_under_the_same_id(shell: Shell) -> None:
    token = shell.ask("claim", "a", "--as", "ann")["granted"][0]["token"]
    name = store_id(shell)

    shell.ask("init")

    assert settings_id(shell.folder) == name
    assert shell.ask("check", "a", "--as", "ann", "--token", str(token))["ok"]
    assert shell.ask("journal", "--verify")["ok"]


def test_a_clone_with_committed_settings_is_the_same_repository(shell: Shell, tmp_path: Path) -> None:
    shell.ask("init")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Settings")
    shell.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Shell(tmp_path / "clone")

    assert store_id(clone) == store_id(shell)
    assert clone.ask("store", "info")["store"]["place"] != shell.ask("store", "info")["store"]["place"]


def test_claims_made_in_a_clone_follow_it_when_the_settings_name_it_anew(shell: Shell) -> None:
    token = shell.ask("claim", "a", "--as", "ann")["granted"][0]["token"]
    settings = '[repository]\nid = "01234567-89ab-4cde-8f01-23456789abcd"\n'

    (shell.folder / "landlane.toml").write_text(settings, encoding="utf-8")

    assert store_id(shell) == "01234567-89ab-4cde-8f01-23456789abcd"
    assert shell.ask("check", "a", "--as", "ann", "--token", str(token))["ok"]
    assert shell.kinds()[-1] == "repository.adopted"
    assert shell.ask("journal", "--verify")["ok"]
    (shell.folder / "landlane.toml").unlink()
    assert shell.holders() == {"a": "ann"}


def test_a_shallow_clone_works(shell: Shell, tmp_path: Path) -> None:
    shell.git("clone", "--quiet", "--depth", "1", f"file://{shell.folder}", str(tmp_path / "shallow"))
    shallow = Shell(tmp_path / "shallow")

    shallow.ask("claim", "README.md", "--as", "ann")

    assert shallow.ask("release", "README.md", "--commit", "HEAD", "--as", "ann")["commit"]
    assert shallow.ask("who", "README.md")["last_change"]["subject"] == "Begin"


def test_outside_git_init_makes_a_folder_usable(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "docs").mkdir()
    shell.refuse("NO_REPOSITORY", "claim", "docs/a.md", "--as", "ann", exit=1)

    changed = shell.ask("init")["changed"]
    shell.ask("claim", "docs/a.md", "--as", "ann")

    assert changed == [str(tmp_path / ".landlane"), *(str(tmp_path / name) for name in SHARED)]
    refused = shell.at("docs").refuse("CLAIM_HELD", "claim", "a.md", "--as", "bob", exit=3)
    assert refused["refused"][0]["pattern"] == "docs/a.md"
    assert shell.ask("who", "docs/a.md")["last_change"] is None
    shell.refuse("UNKNOWN_COMMIT", "release", "docs/a.md", "--commit", "HEAD", "--as", "ann")
    shell.refuse("PATH_OUTSIDE", "claim", "../x", "--as", "ann")
    assert shell.ask("doctor")["ok"]


def test_claims_from_a_linked_worktree_are_the_same_claims(shell: Shell, tmp_path: Path) -> None:
    shell.git("worktree", "add", "--quiet", "../linked")
    linked = Shell(tmp_path / "linked")
    linked.ask("claim", "src/api.py", "--as", "ann")

    for word in ("src/api.py", str(tmp_path / "linked" / "src" / "api.py"), str(shell.folder / "src/api.py")):
        answer = shell.refuse("CLAIM_HELD", "claim", word, "--as", "bob", exit=3)
        assert answer["refused"][0]["pattern"] == "src/api.py"
    assert shell.ask("claims", "--repo", str(tmp_path / "linked"))["claims"][0]["holder"] == "ann"


def test_two_first_commands_at_once_found_one_repository(shell: Shell) -> None:
    starting = [shell.start("claim", "a", "--as", f"agent{number}", "--json") for number in range(6)]

    ends = [one.end() for one in starting]

    assert sorted(end.exit for end in ends) == [0, 3, 3, 3, 3, 3], ends
    assert shell.kinds().count("repository.begun") == 1
    assert shell.kinds().count("session.joined") == 6


def test_case_is_ignored_where_git_ignores_it(shell: Shell) -> None:
    shell.git("config", "core.ignorecase", "true")
    shell.ask("claim", "src/Api.py", "--as", "ann")

    answer = shell.refuse("CLAIM_HELD", "claim", "SRC/api.PY", "--as", "bob", exit=3)

    assert answer["refused"][0]["held"] == "src/Api.py"
    shell.refuse("PATH_INSIDE_GIT", "claim", ".GIT/config", "--as", "bob")
    assert shell.ask("who", "readme.MD")["path"] == "readme.MD"


def test_a_changed_mind_about_case_rewrites_what_is_held(shell: Shell) -> None:
    shell.ask("claim", "src/Api.py", "--as", "ann")
    shell.ask("claim", "src/api.py", "--as", "bob")
    shell.ask("release", "src/api.py", "--as", "bob")

    (shell.folder / "landlane.toml").write_text("[claims]\nignore_case = true\n", encoding="utf-8")

    shell.refuse("CLAIM_HELD", "claim", "src/api.py", "--as", "bob", exit=3)


@pytest.mark.slow
def test_one_command_protects_a_repository_for_the_clients_on_this_machine(
    shell: Shell, programs: Path
) -> None:
    put_client(programs, "claude", "2.1.325 (Claude Code)")
    put_client(programs, "gemini", "0.61.0")

    answer = shell.ask("init", "--yes")

    assert answer["clients"] == ["claude", "gemini"]
    names = {path.removeprefix(f"{shell.folder}/") for path in answer["changed"]}
    assert names >= {
        *SHARED,
        "CLAUDE.md",
        "GEMINI.md",
        ".claude/settings.local.json",
        ".gemini/settings.json",
    }
    assert (shell.folder / "CLAUDE.md").read_text(encoding="utf-8") == "@AGENTS.md\n"
    assert shell.git("status", "--porcelain").split() == [
        *("??", "AGENTS.md", "??", "CLAUDE.md", "??", "GEMINI.md", "??", "RULES.md", "??", "landlane.toml")
    ]
    rows = {row["name"]: row["enforced"] for row in shell.ask("doctor")["checks"]}
    assert [rows[f"claude: {way}"] for way in ("edits", "subagents", "shell", "fails closed")] == [True] * 4
    assert rows["gemini: edits"]


def test_clients_can_be_chosen_and_left_out(shell: Shell, programs: Path) -> None:
    put_client(programs, "claude", "2.1.325 (Claude Code)")

    assert shell.ask("init", "--no-clients")["clients"] == []
    assert not (shell.folder / ".claude").exists()
    assert shell.ask("init", "--client", "qwen")["clients"] == ["qwen"]
    assert not (shell.folder / ".claude").exists()
    assert shell.ask("init")["clients"] == ["qwen", "claude"]
    assert (shell.folder / ".claude/settings.local.json").exists()
    shell.refuse("UNKNOWN_CLIENT", "init", "--client", "emacs")


def test_the_plan_shows_what_changes_in_each_file(shell: Shell) -> None:
    (shell.folder / ".gemini").mkdir()
    (shell.folder / ".gemini/settings.json").write_text('{\n  "a": 1 // mine\n}\n', encoding="utf-8")
    (shell.folder / ".qwen").mkdir()
    (shell.folder / ".qwen/settings.json").write_text("{", encoding="utf-8")

    answer = shell.ask("init", "--dry-run")
    told = shell.run("init", "--dry-run").err

    step = next(one for one in answer["steps"] if one["path"].endswith(".gemini/settings.json"))
    assert step["verb"] == "change"
    assert '-  "a": 1 // mine' in step["diff"]
    assert '+  "a": 1, // mine' in step["diff"]
    assert '+  "a": 1, // mine' in told
    assert [(left["path"], left["why"]) for left in answer["left"]] == [
        (
            str(shell.folder / ".qwen/settings.json"),
            "it cannot be read as JSON, line 1: expected a key in double quotes",
        )
    ]
    assert "leave   " in told


def test_clients_that_stay_unprotected_are_the_last_word(shell: Shell) -> None:
    (shell.folder / ".qwen").mkdir()
    path = shell.folder / ".qwen/settings.json"
    path.write_text("{", encoding="utf-8")

    ended = shell.run("init", "--client", "qwen")

    assert ended.out.splitlines()[-1].startswith(f"NOT protected: Qwen Code ({path}: it cannot be read")
    assert "doctor" not in ended.err
    answer = shell.ask("init", "--client", "qwen", "--client", "gemini")
    assert answer["unprotected"] == ["qwen"]
    assert [left["path"] for left in answer["left"]] == [str(path)]
    path.unlink()
    assert shell.ask("init", "--client", "qwen")["unprotected"] == []


def test_undo_says_that_the_state_stays(shell: Shell) -> None:
    shell.ask("init")

    told = shell.run("init", "--undo").err

    assert f"rm -r {shell.state}" in told
    assert shell.state.is_dir()


def test_undo_brings_everything_back(shell: Shell, programs: Path) -> None:
    put_client(programs, "gemini", "0.61.0")
    (shell.folder / "AGENTS.md").write_text("# Mine", encoding="utf-8")
    before = fingerprint(shell.folder)

    shell.ask("init")
    shell.ask("init", "--undo")

    after = {
        name: kept
        for name, kept in fingerprint(shell.folder).items()
        if not name.startswith(".git/landlane/")
    }
    assert after == before
    assert shell.ask("init", "--undo")["changed"] == []


def test_what_an_earlier_release_wrote_is_undone_too(shell: Shell) -> None:
    from landlane.ids import digest

    shell.ask("claim", "a", "--as", "ann")
    text = "[claims]\n"
    (shell.folder / "landlane.toml").write_text(text, encoding="utf-8")
    (shell.state / "init-record").write_text(digest(text), encoding="utf-8")

    assert shell.ask("init", "--undo")["changed"] == [str(shell.folder / "landlane.toml")]
    assert not (shell.state / "init-record").exists()


def test_outside_git_clients_are_set_up_too(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    shell.ask("init", "--client", "claude")

    assert (tmp_path / ".claude/settings.local.json").exists()
    shell.ask("init", "--undo")
    assert [path.name for path in tmp_path.iterdir()] == [".landlane"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_a_workspace_has_the_hooks_and_closes_without_a_rescue(shell: Shell, kind: str) -> None:
    shell.ask("init", "--client", "claude", "--client", "copilot")
    shell.git("add", ".")
    shell.git("commit", "--quiet", "-m", "Set up")
    shell.ask("task", "add", "one")
    opened = shell.ask("workspace", "open", "T1", "--kind", kind, "--offline", "--as", "ann")
    place = shell.at(opened["workspace"]["path"])

    hooks = (place.folder / ".claude/settings.local.json").read_bytes()

    assert hooks == (shell.folder / ".claude/settings.local.json").read_bytes()
    assert place.git("status", "--porcelain") == ""
    rows = {row["name"]: row["enforced"] for row in place.ask("doctor")["checks"]}
    assert [rows[f"claude: {way}"] for way in ("edits", "subagents", "shell")] == [True] * 3
    closed = shell.ask("workspace", "close", "T1", "--as", "ann")
    assert not closed.get("rescue")
    assert not place.folder.exists()
    assert shell.ask("init", "--undo")["changed"]


def test_workspaces_that_are_open_are_equipped_by_init(shell: Shell) -> None:
    shell.ask("task", "add", "one")
    opened = shell.ask("workspace", "open", "T1", "--offline", "--as", "ann")

    shell.ask("init", "--client", "claude")

    folder = shell.at(opened["workspace"]["path"]).folder
    assert (folder / ".claude/settings.local.json").exists()
    shell.ask("init", "--undo")
    assert not (folder / ".claude").exists()


def test_the_hook_answers_on_the_command_line(shell: Shell) -> None:
    ended = shell.run("hook", "claude", "PreToolUse", stdin="{")

    assert (ended.exit, ended.out) == (2, "")
    assert "cannot be read" in ended.err
    assert shell.run("hook", "emacs", stdin="{}").exit == 2
