"""Kinds, wishes and the choice of a place, case by case."""

from __future__ import annotations

import pytest

from landlane.errors import Malformed
from landlane.settings.model import SlotSettings
from landlane.state import slot_kinds as slots

pytestmark = pytest.mark.unit

KINDS = slots.known_kinds(
    {
        "gpu": SlotSettings(capacity=24),
        "database": SlotSettings(names=("a", "b", "c")),
        "port": SlotSettings(range=(100, 103)),
    }
)


def request(kind: str, *, name: str = "", amount: int = 1, workspace: str = "w") -> slots.SlotRequest:
    return slots.check_slot_request(KINDS, kind, name=name, amount=amount, workspace=workspace)


def choose(
    wanted: slots.SlotRequest, taken: str = "", remembered: str = "", others: str = "", used: str = ""
) -> str:
    return slots.choose_place(
        wanted, taken.split(), remembered, others.split(), lambda place: place not in used.split()
    )


def test_ports_are_there_without_settings() -> None:
    assert slots.known_kinds({})["port"].ports == (20_000, 29_999)


def test_a_port_and_a_name_belong_to_the_workspace_and_an_amount_to_the_call() -> None:
    assert (request("port").name, request("database").name, request("gpu").name) == ("default", "default", "")


@pytest.mark.parametrize(("kind", "amount"), [("port", 2), ("database", 0), ("gpu", 25), ("gpu", -1)])
def test_what_can_never_be_had_is_malformed(kind: str, amount: int) -> None:
    with pytest.raises(Malformed):
        request(kind, amount=amount)


def test_the_place_had_before_comes_first() -> None:
    assert choose(request("database"), remembered="c") == "c"
    assert choose(request("database"), remembered="c", taken="c") == "a"
    assert choose(request("database"), remembered="gone") == "a"


def test_a_place_that_another_workspace_had_comes_last() -> None:
    assert choose(request("database"), others="a b") == "c"
    assert choose(request("database"), others="a b", taken="c") == "a"


def test_a_certain_name_is_that_or_nothing() -> None:
    assert choose(request("database", name="b")) == "b"
    assert choose(request("database", name="b"), taken="b") == ""


def test_every_port_of_the_range_is_tried() -> None:
    taken: list[str] = []
    while place := choose(request("port"), " ".join(taken)):
        taken.append(place)
    assert sorted(taken) == ["100", "101", "102", "103"]
    assert choose(request("port"), used="100 101 103") == "102"


def test_where_a_workspace_begins_to_look_is_its_own() -> None:
    wide = slots.known_kinds({})
    starts = {
        slots.choose_place(
            slots.check_slot_request(wide, "port", name="", amount=1, workspace=f"w{number}"),
            (),
            "",
            (),
            lambda _: True,
        )
        for number in range(20)
    }
    assert len(starts) > 15


def test_a_workspace_is_told_by_machine_and_root_but_shows_neither() -> None:
    answer = {slots.workspace_id(machine, root) for machine in ("m1", "m2") for root in ("/a", "/b")}
    assert len(answer) == 4
    assert all("/" not in one for one in answer)
