"""Installing into people's settings: nothing of theirs is lost, and all can be taken back byte for byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.app.open import open_repository
from landlane.clients import setup_files as commands
from landlane.clients.model import HOOK_CLIENTS
from landlane.clients.registry import setup_of
from landlane.errors import LandlaneError
from landlane.managed_files.client_files import equip
from landlane.managed_files.json_entries import values_of
from landlane.managed_files.manifest import load_record
from landlane.setup.init import InitOptions, carry_out, plan_init, plan_undo
from landlane.testing.repositories import git
from tests.support.client_programs import make_minimal_path

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

CLAUDE, CODEX = ".claude/settings.local.json", ".codex/hooks.json"
GEMINI, QWEN = ".gemini/settings.json", ".qwen/settings.json"
CURSOR = ".cursor/hooks.json"
ELSEWHERE = "/opt/elsewhere/python"

# Elaborate settings as people have them: comments, odd layout, hooks of their own for the same events.
HOOKED = """{
\t"permissions": {"allow": ["Bash(ls)"]},
\t"hooks": {
\t\t"PreToolUse": [
\t\t\t{
\t\t\t\t"matcher": "Edit",
\t\t\t\t"hooks": [{"type": "command", "command": "./lint.sh ünï"}]
\t\t\t}
\t\t],
\t\t"Stop": []
\t}
}"""
COMMENTED = """// mine
{
  "ui": { "theme": "Dark" }, // night
  /* more */
  "hooks": {
    "BeforeTool": [
      { "matcher": "replace", "hooks": [{ "type": "command", "command": "x" }] }
    ]
  }
}
"""
SPREAD = """{
   "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command",
      "command": "mine"}]}]}
}


"""
NESTED = '{\n    "mcpServers": {\n        "a": {"command": "npx", "args": ["-y", "a"]}\n    }\n}'
ELABORATE: list[tuple[str, str, str]] = [
    ("claude", CLAUDE, "{}"),
    ("claude", CLAUDE, ""),
    ("claude", CLAUDE, '{"permissions":{"allow":["Bash(npm:*)"]}}'),
    ("claude", CLAUDE, HOOKED),
    ("claude", CLAUDE, '\ufeff{\r\n  "model": "opus",\r\n  "hooks": { "SessionStart": [] }\r\n}\r\n'),
    ("codex", CODEX, SPREAD),
    ("gemini", GEMINI, COMMENTED),
    ("qwen", QWEN, COMMENTED.replace("\n", "\r\n")),
    ("gemini", GEMINI, NESTED),
    ("qwen", QWEN, '{ "tools": { "approvalMode": "auto-edit" },\n  "hooks": {} } // end\n'),
    ("cursor", CURSOR, '{"version": 1, "hooks": {"preToolUse": [{"command": "./mine.sh"}]}}\n'),
]


@pytest.fixture
def home(sealed_home: Path) -> Path:
    return sealed_home


@pytest.fixture(autouse=True)
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever clients this machine has, the tests choose theirs."""
    monkeypatch.setenv("PATH", str(make_minimal_path(tmp_path / "bin")))


def install(root: Path, *clients: str, **chosen: Any) -> list[str]:
    return list(carry_out(plan_init(str(root), InitOptions(clients=clients, **chosen))).changed)


def undo(root: Path) -> list[str]:
    return list(carry_out(plan_undo(str(root))).changed)


