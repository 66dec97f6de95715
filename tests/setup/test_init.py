"""Setting a repository up: the plan first, nothing lost, nothing overwritten, and the way back."""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING

import pytest

from landlane.setup.init import carry_out, plan_undo
from tests.support.client_programs import write_fake_client
from tests.support.git import commit_text
from tests.support.processes import fork, wait_for_exit
from tests.support.shell import Shell, fingerprint, run_at_terminal
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


pytestmark = [pytest.mark.acceptance, pytest.mark.usefixtures("programs")]

# Read now: the sealed home of a test takes the variable away.
IS_SOAK = bool(os.environ.get("LANDLANE_EVERY_DAMAGE"))  # `make soak` cuts at every step
SHARED = ("landlane.toml", "RULES.md", "AGENTS.md")


def settings_id(folder: Path) -> str:
    return tomllib.loads((folder / "landlane.toml").read_text(encoding="utf-8"))["repository"]["id"]


def store_id(shell: Shell) -> str:
    return shell.run_json("store", "info")["store"]["repository"]


def test_init_shows_its_plan_then_writes_settings(shell: Shell) -> None:
    ended = shell.run("init", "--yes")

    assert ended.exit == 0
    assert "  create  landlane.toml  settings" in ended.err
    assert ended.out.splitlines()[0] == "✓ created 3 files, changed 1"
    assert settings_id(shell.folder) == store_id(shell)
    assert shell.run_json("doctor")["ok"]


def test_a_dry_run_changes_nothing(shell: Shell) -> None:
    before = fingerprint(shell.folder)

    answer = shell.run_json("init", "--dry-run")

    assert answer["changed"] == []
    assert str(shell.folder / "landlane.toml") in answer["plan"]
    assert fingerprint(shell.folder) == before
    assert not shell.state.exists()


def test_init_twice_changes_nothing_the_second_time(shell: Shell) -> None:
    assert shell.run_json("init", "--yes")["changed"]
    before = fingerprint(shell.folder)

    assert shell.run_json("init", "--yes")["changed"] == []
    assert fingerprint(shell.folder) == before


def test_existing_settings_stay_unchanged(shell: Shell) -> None:
    text = '[claims]\nttl = "10m"  # ours\n'
    commit_text(shell.folder, "landlane.toml", text)

    shell.run_json("init", "--yes")
    shell.run_json("init", "--yes", "--undo")

    assert (shell.folder / "landlane.toml").read_text(encoding="utf-8") == text


