"""Only people get a link, it works once, and nothing else lets a browser in."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

import pytest

from tests.support.page import PageClient, open_page
from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.promise("page.people-only", "Only a person at a terminal gets a link to the page.")
def test_an_agent_gets_no_link(shell: Shell) -> None:
    for words in ((), ("--link",), ("--stop",)):
        _check_refused(shell, words)

    assert not (shell.state / "ui" / "site.json").exists()


def _check_refused(shell: Shell, words: tuple[str, ...]) -> None:
    shell.run_error("NOT_A_PERSON", "ui", *words, exit=6)  # there is no terminal
    shell.run_error("NOT_A_PERSON", "ui", *words, "--as", "ann", exit=6)
    code, output = run_at_terminal(shell, "ui", "--json", *words, CLAUDECODE="1")
    assert (code, json.loads(output)["code"]) == (6, "NOT_A_PERSON")
    code, output = run_at_terminal(shell, "ui", "--json", *words, LANDLANE_AGENT="ann")
    assert (code, json.loads(output)["code"]) == (6, "NOT_A_PERSON")


@pytest.mark.promise("page.one-time-link", "A link to the page signs in one browser, once.")
def test_a_link_works_once(served: Shell) -> None:
    url = open_page(served, "--no-open")["url"]
    first, second = PageClient(url), PageClient(url)

    signed_in = first.sign_in()
    assert signed_in.status == 200
    assert second.sign_in().json()["code"] == "BAD_LINK"
    assert first.get().status == 200
    refused = second.get()
    assert (refused.status, refused.headers["location"]) == (303, "/sign-in")
    cookie = signed_in.headers["set-cookie"].lower()
    assert first.host.startswith("landlane-")
    assert first.host.partition(":")[0].endswith(".localhost")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "domain" not in cookie


def test_the_folder_is_private_and_holds_no_secret_that_signs_in(served: Shell, page: PageClient) -> None:
    open_page(served)  # a link that was not used yet
    folder = served.state / "ui"
    files = [path for path in folder.rglob("*") if path.is_file()]
    text = "".join(path.read_text(errors="replace") + path.name for path in files)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert page.cookie.partition("=")[2] not in text
    assert page.token not in text


def test_a_code_signs_in_another_browser_once_and_wrong_ones_lock(served: Shell) -> None:
    answer = open_page(served, "--link")
    client, again = PageClient(answer["url"]), PageClient(answer["url"])
    assert client.sign_in(code=answer["code"].lower().replace("-", " ")).status == 200
    assert again.sign_in(code=answer["code"]).json()["code"] == "BAD_LINK"

    code, site = open_page(served, "--link")["code"], open_page(served)
    other, thief = PageClient(site["url"]), PageClient(site["url"])
    wrong = [thief.sign_in(code=f"AAAAA-AAAA{number}") for number in "2345"]
    assert {one.json()["code"] for one in wrong} == {"BAD_LINK"}
    assert thief.sign_in(code=code).json()["code"] == "LOCKED"  # also the right one
    assert other.sign_in().status == 200  # links are not affected


def test_the_page_keeps_its_address_and_its_browsers_over_a_restart(served: Shell, page: PageClient) -> None:
    code, output = run_at_terminal(served, "ui", "--stop", "--json")
    assert (code, json.loads(output)["ended"]) == (0, True)
    with pytest.raises(ConnectionRefusedError):
        page.get()

    again = PageClient(open_page(served)["url"])

    assert again.host == page.host
    assert page.get().status == 200
    assert page.act("pause", why="lunch").json()["ok"]


def test_another_port_means_another_host_and_signs_all_out(served: Shell, page: PageClient) -> None:
    again = open_page(served)
    assert again["port"] == page.port  # a second start finds the page that runs
    assert open_page(served, "--port", "0")["port"] == page.port

    run_at_terminal(served, "ui", "--stop")
    moved = PageClient(open_page(served, "--port", "0")["url"])

    assert moved.host != page.host
    moved.cookie = page.cookie
    assert moved.get().status == 303


def test_signing_out_forgets_the_browser(served: Shell, page: PageClient) -> None:
    headers = page.act_headers("x", "{}")
    headers["X-Landlane-Signature"] = page.sign("POST", "/sign-out", "{}")
    assert page.request("POST", "/sign-out", headers, "{}").status == 200

    assert page.get().status == 303


def test_read_only_refuses_every_action_and_other_addresses_are_read_only(served: Shell) -> None:
    client = PageClient(open_page(served, "--read-only")["url"])
    client.sign_in()

    assert client.get().status == 200
    assert 'data-do="pause"' not in client.get().body
    assert client.act("pause", why="x").json()["code"] == "READ_ONLY"
    assert open_page(served, "--host", "0.0.0.0")["read_only"] is True  # without TLS
