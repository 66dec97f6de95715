"""What every request must show before anything else looks at it: host, origin, cookie, key, and token.

- `Host` is one of ours, so that a name that an attacker points at this machine gets no answer.
- A request that changes something, and each event stream, comes from our origin and is signed by a tab.
- Everything else than the sign-in page needs the cookie of a browser that has signed in.
"""

from __future__ import annotations

import socket

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse

from landlane.error_json import failure_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from landlane.web.keys import Keys
    from landlane.web.site import Site

COOKIE = "landlane"
SIGNATURE, TOKEN = "x-landlane-signature", "x-landlane-token"
STREAM = "/live"
_OPEN = ("/health", "/sign-in", "/static/")  # needs no cookie
_SAFE = ("GET", "HEAD")
MOST_BODY = 1_000_000
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types landlane"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Passes on the requests that show what they must, with the browser in `scope["browser"]`."""

    def __init__(self, app: ASGIApp, site: Site, keys: Keys) -> None:
        self._app = app
        self._site = site
        self._keys = keys
        self._origins = _origins(site)
        self._hosts = {origin.partition("://")[2] for origin in self._origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(message)
            await send(message)

        body = await _read_body(scope, receive)
        refused = self._refuse(scope, body)
        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        await self._app(scope, _replay(body or b"", receive), send_with_headers)

    def _refuse(self, scope: Scope, body: bytes | None) -> Response | None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if not self._is_our_host(headers.get("host", ""), scope):
            return PlainTextResponse("This host name is not that of the page.\n", 421)
        if body is None:
            return _failure(413, "TOO_BIG", "the request is too big", "send less at once")
        is_changing = method not in _SAFE
        origin = headers.get("origin", "")
        if (is_changing or origin) and not self._is_our_origin(origin, headers):
            return _failure(403, "OTHER_ORIGIN", "the request comes from another page", "use the page itself")
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return _failure(403, "OTHER_ORIGIN", "the request comes from another page", "use the page itself")
        cookie = _cookie(headers)
        browser = self._keys.find_browser(cookie)
        scope["browser"], scope["cookie"] = browser, cookie
        if path.startswith(_OPEN):
            return None
        if browser is None:
            if method in _SAFE and "text/html" in headers.get("accept", ""):
                return RedirectResponse("/sign-in", 303)
            return _failure(401, "NOT_SIGNED_IN", "this browser has not signed in", "landlane ui")
        if is_changing or path == STREAM:
            query = scope["query_string"].decode("latin-1")
            target = path + (f"?{query}" if query else "")
            signature = headers.get(SIGNATURE, "")
            if not self._keys.check_signature(browser, method, target, body, signature):
                return _failure(403, "NO_KEY", "this tab has no key: it can look, but not act", "landlane ui")
        if is_changing and not self._keys.is_csrf_token(browser, headers.get(TOKEN, "")):
            return _failure(403, "NO_TOKEN", "the page is out of date", "load it again")
        if is_changing and self._site.is_read_only and path != "/sign-out":
            return _failure(403, "READ_ONLY", "this page is read-only", "use the commands that it shows")
        self._keys.note_use(browser)
        return None

    def _is_our_host(self, host: str, scope: Scope) -> bool:
        if host in self._hosts:
            return True
        if self._site.is_local or self._site.url:
            return False
        server: Any = scope.get("server") or ("", 0)
        address = f"[{server[0]}]" if ":" in server[0] else server[0]
        return host == f"{address}:{self._site.port}"  # an address cannot be pointed elsewhere

    def _is_our_origin(self, origin: str, headers: Headers) -> bool:
        if origin in self._origins:
            return headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
        scheme = "https" if self._site.has_tls else "http"
        has_no_name = not (self._site.is_local or self._site.url)
        return has_no_name and origin == f"{scheme}://{headers.get('host', '')}"


def _origins(site: Site) -> set[str]:
    scheme = "https" if site.has_tls else "http"
    found = {site.origin}
    if site.is_local:
        found.add(f"{scheme}://{site.name}:{site.port}")
    else:
        found.add(f"{scheme}://{socket.gethostname()}:{site.port}")
    return found


def _cookie(headers: Headers) -> str:
    """Return our cookie; a cookie of another server on this host may stand before it, with another name."""
    for part in headers.get("cookie", "").split(";"):
        name, _, text = part.strip().partition("=")
        if name == COOKIE:
            return text
    return ""


def _failure(status: int, code: str, message: str, hint: str) -> Response:
    return JSONResponse(failure_json(code, message, hint), status)


def _add_headers(message: MutableMapping[str, Any]) -> None:
    present = {name.lower() for name, _ in message["headers"]}
    added = [
        (name.encode(), text.encode()) for name, text in _HEADERS.items() if name.encode() not in present
    ]
    if b"cache-control" not in present:
        added.append((b"cache-control", b"no-store"))
    message["headers"] = [*message["headers"], *added]


async def _read_body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too big."""
    if scope["method"] in _SAFE:
        return b""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives the body that was read, then what comes after it."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
