"""Nothing that says TODO, TBD or "coming soon" ships: landing refuses lines that a branch adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

SETTINGS = '[landing]\ntarget = "main"\nchecks = []\nplaceholders = ["TODO", "TBD", "coming soon"]\n'


@pytest.fixture
def shell(repository: Path) -> Shell:
    (repository / "landlane.toml").write_text(SETTINGS)
    (repository / "old.py").write_text("# TODO: it was here before\nx = 1\n")
    shell = Shell(repository, {"LANDLANE_AGENT": "ann"})
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Set up")
    return shell


def land(shell: Shell, branch: str, **files: str) -> dict[str, object]:
    """Land a branch with these files; the landing."""
    shell.git("switch", "--quiet", "-c", branch, "main")
    for name, text in files.items():
        path = f"{name}.py"
        shell.run_json("claim", path)
        (shell.folder / path).write_text(text)
        shell.git("add", path)
    shell.git("commit", "--quiet", "-m", branch)
    return shell.run("land", "--wait", "--json").json()["landing"]


@pytest.mark.promise(
    "landing.no-placeholders",
    "A branch that adds a line with a word of [landing] placeholders does not land.",
)
@pytest.mark.parametrize("text", ["a = 1\n\n# TODO: later\n", "b = 'Coming soon'\n", "TBD\n"])
def test_what_is_unfinished_does_not_ship(shell: Shell, text: str) -> None:
    landing = land(shell, "work", new=text)

    assert (landing["state"], landing["code"]) == ("bounced", "PLACEHOLDERS")
    assert "new.py:" in str(landing["reason"])


def test_words_that_only_contain_one_and_lines_that_were_there_land(shell: Shell) -> None:
    landing = land(shell, "work", old="# TODO: it was here before\nx = 2\n", mastodon="TODOS = 'todo'\n")

    assert landing["state"] == "landed"
