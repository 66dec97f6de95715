"""The page in a real browser, with real agents at work."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.browser import DESKTOP, PHONE, axe, open_tab, running_browser
from tests.support.busy import make_busy
from tests.support.page import PageClient, open_page, stop_page
from tests.support.shell import run_at_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.support.shell import Shell

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.xdist_group("browser")]

# All pages in both themes and widths only in `make soak`.
EVERY = bool(os.environ.get("LANDLANE_EVERY_PAGE"))
SOME_PAGES = ("/task/T1", "/item/G1", "/claims?path=src/api.py")
EVERY_PAGE = (
    *(
        "/tasks",
        "/task/T1",
        "/task/T3",
        "/agents",
        "/agent/ann",
        "/landing",
        "/landing/L1",
        "/landing/target",
    ),
    *(
        "/claims",
        "/claims?path=src/api.py",
        "/plan",
        "/journal",
        "/rescue",
        "/workspace/W1",
        "/state",
        "/rules",
    ),
    *(
        "/doctor",
        "/settings",
        "/item/G1",
        "/item/L1",
        "/review/V1",
        "/review/V1?view=unified",
        "/search?q=pay",
    ),
)


@pytest.fixture
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture
def busy(served: Shell) -> Iterator[Shell]:
    """A repository with agents at work."""
    with make_busy(served):
        yield served


def test_the_page_shows_who_needs_what(busy: Shell, browser: Browser) -> None:
    tab = open_tab(browser, open_page(busy)["url"])
    page, rules = tab.page, axe()

    assert page.title().startswith("3 need you")
    assert page.locator(".need").count() == 3
    assert "Run migration 0042 on staging?" in page.locator("#G1").inner_text()
    assert "dan holds src/api.py" in page.locator("#row-eve").inner_text()
    assert "until L1" in page.locator("#map").inner_text()
    assert tab.overflow() <= 0
    assert tab.barriers(rules) == []
    page.emulate_media(color_scheme="dark")
    assert tab.barriers(rules) == []
    page.emulate_media(color_scheme="light")
    tab.go("/review/V1")
    assert tab.barriers(rules) == []
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    tab.go("/")
    assert tab.overflow() <= 0
    assert tab.barriers(rules) == []
    assert tab.said == []


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"] if EVERY else ["dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE] if EVERY else [PHONE])
def test_every_page_is_free_of_barriers_and_errors(
    busy: Shell, browser: Browser, scheme: str, size: tuple[int, int]
) -> None:
    tab = open_tab(browser, open_page(busy)["url"], size, scheme)
    rules = axe()
    found = {}
    for path in EVERY_PAGE if EVERY else SOME_PAGES:
        tab.go(path)
        found[path] = [
            *tab.barriers(rules),
            *([f"{tab.overflow()} px too wide"] if tab.overflow() > 0 else []),
        ]

    assert {path: barriers for path, barriers in found.items() if barriers} == {}
    assert tab.said == []


@pytest.mark.promise("page.live", "A change of the store is shown in an open page without a click.")
def test_a_person_works_in_the_page(busy: Shell, browser: Browser) -> None:
    mine, theirs = open_tab(browser, open_page(busy)["url"]), open_tab(browser, open_page(busy)["url"])

    # Live, while a text is selected, an evidence is open, and something is typed.
    mine.page.locator("#L1 summary").click()
    mine.page.locator("#path-q").fill("src")
    mine.page.evaluate("getSelection().selectAllChildren(document.querySelector('#G1 h3'))")
    started = time.monotonic()
    busy.run_json("claim", "src/search.py", "--as", "fay")
    mine.page.get_by_text("search.py").first.wait_for()
    assert time.monotonic() - started < 10
    assert mine.page.evaluate("String(getSelection())") == "Run migration 0042 on staging?"
    assert mine.page.locator("#L1 details").get_attribute("open") is not None
    assert mine.page.locator("#path-q").input_value() == "src"

    # Approve by a key; the other tab shows it, and an answer that comes late is refused there.
    stale = theirs.page.locator('#G1 [data-key="a"]').get_attribute("data-given")
    mine.page.locator("#G1").click()
    mine.page.keyboard.press("a")
    mine.page.get_by_text("Approved G1").wait_for()
    theirs.page.locator("#G1").wait_for(state="detached")
    late = theirs.page.evaluate("given => landlane.send('approve', JSON.parse(given))", stale)
    assert late["code"] == "NOT_WAITING"
    assert busy.run_json("gate", "show", "G1")["gate"]["answered_by"] == "pat"

    # A rejection needs a reason, which reaches the agent.
    mine.page.locator('#L1 [data-do="reject"]').click()
    mine.page.locator("#ask-y").click()
    assert mine.page.locator("#ask").get_attribute("open") is not None  # nothing was sent yet
    mine.page.locator("#ask-w").fill("keep the old form")
    mine.page.locator("#ask-y").click()
    mine.page.locator("#L1").wait_for(state="detached")
    assert busy.run_json("queue", "list", "--all")["landings"][0]["state"] == "bounced"

    # A comment on a line becomes a finding.
    mine.go("/review/V1")
    mine.page.locator('tr[data-line="4"]').first.click()
    mine.page.keyboard.press("m")
    mine.page.keyboard.type("which currency?")
    mine.page.get_by_role("button", name="Keep").click()
    mine.page.locator("#summary").fill("not yet")
    mine.page.get_by_role("button", name="Send back with 1 comment").click()
    mine.page.locator("#verdict").wait_for(state="detached")
    finding = busy.run_json("review", "show", "V1")["review"]["findings"][0]
    assert (finding["path"], finding["line"], finding["text"]) == ("src/price.py", 4, "which currency?")

    # Pause everything, and resume.
    mine.go("/")
    mine.page.keyboard.press("p")
    mine.page.locator("#ask-w").fill("lunch")
    mine.page.locator("#ask-y").click()
    mine.page.get_by_role("button", name="Resume").first.wait_for()
    assert busy.run_json("status")["pool"]["paused"] == "lunch"
    theirs.page.get_by_role("button", name="Resume").first.wait_for()
    assert mine.said == []
    assert [line for line in theirs.said if "403" not in line] == []  # the late answer


@pytest.mark.soak
@pytest.mark.skipif(not EVERY, reason="takes long: make soak")
def test_the_page_comes_back_after_its_server_was_away(busy: Shell, browser: Browser) -> None:
    tab = open_tab(browser, open_page(busy)["url"])
    stop_page(busy)
    tab.page.locator("#offline").wait_for()

    busy.run_json("claim", "README.md", "--as", "gus")
    open_page(busy)

    tab.page.locator("#row-gus").wait_for()
    tab.page.locator("#offline").wait_for(state="hidden")
    assert tab.page.evaluate("landlane.send('pause', {why: 'back'})")["ok"]


class _Recorder(http.server.BaseHTTPRequestHandler):
    """A server of an agent: it records all that it is sent, and serves a page that tries everything."""

    seen: list[tuple[str, str, dict[str, str], bytes]] = []  # noqa: RUF012 - one test uses it
    script = ""

    def _take(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers.items()), body))
        text = f"<title>dev server</title><script>{self.script}</script>".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = _take  # noqa: N815 - the names that http.server looks for

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def _recording(script: str) -> Iterator[int]:
    _Recorder.seen, _Recorder.script = [], script
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.promise(
    "page.other-servers",
    "Another server on this machine, opened in the same browser, cannot act in the page.",
)
def test_another_server_on_loopback_gets_nothing_it_can_use(served: Shell, browser: Browser) -> None:
    tab = open_tab(browser, open_page(served)["url"])
    page = PageClient(tab.base + "/")
    attack = f"""
      const send = (mode) => fetch("{tab.base}/do/pause", {{method: "POST", mode, credentials: "include",
        headers: {{"Content-Type": "text/plain"}}, body: '{{"why": "attack"}}'}}).catch(() => 0);
      Promise.all([send("no-cors"), send("cors"), fetch("{tab.base}/", {{credentials: "include"}})
        .then(answer => answer.text()).catch(() => 0)])
        .then(got => {{ document.title = "tried " + typeof got[2]; }});
    """
    before = served.position()

    with _recording(attack) as port:
        for host in ("127.0.0.1", "localhost", page.host.partition(":")[0]):
            other = tab.page.context.new_page()
            other.goto(f"http://{host}:{port}/")
            other.wait_for_function("document.title.startsWith('tried')")
            assert other.title() == "tried number", "it could read the page"
            assert other.evaluate("document.cookie") == ""
            assert other.evaluate("Object.keys(sessionStorage).concat(Object.keys(localStorage))") == []
        recorded = list(_Recorder.seen)
    cookies = {headers["Cookie"] for *_, headers, _ in recorded if "Cookie" in headers}
    assert cookies, (
        "browsers send our cookie to every port of our host; this test is about what that is worth"
    )
    for cookie in cookies:
        for path in ("/do/pause", "/do/approve", "/sign-out"):
            for headers in (
                {},
                {"Origin": page.origin},
                {"Origin": page.origin, "X-Landlane-Token": _token(page, cookie)},
            ):
                sent = {**headers, "Cookie": cookie, "Content-Type": "application/json"}
                assert page.request("POST", path, sent, json.dumps({"why": "attack"})).status == 403

    assert served.position() == before


def _token(page: PageClient, cookie: str) -> str:
    page.cookie = cookie
    return page.page_token()


@pytest.mark.soak
@pytest.mark.skipif(not EVERY, reason="takes long: make soak")
def test_hostile_titles_run_nothing(served: Shell, browser: Browser) -> None:
    title = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    served.run_json("task", "add", title, "--path", "a'><script>alert(1)</script>.py", "--as", "lead")
    served.run_json("claim", "b<svg onload=alert(1)>.py", "--as", "ann", "--note", "\x1b[2J<b>note</b>")
    tab = open_tab(browser, open_page(served)["url"])

    for path in ("/tasks", "/task/T1", "/claims", "/plan", "/journal", "/"):
        tab.go(path)
        assert tab.page.title() != "owned"
    tab.page.get_by_text("b<svg onload=alert(1)>.py").first.wait_for()
    assert tab.page.locator("main script, main img").count() == 0
    assert tab.said == []


@pytest.mark.soak
@pytest.mark.skipif(not EVERY, reason="takes long: make soak")
def test_read_only_pages_have_no_buttons_that_act(served: Shell, browser: Browser) -> None:
    code, output = run_at_terminal(served, "ui", "--json", "--read-only")
    assert code == 0, output
    tab = open_tab(browser, json.loads(output)["url"])

    assert tab.page.locator("[data-do]:not([data-do=sign-out])").count() == 0
