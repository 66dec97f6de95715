"""Shell completion: commands, options, tasks, agents, settings and files, in real shells."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from landlane.cli.completion import candidates
from tests.support.shell import LANDLANE, Shell
from tests.support.tools import find_tool, library_path

pytestmark = pytest.mark.acceptance


def words(*typed: str) -> list[str]:
    """Return the candidates for the last word, with tasks T1 and T12 known."""
    known = {"task": [("T1", "List users"), ("T12", "Add a health check")], "setting": [("claims.ttl", "")]}
    return [word for word, _ in candidates(typed, lambda kind: known.get(kind, []))]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("cl",), ["claim", "claims"]),
        (("task", "sh"), ["show"]),
        (("task", "show", ""), ["T1", "T12"]),
        (("task", "show", "T12"), ["T12"]),
        (("handoff", "T"), ["T1", "T12"]),
        (("done", "T1"), ["T1", "T12"]),
        (("claim", "--no"), ["--note"]),
        (("claim", "a", "--task", ""), ["T1", "T12"]),
        (("sync", "--update", ""), ["merge", "rebase"]),
        (("config", "get", "cl"), ["claims.ttl"]),
        (("task", "add", "--pri"), ["--priority"]),
        (("queue", "--a"), ["--all", "--as"]),
        (("help", "wh"), ["who"]),
        (("nonsense", "x"), []),
    ],
)
def test_the_last_word_is_completed(typed: tuple[str, ...], offered: list[str]) -> None:
    assert words(*typed) == offered


def test_files_are_offered_where_a_path_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "api.py").touch()
    (tmp_path / ".hidden").touch()

    assert words("claim", "") == ["src/"]
    assert words("claim", "src/") == ["src/api.py"]
    assert words("claim", ".h") == [".hidden"]
    assert words("once", "k", "--", "src/a") == ["src/api.py"]
    assert words("claim", "none/") == []


def test_completion_knows_the_tasks_agents_and_settings_of_the_repository(shell: Shell) -> None:
    shell.run_json("task", "add", "List users", "--as", "ann")

    def offered(*typed: str) -> list[str]:
        answer = shell.run("completion", "bash", "--json", "--", *typed).json()
        return [one["word"] for one in answer["candidates"]]

    assert offered("task", "show", "") == ["T1"]
    assert "ann" in offered("claim", "--as", "a")
    assert offered("config", "get", "claims.tt") == ["claims.ttl"]
    assert "code" in offered("role", "show", "c")
    assert shell.run_text("completion", "bash", "--", "done", "") == "T1\tList users\n"
    shell.run_error("UNKNOWN_SHELL", "completion", "tcsh", exit=2)


# What each shell runs to complete `landlane task show T`; it prints one candidate per line.
SCRIPTS = {
    "bash": """-c
        eval "$(landlane completion bash)"
        complete -p landlane >/dev/null || exit 1
        COMP_WORDS=(landlane task show T); COMP_CWORD=3
        _landlane
        printf "%s\\n" "${COMPREPLY[@]}"
    """,
    "fish": """-c
        landlane completion fish | source
        complete -C 'landlane task show T'
    """,
    "zsh": """-fc
        compadd() { print -l -- ${(P)@[-1]} }
        compdef() { : }
        eval "$(landlane completion zsh)"
        words=(landlane task show T); CURRENT=4
        _landlane
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_real_shell_completes_task_ids(shell: Shell, name: str) -> None:
    program = shutil.which("bash") if name == "bash" else find_tool(name)
    if not program:
        pytest.skip(f"no {name}: scripts/tools.sh could not get it")
    shell.run_json("task", "add", "List users", "--as", "ann")
    shell.run_json("task", "add", "Add a health check", "--as", "ann")
    path = f"{Path(LANDLANE).parent}:{os.environ['PATH']}"
    asking = shell.with_env(PATH=path, LD_LIBRARY_PATH=library_path(name) if name == "fish" else "")

    ended = asking.run_program(program, *SCRIPTS[name].split("\n", 1))

    assert [line.split("\t")[0].strip() for line in ended.out.splitlines()] == ["T1", "T2"], ended
