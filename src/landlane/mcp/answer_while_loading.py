"""Answer a stdio client's first requests while the SDK is still being imported.

Importing the SDK takes longer than the rest of the start-up. The first requests have the same answer every
time, so it comes from the tables here. Every message is also passed to the SDK, which answers it again:
that answer is compared and not sent. If it differs, for example with another release of the SDK, a marker
file is written beside the state, and this release of the SDK answers by itself from then on.
"""

from __future__ import annotations

import json
import os

from landlane.clients.setup_files import sdk_release
from landlane.mcp.tool_schemas import INSTRUCTIONS, NAME, RESOURCES, TOOLS
from landlane.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODERN = "2026-07-28"
_HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_META = "io.modelcontextprotocol/"
_MARK = "mcp-front-off"
_LISTS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": list(TOOLS)},
    "resources/list": {"resources": list(RESOURCES)},
    "resources/templates/list": {"resourceTemplates": []},
}


class EarlyAnswers:
    """Tracks the state of a connection and what may be answered now."""

    def __init__(self) -> None:
        self._version = ""  # of the protocol, once the client has opened it

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the result of a request; None when only the SDK can answer it."""
        request = table_of(message)
        params = table_of(request.get("params") or {})
        if request.get("jsonrpc") != "2.0" or not _has_id(request) or (request.get("params") and not params):
            return None
        method: Any = request.get("method")
        if method == "initialize":
            return self._initialize(params)
        meta = table_of(params.get("_meta"))
        version = meta.get(f"{_META}protocolVersion")
        if version is None:
            return self._in_handshake_era(method, params)
        if version != _MODERN or self._version not in ("", _MODERN) or not _is_complete(meta):
            return None
        self._version = _MODERN
        return self._in_modern_era(method, params)

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any] | None:
        version = params.get("protocolVersion")
        if self._version or version not in _HANDSHAKES or not _is_introduced(params):
            return None
        self._version = str(version)
        return {
            "protocolVersion": version,
            "capabilities": {
                "resources": {"subscribe": True, "listChanged": False},
                "tools": {"listChanged": False},
            },
            "serverInfo": {"name": NAME, "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    def _in_handshake_era(self, method: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        if self._version not in _HANDSHAKES or set(params) - {"_meta"}:
            return None
        if method == "ping":
            return {}
        return _LISTS.get(str(method))

    def _in_modern_era(self, method: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        if set(params) - {"_meta"}:
            return None
        stamp = {
            "resultType": "complete",
            "_meta": {f"{_META}serverInfo": {"name": NAME, "version": __version__}},
        }
        fresh = {"ttlMs": 0, "cacheScope": "private"}
        if method == "server/discover":
            return {
                **stamp,
                **fresh,
                "supportedVersions": [_MODERN],
                "capabilities": {
                    "resources": {"subscribe": True, "listChanged": True},
                    "tools": {"listChanged": True},
                },
                "instructions": INSTRUCTIONS,
            }
        found = _LISTS.get(str(method))
        return {**stamp, **fresh, **found} if found is not None else None


def _has_id(message: dict[str, Any]) -> bool:
    found = message.get("id")
    return isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool))


def _is_complete(meta: dict[str, Any]) -> bool:
    """Return whether a request of the newer protocol is complete; otherwise the SDK refuses it."""
    about = {
        "clientInfo": meta.get(f"{_META}clientInfo"),
        "capabilities": meta.get(f"{_META}clientCapabilities"),
    }
    return _is_introduced(about)


def _is_introduced(params: dict[str, Any]) -> bool:
    client = table_of(params.get("clientInfo"))
    return (
        isinstance(params.get("capabilities"), dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )


def table_of(found: Any) -> dict[str, Any]:
    """Return the value if it is a dict, else an empty dict."""
    return found if _is_table(found) else {}


def _is_table(found: object) -> bool:
    return isinstance(found, dict)


def is_trusted(state_folder: str) -> bool:
    """Return whether these answers matched those of the SDK so far."""
    return not os.path.exists(_mark(state_folder))


def distrust(state_folder: str, method: str, ours: object, theirs: object) -> None:
    """Write the marker: from now on only the SDK answers."""
    try:
        os.makedirs(state_folder, exist_ok=True)
        with open(_mark(state_folder), "w", encoding="utf-8") as file:
            json.dump({"method": method, "ours": ours, "theirs": theirs}, file)
    except OSError:
        return


def _mark(state_folder: str) -> str:
    return os.path.join(state_folder, f"{_MARK}-{__version__}-{sdk_release()}")