def test_invalid_settings_are_reported_before_anything_is_written(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", "[nonsense]\n")

    shell.run_error("SETTINGS_UNKNOWN_KEY", "init")


def test_undo_removes_only_what_init_wrote_and_nobody_changed(shell: Shell) -> None:
    path = shell.folder / "landlane.toml"
    shell.run_json("init", "--yes")
    shell.run_json("claim", "a", "--as", "ann")
    name = store_id(shell)
    assert str(path) in shell.run_json("init", "--yes", "--undo")["changed"]
    assert not path.exists()
    assert (store_id(shell), shell.holders()) == (name, {"a": "ann"})

    shell.run_json("init", "--yes")
    path.write_text(path.read_text(encoding="utf-8") + "\n# mine\n", encoding="utf-8")

    assert str(path) not in shell.run_json("init", "--yes", "--undo")["changed"]
    assert path.exists()
    assert shell.run_json("init", "--undo", "--dry-run")["changed"] == []


def test_claims_made_before_init_survive_it_under_the_same_id(shell: Shell) -> None:
    token = shell.run_json("claim", "a", "--as", "ann")["granted"][0]["token"]
    name = store_id(shell)

    shell.run_json("init", "--yes")

    assert settings_id(shell.folder) == name
    assert shell.run_json("check", "a", "--as", "ann", "--token", str(token))["ok"]
    assert shell.run_json("log", "--verify")["ok"]


def test_a_clone_with_committed_settings_is_the_same_repository(shell: Shell, tmp_path: Path) -> None:
    shell.run_json("init", "--yes")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Settings")
    shell.git("clone", "--quiet", ".", str(tmp_path / "clone"))
    clone = Shell(tmp_path / "clone")

    assert store_id(clone) == store_id(shell)
    assert (
        clone.run_json("store", "info")["store"]["place"] != shell.run_json("store", "info")["store"]["place"]
    )


def test_claims_made_in_a_clone_follow_it_to_an_id_in_the_settings(shell: Shell) -> None:
    token = shell.run_json("claim", "a", "--as", "ann")["granted"][0]["token"]
    settings = '[repository]\nid = "01234567-89ab-4cde-8f01-23456789abcd"\n'

    commit_text(shell.folder, "landlane.toml", settings)
    shell.run_error("REPOSITORY_ELSEWHERE", "claims", exit=1)
    shell.run_json("store", "adopt")

    assert store_id(shell) == "01234567-89ab-4cde-8f01-23456789abcd"
    assert shell.run_json("check", "a", "--as", "ann", "--token", str(token))["ok"]
    assert shell.kinds()[-1] == "repository.adopted"
    assert shell.run_json("log", "--verify")["ok"]
    (shell.folder / "landlane.toml").unlink()
    assert shell.holders() == {"a": "ann"}


def test_a_shallow_clone_works(shell: Shell, tmp_path: Path) -> None:
    shell.git("clone", "--quiet", "--depth", "1", f"file://{shell.folder}", str(tmp_path / "shallow"))
    shallow = Shell(tmp_path / "shallow")

    shallow.run_json("claim", "README.md", "--as", "ann")

    assert shallow.run_json("release", "README.md", "--commit", "HEAD", "--as", "ann")["commit"]
    assert shallow.run_json("who", "README.md")["last_change"]["subject"] == "Begin"


def test_outside_git_init_makes_a_folder_usable(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (tmp_path / "docs").mkdir()
    shell.run_error("NO_REPOSITORY", "claim", "docs/a.md", "--as", "ann", exit=1)

    changed = shell.run_json("init", "--yes")["changed"]
    shell.run_json("claim", "docs/a.md", "--as", "ann")

    assert changed == [*(str(tmp_path / name) for name in SHARED), str(tmp_path / ".landlane")]
    refused = shell.at("docs").run_error("CLAIM_HELD", "claim", "a.md", "--as", "bob", exit=3)
    assert refused["refused"][0]["pattern"] == "docs/a.md"
    assert shell.run_json("who", "docs/a.md")["last_change"] is None
    shell.run_error("UNKNOWN_COMMIT", "release", "docs/a.md", "--commit", "HEAD", "--as", "ann")
    shell.run_error("PATH_OUTSIDE", "claim", "../x", "--as", "ann")
    assert shell.run_json("doctor")["ok"]


def test_claims_from_a_linked_worktree_are_the_same_claims(shell: Shell, tmp_path: Path) -> None:
    shell.git("worktree", "add", "--quiet", "../linked")
    linked = Shell(tmp_path / "linked")
    linked.run_json("claim", "src/api.py", "--as", "ann")

    for word in ("src/api.py", str(tmp_path / "linked" / "src" / "api.py"), str(shell.folder / "src/api.py")):
        answer = shell.run_error("CLAIM_HELD", "claim", word, "--as", "bob", exit=3)
        assert answer["refused"][0]["pattern"] == "src/api.py"
    assert shell.run_json("claims", "--repo", str(tmp_path / "linked"))["claims"][0]["holder"] == "ann"


def test_two_concurrent_first_commands_create_one_repository(shell: Shell) -> None:
    starting = [shell.start("claim", "a", "--as", f"agent{number}", "--json") for number in range(6)]

    ends = [one.end() for one in starting]

    assert sorted(end.exit for end in ends) == [0, 3, 3, 3, 3, 3], ends
    assert shell.kinds().count("repository.begun") == 1
    assert shell.kinds().count("session.joined") == 6


def test_case_is_ignored_where_git_ignores_it(shell: Shell) -> None:
    shell.git("config", "core.ignorecase", "true")
    shell.run_json("claim", "src/Api.py", "--as", "ann")

    answer = shell.run_error("CLAIM_HELD", "claim", "SRC/api.PY", "--as", "bob", exit=3)

    assert answer["refused"][0]["held"] == "src/Api.py"
    shell.run_error("PATH_INSIDE_GIT", "claim", ".GIT/config", "--as", "bob")
    assert shell.run_json("who", "readme.MD")["path"] == "readme.MD"


def test_changing_case_comparison_rewrites_live_claims(shell: Shell) -> None:
    shell.run_json("claim", "src/Api.py", "--as", "ann")
    shell.run_json("claim", "src/api.py", "--as", "bob")
    shell.run_json("release", "src/api.py", "--as", "bob")

    commit_text(shell.folder, "landlane.toml", "[claims]\nignore_case = true\n")
    shell.run_json("store", "adopt")

    shell.run_error("CLAIM_HELD", "claim", "src/api.py", "--as", "bob", exit=3)


@pytest.mark.slow
def test_one_command_protects_a_repository_for_the_clients_on_this_machine(
    shell: Shell, programs: Path
) -> None:
    write_fake_client(programs, "claude", "2.1.325 (Claude Code)")
    write_fake_client(programs, "gemini", "0.61.0")

    answer = shell.run_json("init", "--yes")

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
    rows = {row["name"]: row["enforced"] for row in shell.run_json("doctor")["checks"]}
    assert [rows[f"claude: {way}"] for way in ("edits", "subagents", "shell", "fails closed")] == [True] * 4
    assert rows["gemini: edits"]


def test_clients_can_be_chosen_and_left_out(shell: Shell, programs: Path) -> None:
    write_fake_client(programs, "claude", "2.1.325 (Claude Code)")

    assert shell.run_json("init", "--yes", "--no-clients")["clients"] == []
    assert not (shell.folder / ".claude").exists()
    assert shell.run_json("init", "--yes", "--client", "qwen")["clients"] == ["qwen"]
    assert not (shell.folder / ".claude").exists()
    assert shell.run_json("init", "--yes")["clients"] == ["qwen", "claude"]
    assert (shell.folder / ".claude/settings.local.json").exists()
    shell.run_error("UNKNOWN_CLIENT", "init", "--client", "emacs")


def test_the_plan_shows_what_changes_in_each_file(shell: Shell) -> None:
    (shell.folder / ".gemini").mkdir()
    (shell.folder / ".gemini/settings.json").write_text('{\n  "a": 1 // mine\n}\n', encoding="utf-8")
    (shell.folder / ".qwen").mkdir()
    (shell.folder / ".qwen/settings.json").write_text("{", encoding="utf-8")

    answer = shell.run_json("init", "--dry-run")
    shown = shell.run_text("init", "--dry-run")

    step = next(one for one in answer["steps"] if one["path"].endswith(".gemini/settings.json"))
    assert step["verb"] == "change"
    assert '-  "a": 1 // mine' in step["diff"]
    assert '+  "a": 1, // mine' in step["diff"]
    assert '+  "a": 1, // mine' in shown
    assert [(left["path"], left["why"]) for left in answer["left"]] == [
        (
            str(shell.folder / ".qwen/settings.json"),
            "invalid JSON on line 1: expected a key in double quotes",
        )
    ]
    assert "  skip    .qwen/settings.json" in shown


def test_unprotected_clients_are_named(shell: Shell) -> None:
    (shell.folder / ".qwen").mkdir()
    path = shell.folder / ".qwen/settings.json"
    path.write_text("{", encoding="utf-8")

    ended = shell.run("init", "--yes", "--client", "qwen")

    warning = "! Qwen Code stays unprotected: fix .qwen/settings.json, then run init again"
    assert warning in ended.out.splitlines()
    assert "now check" not in ended.out
    answer = shell.run_json("init", "--yes", "--client", "qwen", "--client", "gemini")
    assert answer["unprotected"] == ["qwen"]
    assert [left["path"] for left in answer["left"]] == [str(path)]
    path.unlink()
    assert shell.run_json("init", "--yes", "--client", "qwen")["unprotected"] == []


def test_undo_says_that_the_state_stays(shell: Shell) -> None:
    shell.run_json("init", "--yes")

    shown = shell.run_text("init", "--yes", "--undo")

    assert "Undo leaves:\n  the state in .git/landlane (1 journal entry)\n" in shown
    assert shown.endswith("next: landlane init --undo --purge\n")
    assert shell.state.is_dir()


@pytest.fixture
def shop(shell: Shell, programs: Path) -> Shell:
    """A project with a test command, one client that can be set up and one whose settings are broken."""
    write_fake_client(programs, "claude", "2.1.325 (Claude Code)")
    (shell.folder / "Makefile").write_text("test:\n\ttrue\n", encoding="utf-8")
    (shell.folder / ".gemini").mkdir()
    (shell.folder / ".gemini/settings.json").write_text("{\n", encoding="utf-8")
    return shell


def masked_place(text: str, shell: Shell) -> str:
    return text.replace(str(shell.folder), "SHOP").rstrip("\n")


@pytest.mark.promise(
    "init.asks-first", "Without a terminal and without --yes, init shows its plan and changes nothing."
)
@pytest.mark.parametrize("more", [(), ("--undo",)])
def test_without_a_terminal_init_needs_yes(shop: Shell, more: tuple[str, ...]) -> None:
    if more:
        shop.run_json("init", "--yes")
    before = fingerprint(shop.folder)

    ended = shop.run("init", *more)
    answer = shop.run_error("NOT_CONFIRMED", "init", *more)

    assert ended.exit == 2
    assert ended.out.startswith(f"Plan for {shop.folder} (nothing has changed yet)\n")
    assert ended.err.splitlines()[-1] == f"hint: apply the plan: landlane init {' '.join((*more, '--yes'))}"
    assert str(shop.folder / "RULES.md") in answer["plan"]
    assert fingerprint(shop.folder) == before


def test_a_person_is_asked_before_anything_changes(shop: Shell) -> None:
    before = fingerprint(shop.folder)
    _, declined = run_at_terminal(shop, "init", typed="n\n", NO_COLOR="1")
    assert declined.endswith("Apply? [Y/n] Nothing was changed.\n")
    assert fingerprint(shop.folder) == before

    code, applied = run_at_terminal(shop, "init", typed="\n", NO_COLOR="1")
    assert code == 0
    check_snapshot("setup/snapshots/init.txt", masked_place(applied, shop))

    (shop.folder / "landlane.toml").write_text("# mine\n", encoding="utf-8")
    shop.git("branch", "landlane/T1-1/work")
    code, undone = run_at_terminal(shop, "init", "--undo", typed="y\nn\n", NO_COLOR="1")
    assert code == 0
    check_snapshot("setup/snapshots/undo.txt", masked_place(undone, shop))
    assert shop.run_text("init", "--undo", "--yes") == f"✓ nothing to undo in {shop.folder}\n"


def test_the_next_step_after_init_can_be_pasted(shop: Shell) -> None:
    (shop.folder / ".gitignore").write_text("CLAUDE.md\n", encoding="utf-8")

    shown = shop.run_text("init", "--yes", "--client", "claude")
    command = next(line for line in shown.splitlines() if line.startswith("next: ")).removeprefix("next: ")

    assert command == "git add landlane.toml RULES.md AGENTS.md && git commit -m 'Set up Landlane'"
    assert shop.sh(command).exit == 0
    assert shop.sh("echo 1 > a && git add a && git commit -m Past").exit == 1


def test_a_clone_of_a_guarded_repository_is_told_that_the_guard_begins(shop: Shell, tmp_path: Path) -> None:
    shop.run_json("init", "--yes", "--no-clients")
    shop.git("add", "--all")
    shop.git("commit", "--quiet", "-m", "Settings")
    shop.git("clone", "--quiet", ".", str(tmp_path / "clone"))

    shown = Shell(tmp_path / "clone").run("init", "--no-clients").out

    assert shown.endswith("\n\nFrom then on main changes only through `landlane land`.\n")


def test_undo_restores_everything(shell: Shell, programs: Path) -> None:
    write_fake_client(programs, "gemini", "0.61.0")
    (shell.folder / "AGENTS.md").write_text("# Mine", encoding="utf-8")
    before = fingerprint(shell.folder)

    shell.run_json("init", "--yes")
    shell.run_json("init", "--yes", "--undo")

    after = {
        name: kept
        for name, kept in fingerprint(shell.folder).items()
        if not name.startswith(".git/landlane/")
    }
    assert after == before
    assert shell.run_json("init", "--yes", "--undo")["changed"] == []


def test_files_of_an_earlier_release_are_undone(shell: Shell) -> None:
    from landlane.ids import digest

    shell.run_json("claim", "a", "--as", "ann")
    text = "[claims]\n"
    commit_text(shell.folder, "landlane.toml", text)
    (shell.state / "init-record").write_text(digest(text), encoding="utf-8")

    assert shell.run_json("init", "--yes", "--undo")["changed"] == [str(shell.folder / "landlane.toml")]
    assert not (shell.state / "init-record").exists()


def test_outside_git_clients_are_set_up_too(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    shell.run_json("init", "--yes", "--client", "claude")

    assert (tmp_path / ".claude/settings.local.json").exists()
    shell.run_json("init", "--yes", "--undo")
    assert [path.name for path in tmp_path.iterdir()] == [".landlane"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worktree", "clone"])
def test_a_workspace_has_the_hooks_and_closes_without_a_rescue(shell: Shell, kind: str) -> None:
    shell.run_json("init", "--yes", "--client", "claude", "--client", "copilot")
    shell.git("add", ".")
    shell.git("commit", "--quiet", "-m", "Set up")
    shell.run_json("task", "add", "one")
    opened = shell.run_json("workspace", "open", "T1", "--kind", kind, "--offline", "--as", "ann")
    place = shell.at(opened["workspace"]["path"])

    hooks = (place.folder / ".claude/settings.local.json").read_bytes()

    assert hooks == (shell.folder / ".claude/settings.local.json").read_bytes()
    assert place.git("status", "--porcelain") == ""
    rows = {row["name"]: row["enforced"] for row in place.run_json("doctor")["checks"]}
    assert [rows[f"claude: {way}"] for way in ("edits", "subagents", "shell")] == [True] * 3
    closed = shell.run_json("workspace", "close", "T1", "--as", "ann")
    assert not closed.get("rescue")
    assert not place.folder.exists()
    assert shell.run_json("init", "--yes", "--undo")["changed"]


def test_init_sets_up_open_workspaces(shell: Shell) -> None:
    shell.run_json("task", "add", "one")
    opened = shell.run_json("workspace", "open", "T1", "--offline", "--as", "ann")

    shell.run_json("init", "--yes", "--client", "claude")

    folder = shell.at(opened["workspace"]["path"]).folder
    assert (folder / ".claude/settings.local.json").exists()
    shell.run_json("init", "--yes", "--undo")
    assert not (folder / ".claude").exists()


def test_the_hook_answers_on_the_command_line(shell: Shell) -> None:
    ended = shell.run("hook", "claude", "PreToolUse", stdin="{")

    assert (ended.exit, ended.out) == (2, "")
    assert "cannot be read" in ended.err
    assert shell.run("hook", "emacs", stdin="{}").exit == 2


@pytest.mark.soak
@pytest.mark.promise(
    "setup.undo-can-be-repeated",
    "An `init --undo` that was killed at any step can be repeated; then everything is as before `init`.",
)
def test_an_undo_that_is_cut_short_can_be_repeated(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")
    config = (shell.folder / ".git" / "config").read_bytes()
    for steps in range(80) if IS_SOAK else (12, 20, 34):
        shell.run_json("init", "--yes", "--no-clients")

        is_through = cut_undo(shell.folder, steps)
        shell.run_json("init", "--undo", "--yes")

        assert (shell.folder / ".git" / "config").read_bytes() == config, steps
        assert [path.name for path in (shell.folder / ".git").glob("landlane-*")] == []
        assert [path.name for path in (shell.folder / ".git").glob("config?*")] == []
        assert shell.git("status", "--porcelain") == ""
        assert shell.run_json("doctor")["ok"], steps
        if is_through:
            break
    assert shell.holders() == {"a": "ann"}


def cut_undo(folder: Path, steps: int) -> bool:
    """Start an undo that dies after so many steps; return whether it got to its end."""

    def undo() -> None:
        left = steps

        def dying(function: Callable[..., object]) -> Callable[..., object]:
            def step(*given: object, **named: object) -> object:
                nonlocal left
                left -= 1
                if left < 0:
                    os._exit(99)
                return function(*given, **named)

            return step

        plan = plan_undo(str(folder))
        for name in ("replace", "link", "unlink", "rename", "rmdir"):
            setattr(os, name, dying(getattr(os, name)))
        carry_out(plan)

    return wait_for_exit(fork(undo)) != 99
