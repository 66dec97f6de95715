"""Sandbox values: what they allow, which promises can be required, and how guarantees are shown."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed, NotAllowed
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import (
    PROMISES,
    Backend,
    BackendKind,
    Guarantee,
    GuaranteeState,
    Promise,
    Sandbox,
    check_promises,
    require_guarantees,
)

pytestmark = pytest.mark.unit

SANDBOX = Sandbox(writable=("/w",), scratch="/s")
BACKENDS = [
    Backend(name=BackendKind.BUBBLEWRAP_LANDLOCK, bwrap="/bwrap", landlock_abi=7, has_filter=True),
    Backend(name=BackendKind.BUBBLEWRAP, bwrap="/bwrap"),
    Backend(name=BackendKind.LANDLOCK, landlock_abi=3),
    Backend(name=BackendKind.NONE),
]


def test_a_writable_folder_inside_another_one_is_left_out() -> None:
    sandbox = Sandbox(writable=("/w/deep", "/w", "/wide"), scratch="/w/scratch")

    assert sandbox.writable_roots() == ("/w", "/wide")


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_every_backend_reports_every_promise(backend: Backend) -> None:
    held = list_guarantees(backend, SANDBOX)

    assert [one.promise for one in held] == list(PROMISES)
    assert all(one.by for one in held if one.state == "held")
    assert all(one.why for one in held if one.state != "held")


def test_bubblewrap_without_landlock_leaves_abstract_sockets_open() -> None:
    sandbox = Sandbox(writable=(), scratch="/s", unix_sockets=True)

    held = {one.promise: one.state for one in list_guarantees(BACKENDS[1], sandbox)}

    assert (held[Promise.ABSTRACT_SOCKETS], held[Promise.CHMOD]) == (GuaranteeState.OPEN, GuaranteeState.HELD)


def test_landlock_hides_nothing_inside_a_writable_folder() -> None:
    within = Sandbox(writable=("/w",), scratch="/s", hidden=("/w/secret",))
    beside = Sandbox(writable=("/w",), scratch="/s", hidden=("/secret",))

    states = [list_guarantees(BACKENDS[2], sandbox)[1].state for sandbox in (within, beside)]

    assert states == [GuaranteeState.OPEN, "held"]
    assert list_guarantees(BACKENDS[0], within)[1].state == "held"


def test_required_promises_that_are_open_are_named_together() -> None:
    held = list_guarantees(BACKENDS[2], SANDBOX)

    with pytest.raises(NotAllowed) as caught:
        require_guarantees(held, ("files", "signals", "chmod"), BACKENDS[2])

    assert caught.value.facts == {"missing": ["chmod", "signals"], "backend": BackendKind.LANDLOCK}
    with pytest.raises(NotAllowed):  # the sandbox itself leaves TCP free
        require_guarantees(held, ("files", "tcp"), BACKENDS[2])
    require_guarantees(held, ("files", "trace"), BACKENDS[2])


def test_only_promises_can_be_required() -> None:
    assert check_promises(["files", "abstract sockets"]) == ("files", "abstract sockets")
    with pytest.raises(Malformed):
        check_promises(["files", "fire"])


def test_a_guarantee_is_shown_in_one_line() -> None:
    assert (
        Guarantee(promise=Promise.CHMOD, state=GuaranteeState.OPEN, why="no right for it").text()
        == "chmod: open: no right for it"
    )
    assert (
        Guarantee(promise=Promise.FILES, state=GuaranteeState.HELD, by="landlock").text()
        == "files: held by landlock"
    )
