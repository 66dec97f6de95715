"""The pages and actions of the web page, as one ASGI application."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import traceback

from starlette.applications import Starlette
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from landlane.error_json import as_landlane_error, error_json, failure_json
from landlane.errors import LandlaneError, Malformed, NotAllowed, Stale
from landlane.status.headline import repository_name
from landlane.version import __version__
from landlane.web.actions import ACTIONS, act
from landlane.web.guard import COOKIE, Guard
from landlane.web.icons import sprite
from landlane.web.keys import BROWSER_SECONDS, Locked
from landlane.web.pages import PAGES
from landlane.web.render import STATIC, make_environment
from landlane.web.visit import Visit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from landlane.web.keys import Keys
    from landlane.web.live import Feed
    from landlane.web.pages import Page
    from landlane.web.site import Site
    from landlane.web.source import Source

_CLIENT_ERRORS = {Malformed: 400, NotAllowed: 403, Stale: 409}
_MOST_SECONDS_KEPT = 31_536_000


def make_app(source: Source, site: Site, keys: Keys, feed: Feed) -> ASGIApp:
    """Return the application, with the guard before everything."""
    page = _Pages(source, site, keys, feed)
    routes = [
        Route("/health", page.health),
        Route("/sign-in", page.sign_in_page, methods=["GET"]),
        Route("/sign-in", page.sign_in, methods=["POST"]),
        Route("/sign-in/{path:path}", page.sign_in_page, methods=["GET"]),
        Route("/sign-out", page.sign_out, methods=["POST"]),
        Route("/live", page.live),
        Route("/do/{action}", page.act, methods=["POST"]),
        Mount("/static", _Static(directory=STATIC)),
        *(Route(path, page.shower(one)) for path, one in PAGES.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={404: page.not_found})
    return Guard(app, site, keys)


class _Static(StaticFiles):
    """Files of the page: their addresses change with their content, so browsers may keep them."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["cache-control"] = f"private, max-age={_MOST_SECONDS_KEPT}, immutable"
        return response


