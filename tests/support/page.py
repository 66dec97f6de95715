"""The web page as a browser sees it, without a browser: sign in, read, act, follow."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import re
import secrets
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from landlane.web.start import stop_server
from tests.support.shell import run_at_terminal
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tests.support.shell import Shell

LIMIT_SECONDS = 30.0


class Answered:
    """An answer of the server."""

    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:500]}"


def open_page(shell: Shell, *words: str) -> dict[str, Any]:
    """Start the page as a person at a terminal, and return the answer of the command."""
    code, output = run_at_terminal(shell, "ui", "--json", *words)
    assert code == 0, output
    return json.loads(output)


def stop_page(shell: Shell) -> None:
    stop_server(str(shell.state))


class PageClient:
    """One tab of one browser."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host = parts.netloc
        self.port = int(parts.port or 0)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.token = parts.fragment
        self.cookie = ""
        self.key = ""

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: str = ""
    ) -> Answered:
        """Send exactly this, and return the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            sent = {"Host": self.host, **(headers or {})}
            connection.request(method, path, body.encode() if body else None, sent)
            answer = connection.getresponse()
            found = {name.lower(): text for name, text in answer.getheaders()}
            return Answered(answer.status, found, answer.read().decode())
        finally:
            connection.close()

    def sign_in(self, **given: str) -> Answered:
        """Sign in by the link, or by a code."""
        body = json.dumps(given or {"token": self.token})
        answer = self.request("POST", "/sign-in", {"Origin": self.origin, **self.cookie_header}, body)
        if answer.status == 200:
            self.key = answer.json()["key"]
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return answer

    @property
    def cookie_header(self) -> dict[str, str]:
        return {"Cookie": self.cookie} if self.cookie else {}

    def get(self, path: str = "/", **headers: str) -> Answered:
        return self.request("GET", path, {"Accept": "text/html", **self.cookie_header, **headers})

    def page_token(self) -> str:
        found = re.search(r'name="landlane-token" content="([0-9a-f]+)"', self.get().body)
        assert found is not None
        return found[1]

    def sign(self, method: str, path: str, body: str = "", at: float | None = None) -> str:
        """Return the signature of a request, as the script of the page makes it."""
        sent_at, nonce = round((time.time() if at is None else at) * 1000), secrets.token_hex(12)
        message = f"{method}\n{path}\n{sent_at}\n{nonce}\n{body}"
        digest = hmac.new(self.key.encode(), message.encode(), hashlib.sha256).hexdigest()
        return f"{sent_at}.{nonce}.{digest}"

    def act_headers(self, action: str, body: str) -> dict[str, str]:
        """Return all that an action needs."""
        return {
            "Origin": self.origin,
            **self.cookie_header,
            "X-Landlane-Token": self.page_token(),
            "X-Landlane-Signature": self.sign("POST", f"/do/{action}", body),
        }

    def act(self, action: str, **given: object) -> Answered:
        """Act as the page's buttons do."""
        body = json.dumps(given)
        return self.request("POST", f"/do/{action}", self.act_headers(action, body), body)

    def follow(self, after: int = 0, only: str = "") -> Generator[dict[str, Any]]:
        """Yield the events of the stream; close the generator to leave."""
        path = "/live" + (f"?only={only}" if only else "")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        headers = {"Host": self.host, **self.cookie_header, "X-Landlane-Signature": self.sign("GET", path)}
        if after:
            headers["Last-Event-ID"] = str(after)
        try:
            connection.request("GET", path, None, headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            event: dict[str, Any] = {}
            while line := answer.readline().decode():
                name, _, text = line.rstrip("\n").partition(": ")
                if not name and event:
                    yield event
                    event = {}
                elif name in ("id", "event"):
                    event[name] = text
                elif name == "data":
                    event["data"] = json.loads(text)
        finally:
            connection.close()

    def wait_for(self, text: str, path: str = "/") -> str:
        """Return the page once it shows a text."""
        found = [""]

        def has_text() -> bool:
            found[0] = self.get(path).body
            return text in found[0]

        wait_until(has_text)
        return found[0]
