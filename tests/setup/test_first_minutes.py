"""The first five minutes: where one stands, completion, what `init` proposes, and going back."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.settings.detect_test_command import find_test_command
from tests.support.shell import LANDLANE, Shell, fingerprint

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
def test_how_a_project_is_tested_is_found_in_its_files(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")

    assert find_test_command(str(tmp_path))[0] == command


def test_looking_around_needs_no_repository_and_makes_nothing(shell: Shell, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    before = fingerprint(shell.folder)

    assert Shell(outside).ask()["state"] == "no_repository"
    answer = shell.ask()

    assert answer["state"] == "not_set_up"
    assert answer["next"][0]["command"] == "landlane init"
    assert fingerprint(shell.folder) == before
    assert list(outside.iterdir()) == []


def test_it_tells_the_next_step_from_the_first_to_the_last(shell: Shell, programs: Path) -> None:
    """Set up, no checks, a task, a paused pool, a question, and the person's own task."""
    shell = shell.where(PATH=str(programs))
    ended = shell.run("init", "--client", "claude", "--json")
    assert any("checks = [" in note for note in ended.answer()["notes"])
    assert shell.ask()["state"] == "nothing_to_do"

    shell.ask("task", "add", "Mend it", "--path", "lib.py")
    told = shell.ask()
    assert told["state"] == "tasks_ready"
    assert [step["command"] for step in told["next"]] == [
        'checks = ["make test"]',
        "landlane run --agent claude",
    ]
    assert shell.run("run", "--agent", "claude").err.startswith("landlane: no checks are declared")

    shell.ask("pool", "pause", "--why", "no disk")
    assert (shell.ask()["state"], shell.ask()["pool_paused"]) == ("pool_paused", "no disk")
    shell.ask("pool", "resume")

    shell.ask("next", "--as", "ann")
    assert shell.ask("--as", "ann")["next"][0]["command"] == "landlane next --resume"
    shell.run("gate", "ask", "T1", "--kind", "approval", "--why", "May I?", "--as", "ann")
    told = shell.ask()
    assert (told["state"], told["gates"]) == ("waits_for_person", ["T1"])
    assert "landlane gate list" in shell.tell()


def test_a_shell_completes_words(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for name in ("zsh", "fish"):
        assert "_LANDLANE_COMPLETE" in shell.tell("completion", name)
    assert shell.ask("completion", "bash")["script"].startswith("_landlane_completion")
    shell.refuse("UNKNOWN_SHELL", "completion", "tcsh")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")

    asks = (
        f'eval "$({LANDLANE} completion bash)"; complete -p landlane >/dev/null || exit 1;'
        f"COMP_WORDS=(landlane cl); COMP_CWORD=1; _landlane_completion {LANDLANE} cl landlane;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([bash, "-c", asks], capture_output=True, text=True, timeout=60, cwd=tmp_path)

    assert (done.returncode, done.stdout.split()) == (0, ["claim", "claims"]), done.stderr


@pytest.mark.slow
def test_one_command_takes_everything_back(shell: Shell, programs: Path) -> None:
    """Also the queue's checkout, and what the first workspace set in git; only the state stays."""
    (shell.folder / "Makefile").write_text("test:\n\t@git --version\n", encoding="utf-8")
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Tests")
    (programs / "make").symlink_to(shutil.which("make") or "/usr/bin/make")
    shell = shell.where(PATH=str(programs))
    before = (shell.git("config", "--local", "--list"), set(shell.folder.iterdir()))
    assert "make test" in shell.run("init", "--yes").err
    shell.ask("task", "add", "Mend it", "--path", "lib.py")
    shell.ask("next", "--as", "ann")
    work = shell.at(shell.ask("workspace", "open", "T1", "--as", "ann")["workspace"]["path"])
    (work.folder / "lib.py").write_text("x = 1\n", encoding="utf-8")
    work.ask("commit", "-m", "Mend it", "lib.py", "--as", "ann")
    work.ask("done", "T1", "--as", "ann")
    shell.ask("land", "landlane/T1-1/work", "--wait", "--as", "ann")

    shell.ask("init", "--undo", "--yes")

    assert shell.git("status", "--short") == ""
    assert (shell.folder / "lib.py").read_text(encoding="utf-8") == "x = 1\n"
    after = set(shell.folder.iterdir()) - {shell.folder / "lib.py"}
    assert (shell.git("config", "--local", "--list"), after) == before
    assert len(shell.git("worktree", "list").splitlines()) == 1
    assert not shell.folder.with_name(f"{shell.folder.name}.workspaces").exists()
    assert shell.ask("init", "--undo", "--yes")["changed"] == []