class _Pages:
    """Answers requests. Handlers that read the store run in threads."""

    def __init__(self, source: Source, site: Site, keys: Keys, feed: Feed) -> None:
        self._source = source
        self._site = site
        self._keys = keys
        self._feed = feed
        self._templates = make_environment()
        self._sprite = sprite()

    def health(self, _: Request) -> Response:
        return PlainTextResponse(f"landlane {self._site.name}\n")

    # --------------------------------------------------------------------------------------------- sign-in

    def sign_in_page(self, request: Request) -> Response:
        template = self._templates.get_template("sign_in.html")
        signed_in = request.scope["browser"] is not None
        return HTMLResponse(template.render(is_signed_in=signed_in))

    async def sign_in(self, request: Request) -> Response:
        """Take a link's secret or a code, and give the browser its cookie and the tab its key."""
        given = _read_json(await request.body())
        cookie = request.scope["cookie"]
        try:
            if given.get("code"):
                found = self._keys.use_code(str(given["code"]), cookie)
            else:
                found = self._keys.use_link(str(given.get("token", "")), cookie)
        except Locked as locked:
            why = f"too many wrong codes; none is accepted for {round(locked.seconds)} s"
            return JSONResponse(failure_json("LOCKED", why, "wait, then type the code again"), 429)
        if found is None:
            why = "that code is wrong or too old" if given.get("code") else "this link was used or is too old"
            return JSONResponse(failure_json("BAD_LINK", why, "landlane ui"), 403)
        response = JSONResponse({"ok": True, "key": found.key})
        response.set_cookie(
            COOKIE,
            found.cookie,
            max_age=BROWSER_SECONDS,
            httponly=True,
            samesite="lax",
            secure=self._site.origin.startswith("https"),
            path="/",
        )
        return response

    def sign_out(self, request: Request) -> Response:
        self._keys.sign_out(request.scope["browser"])
        response = JSONResponse({"ok": True})
        response.delete_cookie(COOKIE)
        return response

    # ------------------------------------------------------------------------------------ pages and actions

    def shower(self, page: Page) -> Callable[[Request], Response]:
        """Return the handler of a page."""

        def show(request: Request) -> Response:
            return self._show(request, page)

        return show

    def _visit(self, request: Request) -> Visit:
        browser = request.scope["browser"]
        return Visit(
            source=self._source,
            person=browser.person,
            is_read_only=self._site.is_read_only,
            parameters={**request.path_params},
            query=dict(request.query_params),
            position=self._feed.position,
        )

    def _show(self, request: Request, page: Page) -> Response:
        visit = self._visit(request)
        try:
            facts = page.read(visit)
        except Exception as error:  # noqa: BLE001 - whatever it is, the page says what happened
            if not isinstance(error, LandlaneError):
                traceback.print_exc()  # into the server's log
            return self._show_error(visit, request, as_landlane_error(error))
        if isinstance(facts, str):
            return RedirectResponse(facts, 303)
        text = self._render(request, page.template, visit, facts)
        return _with_tag(request, text)

    def _show_error(self, visit: Visit, request: Request, error: LandlaneError) -> Response:
        code = 404 if error.code.startswith(("UNKNOWN", "NO_")) else _status_of(error)
        facts = {"title": error.message, "current": "", "error": error}
        return HTMLResponse(self._render(request, "error.html", visit, facts), code)

    def _render(self, request: Request, name: str, visit: Visit, facts: dict[str, Any]) -> str:
        common = {
            "sprite": self._sprite,
            "repository": repository_name(visit.repo),
            "person": visit.person,
            "token": self._keys.csrf_token(request.scope["browser"]),
            "is_read_only": visit.is_read_only,
            "can_decide": visit.can_decide,
            "position": visit.position,
            "version": __version__,
            "now": visit.now,
            "settings_error": self._source.settings_error,
        }
        return self._templates.get_template(name).render({**common, **visit.frame(), **facts})

    def not_found(self, request: Request, _: Exception) -> Response:
        if request.scope.get("browser") is None:
            return PlainTextResponse("There is no such page.\n", 404)
        error = Malformed("there is no such page", code="UNKNOWN_PAGE", hint="go back to the overview")
        return self._show_error(self._visit(request), request, error)

    async def act(self, request: Request) -> Response:
        """Run an action of a person and return the answer that the command has with --json."""
        name = request.path_params["action"]
        given = _read_json(await request.body())
        if name not in ACTIONS:
            return JSONResponse(failure_json("UNKNOWN_ACTION", f"no action {name[:40]}", ""), 404)
        visit = self._visit(request)
        try:
            answer = await asyncio.to_thread(act, visit, name, given)
        except Exception as error:  # noqa: BLE001 - whatever it is, the page gets one answer in the known form
            store = self._source.repo.store
            return JSONResponse(error_json(error, store.wall_of), _status_of(error))
        return JSONResponse(answer)

    async def live(self, request: Request) -> Response:
        """Stream the journal; with `only=needs` only what waits for a person."""
        if self._feed.is_full:
            why = failure_json("TOO_MANY", "too many tabs follow this page", "close some of them")
            return JSONResponse(why, 503)
        last = request.headers.get("last-event-id", "") or request.query_params.get("after", "")
        after = int(last) if last.isdecimal() and len(last) < 18 else 0
        only_needs = request.query_params.get("only") == "needs"
        person, cookie = request.scope["browser"].person, request.scope["cookie"]

        def is_signed_in() -> bool:
            return self._keys.find_browser(cookie) is not None

        stream = self._feed.stream(after, person, only_needs, is_signed_in)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _status_of(error: Exception) -> int:
    if isinstance(error, LandlaneError) and error.code == "UNEXPECTED":
        return 500
    for kind, status in _CLIENT_ERRORS.items():
        if isinstance(error, kind):
            return status
    return 409 if isinstance(error, LandlaneError) else 500


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _with_tag(request: Request, text: str) -> Response:
    """Return a page, or only that it has not changed since the tab read it."""
    tag = f'"{hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]}"'
    headers = {"etag": tag, "x-landlane-now": str(round(time.time() * 1000))}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, headers=headers)
