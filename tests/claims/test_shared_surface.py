"""Only the shared surface needs a claim, in the words of the practice guides."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from landlane.setup.shared_surface import find_shared_surface
from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

SETTINGS = """
[landing]
target = "main"
checks = []

[claims]
required = ["scripts/**", "migrations/**", "landlane.toml"]
free = ["scripts/scratch/**"]

[hooks]
policy = "strict"
"""


@pytest.fixture
def shell(repository: Path) -> Shell:
    (repository / "landlane.toml").write_text(SETTINGS)
    for path in ("scripts/build.sh", "scripts/scratch/a.sh", "src/a.py", "migrations/1.sql"):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("x\n")
    shell = Shell(repository, {"LANDLANE_AGENT": "ann"})
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Set up")
    return shell


@pytest.mark.promise(
    "claims.only-the-shared-surface",
    "With [claims] required, everything else is free at check, commit, done and landing.",
)
def test_only_the_shared_surface_needs_a_claim(shell: Shell) -> None:
    (one,) = shell.run_json("check", "src/a.py")["paths"]
    assert one["state"] == "free"
    shell.run_error("CLAIM_REQUIRED", "check", "scripts/build.sh", exit=6)
    shell.run_error("CLAIM_REQUIRED", "check", "scripts/scratch/a.sh", exit=6)  # `required` wins over `free`

    shell.git("switch", "--quiet", "-c", "work")
    (shell.folder / "src/a.py").write_text("y\n")
    shell.run_json("commit", "-m", "Change source", "src/a.py")
    landed = shell.run_json("land", "--wait")
    assert landed["landing"]["state"] == "landed"

    shell.git("switch", "--quiet", "-c", "more", "main")
    (shell.folder / "migrations/1.sql").write_text("y\n")
    shell.run_error("NOT_CLAIMED", "commit", "-m", "Change a migration", "migrations/1.sql", exit=6)
    shell.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-am", "Change a migration")
    refused = shell.run("land", "--json").json()
    assert refused["code"] == "OUTSIDE_CLAIMS"
    shell.run_json("claim", "migrations/1.sql")
    assert shell.run_json("land", "--wait")["landing"]["state"] == "landed"


def test_a_path_that_another_session_holds_is_not_free(shell: Shell) -> None:
    shell.run_json("claim", "src/a.py", "--as", "bob")

    shell.run_error("CLAIM_HELD", "check", "src/a.py", exit=3)


def test_a_task_with_paths_may_change_what_needs_no_claim(shell: Shell) -> None:
    task = shell.run_json("task", "add", "Build", "--path", "scripts/build.sh")["task"]["id"]
    shell.run_json("next")
    shell.git("switch", "--quiet", "-c", f"landlane/{task}-1/work")
    (shell.folder / "scripts/build.sh").write_text("y\n")
    (shell.folder / "src/a.py").write_text("z\n")
    shell.git("-c", "core.hooksPath=/dev/null", "commit", "--quiet", "-am", "Build")

    assert shell.run_json("done", task)["task"]["state"] == "landing"


def test_init_proposes_the_shared_surface_of_the_repository(repository: Path) -> None:
    for path in ("scripts/a.sh", "services/pay/migrations/1.sql", "STATE.md", "pyproject.toml", "src/a.py"):
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text("x = 1\n")

    found = find_shared_surface(str(repository))
    Shell(repository).run_json("init", "--yes")

    assert found == [
        *("scripts/**", "services/pay/migrations/**", "STATE.md", "pyproject.toml"),
        *("RULES.md", "landlane.toml"),
    ]
    text = (repository / "landlane.toml").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("# required = "))
    assert tomllib.loads(line.removeprefix("# "))["required"] == found
