"""Sandboxes as values: what they allow, what they may be required to hold, and how they are reported."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed, NotAllowed
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import (
    BUBBLEWRAP,
    BUBBLEWRAP_LANDLOCK,
    LANDLOCK,
    NONE,
    OPEN,
    PROMISES,
    Backend,
    Guarantee,
    Sandbox,
    check_promises,
    require_guarantees,
)

pytestmark = pytest.mark.unit

SANDBOX = Sandbox(writable=("/w",), scratch="/s")
BACKENDS = [
    Backend(name=BUBBLEWRAP_LANDLOCK, bwrap="/bwrap", landlock_abi=7, has_filter=True),
    Backend(name=BUBBLEWRAP, bwrap="/bwrap"),
    Backend(name=LANDLOCK, landlock_abi=3),
    Backend(name=NONE),
]


def test_what_lies_within_another_writable_place_needs_no_word_of_its_own() -> None:
    sandbox = Sandbox(writable=("/w/deep", "/w", "/wide"), scratch="/w/scratch")

    assert sandbox.may_change() == ("/w", "/wide")


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_every_backend_says_something_of_every_promise(backend: Backend) -> None:
    held = list_guarantees(backend, SANDBOX)

    assert [one.promise for one in held] == list(PROMISES)
    assert all(one.by for one in held if one.state == "held")
    assert all(one.why for one in held if one.state != "held")


def test_bubblewrap_without_landlock_leaves_abstract_sockets_open() -> None:
    sandbox = Sandbox(writable=(), scratch="/s", unix_sockets=True)

    held = {one.promise: one.state for one in list_guarantees(BACKENDS[1], sandbox)}

    assert (held["abstract sockets"], held["chmod"]) == (OPEN, "held")


def test_landlock_hides_nothing_within_a_place_that_can_be_written() -> None:
    within = Sandbox(writable=("/w",), scratch="/s", hidden=("/w/secret",))
    beside = Sandbox(writable=("/w",), scratch="/s", hidden=("/secret",))

    states = [list_guarantees(BACKENDS[2], sandbox)[1].state for sandbox in (within, beside)]

    assert states == [OPEN, "held"]
    assert list_guarantees(BACKENDS[0], within)[1].state == "held"


def test_required_promises_that_are_open_are_named_together() -> None:
    held = list_guarantees(BACKENDS[2], SANDBOX)

    with pytest.raises(NotAllowed) as caught:
        require_guarantees(held, ("files", "signals", "chmod"), BACKENDS[2])

    assert caught.value.facts == {"missing": ["chmod", "signals"], "backend": LANDLOCK}
    require_guarantees(held, ("files", "tcp"), BACKENDS[2])  # the sandbox itself leaves TCP free


def test_only_promises_can_be_required() -> None:
    assert check_promises(["files", "abstract sockets"]) == ("files", "abstract sockets")
    with pytest.raises(Malformed):
        check_promises(["files", "fire"])


def test_a_promise_is_told_in_one_line() -> None:
    assert (
        Guarantee(promise="chmod", state=OPEN, why="no right for it").text() == "chmod: open: no right for it"
    )
    assert Guarantee(promise="files", state="held", by="landlock").text() == "files: held by landlock"
