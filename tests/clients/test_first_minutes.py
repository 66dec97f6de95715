"""The front page, followed by somebody who has only that: one's own repository, a real client, and back."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.conftest import FOLDER
from tests.clients.test_run import Scripts
from tests.support.real_clients import ClientTestbed
from tests.support.scripted_model.server import ScriptedModel, marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.real_clients import Client

pytestmark = [pytest.mark.client, pytest.mark.xdist_group("clients-1")]

PAGE = Path(__file__).resolve().parents[2] / "README.md"
FILES = {"README.md": "# calc\n", "Makefile": "test:\n\t@grep -q calc README.md\n"}
ADDED = "# calc\n\nRun `make test`.\n"
LIMIT_SECONDS = 150


def blocks_below(heading: str) -> list[str]:
    """The lines that a section of the page says to type, where they need a client."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"<!-- not run: [^>]+ -->\n```sh\n(.*?)```", section, re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def test_a_newcomer_lands_a_change_with_the_front_page_alone(need: Callable[[str], Client]) -> None:
    client = need("claude")
    protect, run = blocks_below("Protect"), blocks_below("Run")
    assert [line.split()[1] for line in (*protect, *run)] == [
        *("your-repository", "init", "add", "doctor"),
        *("task", "run", "inbox"),
    ]
    with ClientTestbed(files=FILES, clients=FOLDER) as world:
        world.add_home_files(client)
        turns = [*client.edit("README.md", "# calc\n", ADDED), *client.say("It says so now.")]
        with ScriptedModel({"main": []}, listening=world.network.listen()) as model:
            model.scripts = Scripts({"main": turns}, world.root / "repository.workspaces", world.root / "tmp")

            def types(line: str) -> str:
                # Which of its scripts the model follows stands in what it is asked.
                asked = line.replace("' --path", f" {marker('main')}' --path")
                # A person at a terminal would be asked, and would answer yes.
                asked = asked.replace("landlane init", "landlane init --yes")
                ended = world.call(
                    *("sh", "-c", asked),
                    environment=client.environment(model.url),
                    check=False,
                    seconds=LIMIT_SECONDS,
                )
                assert ended.returncode == 0, (line, ended)
                return ended.stdout + ended.stderr

            before = world.call("git", "config", "--local", "--list").stdout
            types(protect[1])
            types(protect[2])  # the doctor has tests of its own, and tries every client
            set_up = world.call("git", "show", "--name-only", "--format=").stdout.split()
            said = [types(line) for line in run]

            assert "1 landed in " in said[1]
            assert "nothing needs you" in said[2]
            log = types("landlane log T1")
            assert "landed L1 T1 Explain in the README how to run the tests" in log
            assert world.files()["README.md"] == ADDED

            types("landlane init --undo")

            # What was committed is now removed from the checkout, for the person to commit.
            deleted = world.call("git", "ls-files", "--deleted").stdout.split()
            assert deleted == set_up == ["AGENTS.md", "RULES.md", "landlane.toml"]
            assert len(world.call("git", "status", "--short").stdout.splitlines()) == len(deleted)
            assert world.call("git", "config", "--local", "--list").stdout == before
            assert world.files() == {**FILES, "README.md": ADDED}
            assert not (world.root / "repository.workspaces").exists()
