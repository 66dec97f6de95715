"""Bringing a branch up to date joins hot files as the queue does: each side's change counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.deploys.update_checkout import update
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

HOT = '[landing.merge.files]\n"VERSION" = "counter"\n"CHANGELOG.md" = "union"\n'


@pytest.fixture
def testbed(repository: Path) -> Iterator[LandingTestbed]:
    found = LandingTestbed(repository)
    found.configure("[]", more=HOT, files={"VERSION": "1\n", "CHANGELOG.md": "# Changes\n\n- start\n"})
    yield found
    found.close()


def test_a_merge_keeps_both_increments_of_a_counter_and_both_lines(testbed: LandingTestbed) -> None:
    testbed.branch("one", {"VERSION": "2\n", "CHANGELOG.md": "# Changes\n\n- start\n- one\n"})
    testbed.branch("two", {"VERSION": "2\n", "CHANGELOG.md": "# Changes\n\n- start\n- two\n"})
    assert testbed.land("one").state == "landed"
    git(testbed.folder, "switch", "--quiet", "two")

    update(testbed.prepared_repo, testbed.agent("bob"), "merge")

    assert (testbed.folder / "VERSION").read_text() == "3\n"
    assert (testbed.folder / "CHANGELOG.md").read_text() == "# Changes\n\n- start\n- one\n- two\n"
    assert git(testbed.folder, "status", "--porcelain") == ""
    git(testbed.folder, "switch", "--quiet", "main")
    assert testbed.land("two", "bob").state == "landed"
    assert testbed.read_file("VERSION") == "3\n"
