"""Refused claims in the journal: each once while the claim in the way lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.journal import read as journal
from landlane.journal.sentences import entry_sentence

if TYPE_CHECKING:
    from tests.support.project import Project

pytestmark = pytest.mark.contract


def refusals(project: Project) -> list[tuple[str, str]]:
    found = (entry for entry in project.entries() if entry.kind == "claim.refused")
    return [(entry.agent, entry_sentence(entry, {})) for entry in found]


@pytest.mark.promise(
    "claims.refusals-are-journaled",
    "A refused claim is journaled once for each session, path and claim in the way, also after retries.",
)
def test_a_refusal_is_journaled_once_while_the_claim_lasts(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src/api.py")
    for _ in range(50):
        bob.expect_refusal("src/api.py")
    assert refusals(project) == [("bob", "was refused src/api.py: claimed by ann")]

    ann.release("src/api.py")
    ann.take("src/api.py")
    for _ in range(2):
        bob.expect_refusal("src/api.py")

    assert refusals(project) == [("bob", "was refused src/api.py: claimed by ann")] * 2


def test_each_path_and_each_session_has_its_own_entry(project: Project) -> None:
    ann, bob, cara = (project.agent(name) for name in ("ann", "bob", "cara"))
    ann.take("a", "b/**")
    for _ in range(3):
        bob.claim("a", "b/x", "free")
        cara.expect_refusal("a")

    assert refusals(project) == [
        ("bob", "was refused a: claimed by ann"),
        ("bob", "was refused b/x: claimed by ann"),
        ("cara", "was refused a: claimed by ann"),
    ]


def test_a_refusal_is_not_the_last_word_on_a_path(project: Project) -> None:
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("a")
    bob.expect_refusal("a")

    found = journal.find_last_claim_entry(bob.repo, bob.pattern("a"))

    assert found is not None
    assert (found.kind, found.agent) == ("claim.taken", "ann")


def test_many_paths_are_remembered_and_the_oldest_forgotten(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.claims.journal_refusals._MOST", 2)
    ann, bob = project.agent("ann"), project.agent("bob")
    ann.take("src")
    for path in ("src/a", "src/b", "src/c", "src/c", "src/b", "src/a"):
        bob.expect_refusal(path)

    paths = [sentence.split()[2] for _, sentence in refusals(project)]

    assert paths == ["src/a:", "src/b:", "src/c:", "src/a:"]
