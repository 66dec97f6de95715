"""The stream of events: nothing is missed, whatever breaks in between."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.page import PageClient, open_page, stop_page

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ENTRIES = int(os.environ.get("LANDLANE_PAGE_ENTRIES", "30"))


@pytest.mark.soak
@pytest.mark.promise(
    "page.no-lost-events", "A page that was away is sent every journal entry that it missed."
)
def test_a_reader_that_comes_back_gets_what_it_missed(served: Shell, page: PageClient) -> None:
    served.run_json("claim", "a.py", "--as", "ann")
    stream = page.follow()
    hello = next(stream)
    served.run_json("claim", "b.py", "--as", "ann")
    seen = next(stream)
    assert (hello["event"], seen["event"], seen["data"]["kind"]) == ("hello", "entry", "claim.taken")
    stream.close()
    stop_page(served)
    for number in range(ENTRIES):
        served.run_json("claim", f"c{number}.py", "--as", "ann")
    last = served.position()

    again = PageClient(open_page(served)["url"])
    again.sign_in()
    missed = list(itertools.islice(again.follow(after=int(seen["id"])), 1 + last - int(seen["id"])))

    assert [int(event["id"]) for event in missed[1:]] == list(range(int(seen["id"]) + 1, last + 1))
    assert missed[-1]["data"]["text"] == f"claimed c{ENTRIES - 1}.py"


def test_a_hidden_tab_hears_only_of_what_needs_a_person(served: Shell, page: PageClient) -> None:
    stream = page.follow(only="needs")
    assert [next(stream)["event"], next(stream)["data"]] == ["hello", []]
    served.run_json("claim", "a.py", "--as", "ann")
    served.run_json("task", "add", "Ask", "--path", "a.py", "--as", "ann")
    served.run_json("next", "--as", "ann")
    served.run("gate", "ask", "T1", "--why", "Which colour?", "--as", "ann")

    event = next(stream)

    assert event["event"] == "needs"
    assert [one["id"] for one in event["data"]] == ["G1"]
    stream.close()


def test_a_browser_that_signs_out_hears_nothing_more(served: Shell, page: PageClient) -> None:
    stream = page.follow()
    assert next(stream)["event"] == "hello"
    headers = page.act_headers("x", "{}")
    headers["X-Landlane-Signature"] = page.sign("POST", "/sign-out", "{}")
    assert page.request("POST", "/sign-out", headers, "{}").status == 200
    served.run_json("claim", "a.py", "--as", "ann")

    assert list(stream) == []
