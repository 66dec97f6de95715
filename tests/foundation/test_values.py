"""Value classes: frozen, keyword-only, equal by content, and as light as a tuple."""

from __future__ import annotations

import copy
import pickle

import pytest

from landlane.values import as_dict, replace, value

pytestmark = pytest.mark.unit


@value
class Point:
    """A place."""

    x: int
    y: int = 7

    @property
    def sum(self) -> int:
        return self.x + self.y


@value
class Other:
    """The same fields, another class."""

    x: int
    y: int = 7


@value
class Empty:
    """No fields."""


def test_a_value_is_made_by_keywords_and_has_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(x=1, y=2).sum) == (1, 7, 3)


@pytest.mark.parametrize("arguments", [{}, {"x": 1, "z": 2}])
def test_missing_or_unknown_fields_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**arguments)


def test_fields_cannot_be_given_by_position() -> None:
    with pytest.raises(TypeError):
        Point(1, 2)  # pyright: ignore[reportCallIssue]


def test_values_are_equal_when_class_and_content_are() -> None:
    assert Point(x=1) == Point(x=1, y=7)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Other(x=1)
    assert Point(x=1) != (1, 7)
    assert Empty() == Empty()


def test_equal_values_have_one_hash() -> None:
    assert len({Point(x=1), Point(x=1, y=7), Point(x=2)}) == 2
    assert len({Empty(), Empty()}) == 1


@pytest.mark.parametrize("name", ["x", "y", "unknown"])
def test_a_value_cannot_be_changed(name: str) -> None:
    point = Point(x=1)

    with pytest.raises(AttributeError, match="frozen"):
        setattr(point, name, 5)
    with pytest.raises(AttributeError, match="frozen"):
        delattr(point, name)

    assert point == Point(x=1)


def test_a_value_shows_its_fields() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=7)"


def test_a_value_that_knows_better_shows_itself_its_own_way() -> None:
    @value
    class Secret:
        word: str

        def __repr__(self) -> str:
            return "Secret(…)"

    assert repr(Secret(word="x")) == "Secret(…)"


def test_replace_changes_some_fields_and_leaves_the_old_value() -> None:
    old = Point(x=1, y=2)

    assert replace(old, y=3) == Point(x=1, y=3)
    assert old == Point(x=1, y=2)
    with pytest.raises(TypeError):
        replace(old, z=1)


def test_as_dict_tells_the_fields_in_order_and_keeps_nested_values() -> None:
    @value
    class Line:
        start: Point
        end: Point

    line = Line(start=Point(x=1), end=Point(x=2))

    assert as_dict(line) == {"start": Point(x=1), "end": Point(x=2)}
    assert list(as_dict(Point(x=1))) == ["x", "y"]


def test_a_value_takes_no_room_for_a_dictionary() -> None:
    assert not hasattr(Point(x=1), "__dict__")


@pytest.mark.parametrize("point", [Point(x=1), Point(x=1, y=[1, 2])])  # pyright: ignore[reportArgumentType]
def test_a_value_can_be_copied_and_sent_to_another_process(point: Point) -> None:
    assert copy.copy(point) == point
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
