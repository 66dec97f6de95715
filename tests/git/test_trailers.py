"""Trailers are written below any message, and read back as they were meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.git.commits import Trailers, find_forged_trailer, read_trailers, with_trailers

pytestmark = pytest.mark.unit

TRAILERS = Trailers(agent="ann", session="s-abcdefghjk", task="T7", tokens=(4294967299, 4294967300))
LINES = "\n".join(TRAILERS.lines())


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("fix: a bug", f"fix: a bug\n\n{LINES}\n"),
        ("Title\n\nBody.", f"Title\n\nBody.\n\n{LINES}\n"),
        ("Title\n\nSigned-off-by: A <a@b>\n", f"Title\n\nSigned-off-by: A <a@b>\n{LINES}\n"),
        ("Title\nRefs: 1", f"Title\nRefs: 1\n\n{LINES}\n"),
        ("Title\n\nRefs: 1\nand more", f"Title\n\nRefs: 1\nand more\n\n{LINES}\n"),
    ],
)
def test_trailers_join_those_that_are_there_and_nothing_else(message: str, written: str) -> None:
    assert with_trailers(message, TRAILERS) == written


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
def test_whatever_the_message_the_trailers_are_read_back(message: str) -> None:
    if not find_forged_trailer(message):
        assert read_trailers(with_trailers(message, TRAILERS)) == TRAILERS


def test_a_paragraph_below_the_trailers_does_not_hide_them() -> None:
    assert read_trailers(f"Title\n\n{LINES}\n\nReviewed by hand.\n") == TRAILERS


def test_contradicting_trailers_are_ignored() -> None:
    assert read_trailers(f"Title\n\nLandlane-Agent: bob\n{LINES}\n") == Trailers()


def test_message_without_trailers_has_none() -> None:
    assert read_trailers("Title\n\nAbout Landlane-Agent: lines\n") == Trailers()


@pytest.mark.parametrize(
    ("line", "is_posing"),
    [
        ("Landlane-Agent: bob", True),
        (" landlane-TOKEN : 7", True),
        ("Landlane-Task=T1", True),
        ("Landlane-Agents are fine", False),
        ("The Landlane-Agent: trailer", False),
        ("Landlane-Agent reads well", False),
    ],
)
def test_only_lines_that_git_could_take_for_ours_pose(line: str, is_posing: bool) -> None:
    assert bool(find_forged_trailer(f"Title\n\n{line}\n")) is is_posing
