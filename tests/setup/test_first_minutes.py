"""The first five minutes: where one stands, completion, what `init` proposes, and going back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.settings.detect_test_command import find_test_command
from tests.support.shell import Shell, fingerprint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

LOOKED_AT = [
    ({"Makefile": "build:\n\ntest: build\n\t./run\n"}, "make test"),
    ({"Makefile": "test := 1\nbuild:\n"}, ""),
    ({"justfile": "test:\n    ./run\n"}, "just test"),
    ({"package.json": '{"scripts": {"test": "vitest"}}'}, "npm test"),
    ({"package.json": '{"scripts": {"test": "vitest"}}', "pnpm-lock.yaml": ""}, "pnpm test"),
    ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, ""),
    ({"package.json": '{"scripts": ["test"]}'}, ""),
    ({"package.json": "[1"}, ""),
    ({"pyproject.toml": "[tool.pytest.ini_options]\n", "tests/test_a.py": ""}, "python3 -m pytest"),
    ({"pyproject.toml": "[project]\n", "tests/test_a.py": ""}, ""),
    ({"Cargo.toml": ""}, "cargo test"),
    ({"go.mod": ""}, "go test ./..."),
    ({"notes.txt": "make test"}, ""),
]


@pytest.mark.parametrize(("files", "command"), LOOKED_AT)
def test_the_test_command_is_found_in_project_files(
    tmp_path: Path, files: dict[str, str], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("pytest", *(command.split()[0] for _, command in LOOKED_AT if command)):
        (programs / program).touch(0o755)
    monkeypatch.setenv("PATH", str(programs))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert find_test_command(str(tmp_path))[0] == command
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_test_command(str(tmp_path)) == ("", ""), "its program is not there"


def test_landlane_without_arguments_needs_no_repository_and_creates_nothing(
    shell: Shell, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    before = fingerprint(shell.folder)

    assert Shell(outside).run_json()["state"] == "no_repository"
    answer = shell.run_json()

    assert answer["state"] == "not_set_up"
    assert answer["next"][0]["command"] == "landlane init"
    assert fingerprint(shell.folder) == before
    assert list(outside.iterdir()) == []


def test_the_next_step_is_shown_in_every_situation(shell: Shell, programs: Path) -> None:
    """Set up, no checks, a task, a paused pool, a question, and the person's own task."""
    shell = shell.with_env(PATH=str(programs))
    ended = shell.run("init", "--yes", "--client", "claude", "--json")
    assert any("landing.checks" in note for note in ended.json()["notes"])
    assert shell.run_json()["state"] == "nothing_to_do"

    shell.run_json("task", "add", "Mend it", "--path", "lib.py")
    told = shell.run_json()
    assert told["state"] == "tasks_ready"
    assert [step["command"] for step in told["next"]] == [
        "landlane config set landing.checks '[\"make test\"]'",
        "landlane run --agent claude",
    ]
    assert shell.run("run", "--agent", "claude").err.startswith("error: landlane.toml is not on main")

    shell.run_json("run", "pause", "--why", "no disk")
    assert (shell.run_json()["state"], shell.run_json()["pool_paused"]) == ("pool_paused", "no disk")
    shell.run_json("run", "resume")

    shell.run_json("next", "--as", "ann")
    assert shell.run_json("--as", "ann")["next"][0]["command"] == "landlane next --resume"
    shell.run("gate", "ask", "T1", "--kind", "approval", "--why", "May I?", "--as", "ann")
    told = shell.run_json()
    assert (told["state"], told["gates"]) == ("waits_for_person", ["T1"])
    assert "landlane inbox G1" in shell.run_text()


@pytest.mark.slow
def test_one_command_undoes_everything(shell: Shell, programs: Path) -> None:
    """Also the queue's checkout, and what the first workspace set in git; only the state stays."""
    (shell.folder / "Makefile").write_text("test:\n\t@git --version\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Tests")
    shell = shell.with_env(PATH=str(programs))
    before = (shell.git("config", "--local", "--list"), set(shell.folder.iterdir()))
    assert "make test" in shell.run("init", "--yes").err
    # The settings that init wrote are not committed, so they hold for no agent.
    (shell.state / "local.toml").write_text('[landing]\nchecks = ["make test"]\n', encoding="utf-8")
    shell.run_json("task", "add", "Mend it", "--path", "lib.py")
    shell.run_json("next", "--as", "ann")
    work = shell.at(shell.run_json("workspace", "open", "T1", "--as", "ann")["workspace"]["path"])
    (work.folder / "lib.py").write_text("x = 1\n", encoding="utf-8")
    work.run_json("commit", "-m", "Mend it", "lib.py", "--as", "ann")
    work.run_json("done", "T1", "--as", "ann")
    shell.run_json("land", "landlane/T1-1/work", "--wait", "--as", "ann")

    shell.run_json("init", "--undo", "--yes")

    assert shell.git("status", "--short") == ""
    assert (shell.folder / "lib.py").read_text(encoding="utf-8") == "x = 1\n"
    after = set(shell.folder.iterdir()) - {shell.folder / "lib.py"}
    assert (shell.git("config", "--local", "--list"), after) == before
    assert len(shell.git("worktree", "list").splitlines()) == 1
    assert not shell.folder.with_name(f"{shell.folder.name}.workspaces").exists()
    assert shell.run_json("init", "--undo", "--yes")["changed"] == []
