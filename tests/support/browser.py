"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page

ROOT = Path(__file__).resolve().parents[2]
_UNPACKED = ROOT / ".tools" / "chromium" / "run"
_AXE = (
    Path(os.environ.get("LANDLANE_CLIENTS", str(ROOT / ".clients"))) / "axe/node_modules/axe-core/axe.min.js"
)
LIMIT_MS = 30_000
DESKTOP, PHONE = (1440, 900), (390, 844)
# What axe calls the rules of WCAG 2.2, levels A and AA.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def chromium() -> str:
    """Return the program of the browser; without one the test is not run, and fails where CI is set."""
    found = shutil.which("chromium") or (str(_UNPACKED) if os.access(_UNPACKED, os.X_OK) else "")
    if not found:
        _leave_out("there is no Chromium; scripts/browser.sh gets one")
    return found


def axe() -> str:
    """Return the script that finds barriers; as `chromium` where it is missing."""
    if not _AXE.exists():
        _leave_out("there is no axe-core; scripts/browser.sh gets it")
    return _AXE.read_text(encoding="utf-8")


def _leave_out(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(f"not run: {why}")


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Start a browser, and end it."""
    program = chromium()
    from playwright.sync_api import sync_playwright

    options = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=options)
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A tab of the page, and all that its console said."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        page.set_default_timeout(LIMIT_MS)
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(f"{message.type}: {message.text}")

    @property
    def base(self) -> str:
        return self.page.evaluate("location.origin")

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)
        self.wait_until_live()

    def wait_until_live(self) -> None:
        self.page.wait_for_selector(".live.on", state="attached")

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - innerWidth")

    def barriers(self, script: str) -> list[str]:
        """Return what axe finds."""
        # Through the debugger, which the page's policy does not concern.
        self.page.evaluate(script + "; 0")
        found: dict[str, Any] = self.page.evaluate(
            "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", _RULES
        )
        return [
            f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for one in found["violations"]
            for node in one["nodes"][:3]
        ]


def open_tab(browser: Browser, url: str, size: tuple[int, int] = DESKTOP, scheme: Any = "light") -> Tab:
    """Open a link in a browser of its own, and return its tab once it is live."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",  # colours half way between two themes would count as barriers
    )
    tab = Tab(context.new_page())
    tab.page.goto(url)
    tab.wait_until_live()
    return tab
