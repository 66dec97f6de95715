"""Bringing a branch up to date joins hot files as the queue does: each side's change counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.deploys.update_checkout import update
from landlane.testing.repositories import git
from tests.support.landing import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

HOT = '[landing.merge.files]\n"VERSION" = "counter"\n"CHANGELOG.md" = "union"\n'


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    found = Yard(repository)
    found.configure("[]", more=HOT, files={"VERSION": "1\n", "CHANGELOG.md": "# Changes\n\n- start\n"})
    yield found
    found.close()


def test_both_raises_of_a_counter_and_both_lines_are_there_after_a_merge(yard: Yard) -> None:
    yard.branch("one", {"VERSION": "2\n", "CHANGELOG.md": "# Changes\n\n- start\n- one\n"})
    yard.branch("two", {"VERSION": "2\n", "CHANGELOG.md": "# Changes\n\n- start\n- two\n"})
    assert yard.land("one").state == "landed"
    git(yard.folder, "switch", "--quiet", "two")

    update(yard.site, yard.agent("bob"), "merge")

    assert (yard.folder / "VERSION").read_text() == "3\n"
    assert (yard.folder / "CHANGELOG.md").read_text() == "# Changes\n\n- start\n- one\n- two\n"
    assert git(yard.folder, "status", "--porcelain") == ""
    git(yard.folder, "switch", "--quiet", "main")
    assert yard.land("two", "bob").state == "landed"
    assert yard.at("VERSION") == "3\n"
