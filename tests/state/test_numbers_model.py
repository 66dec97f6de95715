"""Where numbers stand in paths, and how far each of them is."""

from __future__ import annotations

import pytest

from landlane.git import numbers_in_file_names
from landlane.git.numbers_in_file_names import NumbersFound
from landlane.state.numbers import NumberKind, state_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("path", "name", "number"),
    [
        ("migrations/{n}_*.sql", "migrations/0042_add.sql", 42),
        ("migrations/{n}_*.sql", "migrations/0042_.sql", 42),
        ("migrations/{n}_*.sql", "migrations/42.sql", None),
        ("migrations/{n}_*.sql", "migrations/a/0042_add.sql", None),
        ("migrations/{n}_*.sql", "migrations/x0042_add.sql", None),
        ("a+b/{n}", "a+b/7", 7),
        ("**/V{n}__*.sql", "V3__x.sql", 3),
        ("**/V{n}__*.sql", "db/deep/V3__x.sql", 3),
        ("docs/adr-{n}?.md", "docs/adr-12a.md", 12),
        ("{n}.md", "٤.md", None),
    ],
)
def test_the_number_is_read_where_the_path_has_it(path: str, name: str, number: int | None) -> None:
    assert numbers_in_file_names.number_reader(path)(name) == number


@pytest.mark.parametrize(
    ("path", "folder"),
    [("migrations/{n}_*.sql", "migrations"), ("{n}.md", ""), ("a/b*/{n}", "a"), ("a/b/v{n}/x.sql", "a/b")],
)
def test_only_the_literal_folder_is_searched(path: str, folder: str) -> None:
    assert numbers_in_file_names.fixed_folder(path) == folder


@pytest.mark.parametrize(
    ("number", "is_over", "state"),
    [(1, True, "used"), (2, True, "pending"), (3, True, "abandoned"), (3, False, "pending")],
)
def test_a_number_is_abandoned_only_when_it_stands_nowhere(number: int, is_over: bool, state: str) -> None:
    found = NumbersFound(in_branches=frozenset({1}), in_trees=frozenset({1, 2}))
    assert state_of(number, NumberKind(name="m", path="{n}"), found, is_over=is_over) == state


def test_a_number_is_as_wide_as_the_settings_say() -> None:
    kind = NumberKind(name="m", path="m/{n}_*.sql", width=4)
    assert [kind.text_of(number) for number in (7, 12345)] == ["0007", "12345"]
    assert kind.path_of(7) == "m/0007_*.sql"
