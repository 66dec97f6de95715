"""For each built-in role an agent that tries everything: nothing gets past, and what it may do lands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.roles.model import BUILT_IN
from landlane.sandbox.model import BackendKind
from tests.exec.support import ExecTestbed
from tests.support.shell import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox, pytest.mark.on_disk]

# What each role may change, and what it may not; those that are not named here change nothing.
MAY = {
    "code": "src/app.py",
    "test": "tests/test_app.py",
    "document": "docs/guide.md",
    "refactor": "tests/test_app.py",
    "release": "CHANGELOG.md",
}
MAY_NOT = {
    "code": ("tests/test_app.py", "AGENTS.md"),
    "test": ("src/app.py", "docs/guide.md"),
    "document": ("src/app.py", "tests/test_app.py"),
    "refactor": ("landlane.toml", ".github/workflows/x.yml"),
    "release": ("src/app.py", "AGENTS.md"),
}
THOROUGH = ("code", "review")
GOOD = "echo good >> {0}; landlane claim {0}; landlane commit -m Good {0}; landlane land --wait"
CASES = [(role, BackendKind.LANDLOCK) for role in BUILT_IN] + [
    ("code", BackendKind.BUBBLEWRAP),
    ("review", BackendKind.BUBBLEWRAP),
]


@pytest.fixture
def testbed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecTestbed]:
    made = ExecTestbed(tmp_path, request.param)
    yield made
    made.close()


@pytest.mark.promise(
    "exec.roles-hold",
    "Whatever a sandboxed agent tries, only changes that its role allows reach the target branch.",
)
@pytest.mark.parametrize(
    ("role", "testbed"), CASES, indirect=["testbed"], ids=[f"{role}-{backend}" for role, backend in CASES]
)
def test_an_agent_that_tries_everything_gets_no_further_than_its_role(
    role: str, testbed: ExecTestbed
) -> None:
    other = testbed.shell.run_json(
        "workspace", "open", testbed.shell.run_json("task", "add", "Other")["task"]["id"]
    )
    place = other["workspace"]["path"]
    before = {name: testbed.git("rev-parse", name) for name in ("main", "HEAD")}
    guarded = [testbed.repository / ".git" / "hooks", testbed.repository / "src"]
    prints = [fingerprint(folder) for folder in guarded]
    config = (testbed.repository / ".git" / "config").read_bytes()
    how = "thorough" if role in THOROUGH else "as its role"
    words = ("tools/rogue.py", how, str(testbed.repository), place, *MAY_NOT.get(role, ("src/app.py",)))

    ended = testbed.execute(role, sys.executable, *words, limit=100)

    assert (ended.exit, ended.out.split()) == (0, []), ended
    assert {name: testbed.git("rev-parse", name) for name in ("main", "HEAD")} == before
    assert [fingerprint(folder) for folder in guarded] == prints
    assert (testbed.repository / ".git" / "config").read_bytes() == config
    assert testbed.git("for-each-ref", "--format=%(refname)", "refs/heads/rogue") == ""
    assert testbed.git("status", "--porcelain") == ""
    assert Path(place, "src", "app.py").read_text() == "x = 1\n"
    assert testbed.shell.run_json("log", "--verify")["ok"]

    if path := MAY.get(role):
        landed = testbed.script(role, GOOD.format(path))
        assert landed.exit == 0, landed
        assert testbed.git("show", f"main:{path}").endswith("good")
        assert testbed.git("diff", "--name-only", before["main"], "main").split() == [path]
    assert testbed.left_over() == []