def picture(*roots: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its mode, and every folder, without what is the state's and git's own business."""
    found: dict[str, tuple[int, bytes]] = {}
    for root in roots:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if name.startswith(".git/") and name != ".git/info/exclude":
                continue
            is_file = path.is_file()
            found[f"{root.name}/{name}"] = (path.lstat().st_mode, path.read_bytes() if is_file else b"")
    return found


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("client", "name", "text"), ELABORATE)
def test_undo_restores_the_state_before_init(
    repository: Path, home: Path, client: str, name: str, text: str
) -> None:
    path = write(repository, name, text)
    path.chmod(0o640)
    write(repository, "AGENTS.md", "# Agents\r\n\r\nBe kind.")
    write(repository, "CLAUDE.md", "# Claude\n\nSee the docs.\n")
    before = picture(repository, home)

    changed = install(repository, client)

    assert str(path) in changed
    hooks = path.read_text(encoding="utf-8-sig")
    assert "hook_entry/client_hook.py" in hooks
    assert letters_of(text) in (letters_of(hooks), "") or is_within(text, hooks)
    after = picture(repository, home)
    assert install(repository, client) == []
    assert picture(repository, home) == after
    undo(repository)
    assert picture(repository, home) == before


def letters_of(text: str) -> str:
    return "".join(text.split())


def is_within(text: str, found: str) -> bool:
    """Whether every letter of a text is still there, in order."""
    letters = iter(letters_of(found))
    return all(letter in letters for letter in letters_of(text.removeprefix("\ufeff")))


def test_all_clients_can_be_set_up_and_removed_together(repository: Path, home: Path) -> None:
    before = picture(repository, home)

    changed = install(repository, *HOOK_CLIENTS)

    assert {Path(path).name for path in changed} >= {
        "landlane.toml",
        "RULES.md",
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
    }
    assert git(repository, "status", "--porcelain").splitlines() == [
        "?? AGENTS.md", "?? CLAUDE.md", "?? GEMINI.md", "?? RULES.md", "?? landlane.toml",
    ]  # fmt: skip
    assert load_record(str(repository / ".git/landlane")).clients == HOOK_CLIENTS
    undo(repository)
    assert picture(repository, home) == before


@pytest.mark.slow
@pytest.mark.parametrize(("client", "name", "text"), ELABORATE)
def test_an_upgrade_replaces_our_entries_in_place(
    repository: Path, monkeypatch: pytest.MonkeyPatch, client: str, name: str, text: str
) -> None:
    path = write(repository, name, text)
    install(repository, client)
    once = path.read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(commands.sys, "executable", ELSEWHERE)
        assert str(path) in install(repository, client)

    assert path.read_text(encoding="utf-8") == once.replace(sys.executable, ELSEWHERE)
    undo(repository)
    assert path.read_bytes() == text.encode()


@pytest.mark.slow
@pytest.mark.parametrize(("client", "name", "text"), ELABORATE)
def test_undo_keeps_changes_made_after_init(repository: Path, client: str, name: str, text: str) -> None:
    path = write(repository, name, text)
    install(repository, client)
    found = path.read_text(encoding="utf-8")
    opening = found.index("{")
    path.write_text(found[: opening + 1] + '"added": "later", ' + found[opening + 1 :], encoding="utf-8")

    undo(repository)

    left = path.read_text(encoding="utf-8")
    was = values_of(text) if text.strip() else {}
    assert "client_hook.py" not in left
    assert values_of(left) == {"added": "later", **was}


def test_a_file_that_was_deleted_since_is_written_again(repository: Path, home: Path) -> None:
    before = picture(repository, home)
    install(repository, "claude")
    (repository / CLAUDE).unlink()

    assert install(repository, "claude") == [str(repository / CLAUDE)]

    undo(repository)
    assert picture(repository, home) == before


def test_texts_that_were_changed_since_lose_only_our_part(repository: Path) -> None:
    agents = write(repository, "AGENTS.md", "# Mine\n")
    install(repository, "claude")
    agents.write_text(agents.read_text(encoding="utf-8") + "\nAdded.\n", encoding="utf-8")
    claude = repository / "CLAUDE.md"
    claude.write_text("Mine.\n\n" + claude.read_text(encoding="utf-8"), encoding="utf-8")
    rules = repository / "RULES.md"
    rules.write_text("# Ours alone\n", encoding="utf-8")

    plan = plan_undo(str(repository))
    undo(repository)

    assert agents.read_text(encoding="utf-8") == "# Mine\n\nAdded.\n"
    assert claude.read_text(encoding="utf-8") == "Mine.\n"
    assert rules.read_text(encoding="utf-8") == "# Ours alone\n"
    assert [left.path for left in plan.changes.skipped] == [str(rules)]
    assert plan_undo(str(repository)).is_nothing


def test_a_link_to_the_instructions_needs_no_import(repository: Path) -> None:
    (repository / "CLAUDE.md").symlink_to("AGENTS.md")

    install(repository, "claude")

    assert (repository / "CLAUDE.md").is_symlink()
    assert "@AGENTS.md" not in (repository / "AGENTS.md").read_text(encoding="utf-8")


def test_an_import_that_is_there_is_enough(repository: Path) -> None:
    path = write(repository, "CLAUDE.md", "Read @./AGENTS.md first.\n")

    assert str(path) not in install(repository, "claude")


def test_a_settings_file_behind_a_link_is_written_where_it_lies(repository: Path, tmp_path: Path) -> None:
    target = write(tmp_path, "dotfiles/claude.json", '{"model": "opus"}')
    link = repository / CLAUDE
    link.parent.mkdir()
    link.symlink_to(target)

    install(repository, "claude")

    assert link.is_symlink()
    assert "client_hook.py" in target.read_text(encoding="utf-8")
    undo(repository)
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == '{"model": "opus"}'


@pytest.mark.parametrize("target", ["nowhere.json", "deep/er/nowhere.json"])
def test_a_dangling_link_is_restored_as_it_was(repository: Path, home: Path, target: str) -> None:
    link = repository / CLAUDE
    link.parent.mkdir()
    link.symlink_to(target)
    before = picture(repository, home)

    install(repository, "claude")
    assert "client_hook.py" in (link.parent / target).read_text(encoding="utf-8")
    undo(repository)

    assert link.is_symlink()
    assert str(link.readlink()) == target
    assert picture(repository, home) == before


def test_in_a_linked_worktree_the_shared_files_are_its_branchs_and_the_hooks_are_everywhere(
    repository: Path, home: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(repository, "worktree", "add", "--quiet", str(linked))
    before = picture(repository, linked, home)

    plan = plan_init(str(linked), InitOptions(clients=("claude", "codex")))
    carry_out(plan)

    whys = {line.path: line.why for line in plan.lines}
    assert "once this branch has landed" in whys[str(linked / "RULES.md")]
    for name in (CLAUDE, CODEX):  # these clients read in a linked worktree what stands in the main checkout
        assert (repository / name).exists()
        assert (linked / name).exists()
    assert not (repository / "RULES.md").exists()
    assert git(repository, "status", "--porcelain") == ""
    undo(linked)
    assert picture(repository, linked, home) == before


@pytest.mark.parametrize(
    ("client", "name", "text", "why"),
    [
        ("claude", CLAUDE, '{"a": 1 // mine\n}', "Claude Code cannot read it: a comment on line 1"),
        ("claude", CLAUDE, '{"a": 1,\n}', "a comma behind the last entry on line 1"),
        ("codex", CODEX, '\ufeff{"hooks": {}}', "a byte order mark on line 1"),
        ("codex", CODEX, '{\n"hooks": {} /* x */}', "a comment on line 2"),
        ("gemini", GEMINI, "\ufeff{}", "a byte order mark"),
        ("gemini", GEMINI, '{"a": [1,]}', "a comma behind the last entry"),
        ("qwen", QWEN, '{"a": {},}', "a comma behind the last entry"),
    ],
)
def test_a_file_that_its_client_cannot_read_is_left_alone(
    repository: Path, client: str, name: str, text: str, why: str
) -> None:
    path = write(repository, name, text)

    plan = plan_init(str(repository), InitOptions(clients=(client,)))
    carry_out(plan)

    assert [left.path for left in plan.changes.skipped] == [str(path)]
    assert why in plan.changes.skipped[0].why
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("text", ['{"hooks": ', '{"hooks": []}', "\ufffe\x00", '{"a": 1, "a": 2}'])
def test_an_unreadable_file_is_left_alone_and_the_others_are_written(repository: Path, text: str) -> None:
    path = write(repository, CLAUDE, text)

    plan = plan_init(str(repository), InitOptions(clients=("claude", "gemini")))
    changed = carry_out(plan).changed

    assert [left.path for left in plan.changes.skipped] == [str(path)]
    assert path.read_bytes() == text.encode()
    assert str(repository / GEMINI) in changed


def test_a_folder_in_the_place_of_settings_is_left_alone(repository: Path) -> None:
    (repository / CLAUDE).mkdir(parents=True)

    plan = plan_init(str(repository), InitOptions(clients=("claude",)))

    assert [(left.path, left.why) for left in plan.changes.skipped] == [
        (str(repository / CLAUDE), "Is a directory")
    ]
    carry_out(plan)


@pytest.mark.parametrize("client", ["copilot", "opencode"])
def test_a_file_of_our_name_that_is_not_ours_stays(repository: Path, client: str) -> None:
    wanted = setup_of(client).wanted_files(lambda _word, _is_guard: "x")[0]
    path = write(repository, wanted.path, "// mine\n")

    plan = plan_init(str(repository), InitOptions(clients=(client,)))
    carry_out(plan)

    assert [left.path for left in plan.changes.skipped] == [str(path)]
    assert path.read_text(encoding="utf-8") == "// mine\n"


@pytest.mark.parametrize("name", [GEMINI, "AGENTS.md"])
def test_a_read_only_file_stops_everything_before_it_begins(repository: Path, home: Path, name: str) -> None:
    write(repository, name, "{}").chmod(0o444)
    before = picture(repository, home)

    with pytest.raises(LandlaneError, match="read-only") as refused:
        install(repository, "claude", "gemini")

    assert refused.value.code == "FILE_REFUSED"
    assert picture(repository, home) == before


def test_a_failure_half_way_puts_everything_back(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository, GEMINI, '{"a": 1}')
    before = picture(repository, home)
    real, written = os.replace, []

    def full(source: str, target: str) -> None:
        if target.endswith("settings.local.json"):
            raise OSError(28, "No space left on device")
        written.append(target)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(LandlaneError, match="No space left"):
            install(repository, "gemini", "claude")

    assert str(repository / GEMINI) in written
    assert picture(repository, home) == before
    assert load_record(str(repository / ".git/landlane")).entries == ()


STEPS = 12
CRASHING = """
import os, sys
from landlane.setup.init import InitOptions, carry_out, plan_init, plan_undo
left = int(sys.argv[2])
def step(name):
    global left
    left -= 1
    if left == 0:
        os._exit(9)
root = sys.argv[1]
chosen = InitOptions(clients=("claude", "gemini"))
carry_out(plan_undo(root) if sys.argv[3] == "undo" else plan_init(root, chosen), step)
"""


def crash(root: Path, at: int, what: str) -> bool:
    """Run init or its undoing and kill it after so many steps; tells whether it came that far."""
    ended = subprocess.run([sys.executable, "-c", CRASHING, str(root), str(at), what], timeout=60)
    assert ended.returncode in (0, 9)
    return ended.returncode == 9


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, STEPS))
def test_a_crash_anywhere_can_be_undone_and_finished(repository: Path, home: Path, at: int) -> None:
    write(repository, GEMINI, '{"a": 1} // mine')
    write(repository, "AGENTS.md", "# Mine\n")
    before = picture(repository, home)

    was_cut_off = crash(repository, at, "init")
    undo(repository)
    assert picture(repository, home) == before

    crash(repository, at, "init")
    install(repository, "claude", "gemini")
    whole = picture(repository, home)
    assert install(repository, "claude", "gemini") == []
    crash(repository, at, "undo")
    undo(repository)
    assert picture(repository, home) == before
    assert was_cut_off == (at < STEPS - 1)
    install(repository, "claude", "gemini")
    assert picture(repository, home) == whole


def test_a_crash_in_an_upgrade_still_leads_back_to_the_first_original(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(repository, GEMINI, '{"a": 1} // mine')
    install(repository, "claude", "gemini")
    monkeypatch.setattr(commands.sys, "executable", ELSEWHERE)

    def stop(name: str) -> None:
        if name == "recorded":
            os._exit(9)

    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        carry_out(plan_init(str(repository), InitOptions(clients=("claude", "gemini"))), stop)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    undo(repository)

    assert path.read_text(encoding="utf-8") == '{"a": 1} // mine'
    assert not (repository / CLAUDE).exists()


def test_a_file_that_a_crash_left_half_written_goes_with_the_rest(repository: Path) -> None:
    install(repository, "claude")
    scratch = write(repository, f"{CLAUDE}.landlane-new", "{")

    undo(repository)

    assert not scratch.parent.exists()


@pytest.mark.slow
def test_concurrent_inits_have_one_result(repository: Path) -> None:
    starting = [
        subprocess.Popen([sys.executable, "-c", CRASHING, str(repository), "99", "init"]) for _ in range(4)
    ]

    assert [one.wait(timeout=90) for one in starting] == [0, 0, 0, 0]

    hooks = json.loads((repository / GEMINI).read_text(encoding="utf-8"))["hooks"]
    wanted = (
        setup_of("gemini")
        .wanted_files(lambda _word, _is_guard: "landlane/hook_entry/client_hook.py")[0]
        .content["hooks"]
    )
    assert {event: len(groups) for event, groups in hooks.items()} == {
        event: len(groups) for event, groups in wanted.items()
    }
    undo(repository)
    assert git(repository, "status", "--porcelain", "--ignored") == ""


def test_a_tracked_settings_file_is_changed_with_a_warning(repository: Path) -> None:
    write(repository, GEMINI, "{}\n")
    git(repository, "add", "--", GEMINI)
    git(repository, "commit", "--quiet", "-m", "Settings")

    plan = plan_init(str(repository), InitOptions(clients=("gemini",)))
    carry_out(plan)

    why = next(step.why for step in plan.changes.steps if step.path.endswith(GEMINI))
    assert "do not commit this change" in why
    assert f" M {GEMINI}" in git(repository, "status", "--porcelain")


def test_ignored_files_are_not_excluded_again(repository: Path) -> None:
    write(repository, ".gitignore", ".claude/\n.mcp.json\n")

    install(repository, "claude")

    assert "landlane" not in (repository / ".git/info/exclude").read_text(encoding="utf-8")


@pytest.fixture
def equipped(repository: Path) -> Iterator[tuple[Path, Any]]:
    install(repository, "claude", "copilot")
    repo = open_repository(str(repository))
    yield repository, repo.require_git()
    repo.close()


def test_another_checkout_gets_the_same_hooks_and_stays_clean(
    equipped: tuple[Path, Any], tmp_path: Path
) -> None:
    repository, repo = equipped
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))

    equip(repo, str(tmp_path / "linked"))
    equip(repo, str(tmp_path / "linked"))

    assert (tmp_path / "linked" / CLAUDE).read_bytes() == (repository / CLAUDE).read_bytes()
    assert git(tmp_path / "linked", "status", "--porcelain") == ""
    undo(repository)
    assert not (tmp_path / "linked" / ".claude").exists()


def test_a_tracked_file_stays_as_it_is_in_a_workspace(equipped: tuple[Path, Any], tmp_path: Path) -> None:
    repository, repo = equipped
    git(repository, "add", "--force", "--", CLAUDE)
    git(repository, "commit", "--quiet", "-m", "Hooks of this machine")
    (repository / CLAUDE).write_text("{}", encoding="utf-8")
    git(repository, "commit", "--quiet", "-am", "None")
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))

    equip(repo, str(tmp_path / "linked"))

    assert (tmp_path / "linked" / CLAUDE).read_text(encoding="utf-8") == "{}"
    assert git(tmp_path / "linked", "status", "--porcelain") == ""


def test_the_record_of_a_newer_release_is_refused(repository: Path) -> None:
    install(repository, "claude")
    record = repository / ".git/landlane/init/record.json"
    record.write_text(
        record.read_text(encoding="utf-8").replace('"version": 1', '"version": 2'), encoding="utf-8"
    )

    with pytest.raises(LandlaneError) as refused:
        undo(repository)

    assert refused.value.code == "INIT_RECORD_UNREADABLE"


def test_backups_are_readable_by_their_user_alone(repository: Path) -> None:
    write(repository, GEMINI, '{"apiKey": "secret"}')
    install(repository, "gemini")

    folder = repository / ".git/landlane/init"

    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
