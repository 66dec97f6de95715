"""The server on the official SDK: tools, resources, subscriptions and progress, for both protocols."""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp.shared.exceptions import MCPError

from landlane.error_json import error_json
from landlane.errors import LandlaneError
from landlane.mcp.background_jobs import Jobs
from landlane.mcp.call import Call
from landlane.mcp.resources import read_resource
from landlane.mcp.subscriptions import Watch
from landlane.mcp.tool_caller import Starter
from landlane.mcp.tool_schemas import INSTRUCTIONS, NAME, RESOURCES, TOOLS
from landlane.mcp.tools import answer
from landlane.text import in_json, in_lines, in_one_line
from landlane.values import replace
from landlane.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.server.models import InitializationOptions

    from landlane.mcp.open_repositories import RepositoryPool

    RequestContext = ServerRequestContext[Any, Any]


_BEAT_SECONDS = 5.0
_MOST_CALLS = 64
_SUBSCRIBERS = 256


class LandlaneServer:
    """One server, with its subscriptions."""

    def __init__(self, pool: RepositoryPool, starter_of: Callable[[RequestContext], Starter]) -> None:
        """`starter_of` returns what is known of a caller before its call is read."""
        self._pool = pool
        self._starter_of = starter_of
        self._jobs = Jobs()
        self._limiter: anyio.CapacityLimiter | None = None
        self._bus = InMemorySubscriptionBus()
        self._subscribed: dict[str, dict[int, Any]] = {}
        self._watch = Watch(pool, self._publish)
        tools = [types.Tool.model_validate(tool) for tool in TOOLS]
        resources = [types.Resource.model_validate(resource) for resource in RESOURCES]
        self.sdk: Server[Any] = Server(
            NAME,
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=self._lifespan,
            on_list_tools=partial(_listed, types.ListToolsResult(tools=tools)),
            on_call_tool=self._call,
            on_list_resources=partial(_listed, types.ListResourcesResult(resources=resources)),
            on_list_resource_templates=partial(
                _listed, types.ListResourceTemplatesResult(resource_templates=[])
            ),
            on_read_resource=self._read,
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_subscriptions_listen=self._listen,
        )
        self._listening = ListenHandler(self._bus)

    @property
    def options(self) -> InitializationOptions:
        """Return the server's introduction for the older protocol."""
        return self.sdk.create_initialization_options(NotificationOptions())

    @asynccontextmanager
    async def _lifespan(self, _: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        self._limiter = anyio.CapacityLimiter(_MOST_CALLS)
        try:
            yield {}
        finally:
            self._watch.close()

    async def _call(
        self, context: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        given = params.arguments or {}
        given_up = anyio.Event()
        waiting = _Waiting(context)
        starter = self._starter_of(context)
        work = partial(self._answer, starter, params.name, given, _meta_of(context), waiting, given_up)
        found: dict[str, Any] = {}
        async with anyio.create_task_group() as side:
            side.start_soon(waiting.beat)
            try:
                found = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)
            finally:
                given_up.set()
                side.cancel_scope.cancel()
        text = in_json(json.dumps(found, ensure_ascii=False))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=found,
            is_error=not found["ok"],
        )

    def _answer(
        self,
        starter: Starter,
        name: str,
        given: Mapping[str, Any],
        meta: Mapping[str, Any],
        waiting: _Waiting,
        given_up: anyio.Event,
    ) -> dict[str, Any]:
        """Return a tool's answer; runs in a thread, since the operations are blocking."""
        try:
            with self._pool.borrow() as repo:
                return answer(
                    Call(
                        repo=repo,
                        pool=self._pool,
                        jobs=self._jobs,
                        starter=starter,
                        tool=name,
                        given=given,
                        meta=meta,
                        report=waiting.report,
                        is_given_up=given_up.is_set,
                    )
                )
        except LandlaneError as error:
            return error_json(error)

    async def _read(
        self, _: RequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)

        def read() -> tuple[str, str]:
            with self._pool.borrow() as repo:
                return read_resource(repo, uri)

        try:
            text, kind = await anyio.to_thread.run_sync(read, limiter=self._limiter)
        except LandlaneError as error:
            code = types.INVALID_PARAMS if error.code == "UNKNOWN_RESOURCE" else types.INTERNAL_ERROR
            raise MCPError(code, f"{error.message} ({error.code}). {error.hint}", {"uri": uri}) from error
        content = types.TextResourceContents(uri=uri, mime_type=kind, text=in_lines(text))
        return types.ReadResourceResult(contents=[content])

    async def _subscribe(
        self, context: RequestContext, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        known = self._subscribed.setdefault(uri, {}) if uri in _URIS else {}
        if uri not in _URIS or len(known) >= _SUBSCRIBERS:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:80]!r}", {"uri": uri})
        known[id(context.session)] = context.session
        await self._watch.start()
        return types.EmptyResult()

    async def _unsubscribe(
        self, context: RequestContext, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self._subscribed.get(str(params.uri), {}).pop(id(context.session), None)
        return types.EmptyResult()

    async def _listen(
        self, context: RequestContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        await self._watch.start()
        return await self._listening(context, params)

    async def _publish(self, uri: str) -> None:
        """Notify all subscribers that a resource has changed."""
        await self._bus.publish(ResourceUpdated(uri=uri))
        for key, session in list(self._subscribed.get(uri, {}).items()):
            try:
                await session.send_resource_updated(uri)
            except Exception:  # noqa: BLE001 - a subscriber that disconnected is forgotten
                self._subscribed[uri].pop(key, None)


_URIS = frozenset(str(resource["uri"]) for resource in RESOURCES)


async def _listed(result: Any, context: RequestContext, params: Any) -> Any:
    """Return a list that never changes while the server runs."""
    del context, params
    return result


def _meta_of(context: RequestContext) -> dict[str, Any]:
    found: Any = context.meta
    return dict(found) if found else {}


class _Waiting:
    """Progress of one call: reports what it waits for, at once and again every few seconds."""

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._text = ""
        self._has_news = anyio.Event()
        self._steps = 0

    def report(self, text: str) -> None:
        """Report what the call waits for; runs in the thread of the call."""
        self._text = in_one_line(text)
        try:
            anyio.from_thread.run_sync(self._has_news.set)
        except RuntimeError:  # the job has outlived its call
            return

    async def beat(self) -> None:
        """Report progress during the call, if the client asked for it."""
        while True:
            with anyio.move_on_after(_BEAT_SECONDS):
                await self._has_news.wait()
            self._has_news = anyio.Event()
            if self._text:
                self._steps += 1
                await self._context.session.report_progress(self._steps, None, self._text)


def starter_for(starter: Starter) -> Callable[[RequestContext], Starter]:
    """Return the starter of a server with one client: our environment and the client's name."""

    def of(context: RequestContext) -> Starter:
        return replace(starter, client=client_name(context) or starter.client)

    return of


def client_name(context: RequestContext) -> str:
    """Return a client's name for itself, in either protocol version."""
    params = context.session.client_params
    return params.client_info.name if params is not None else ""


def quiet_logging() -> None:
    """Silence the SDK's logging to stderr, which clients show to people as errors."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
