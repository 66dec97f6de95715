"""The first answers of a server on stdio, given while the SDK is still being imported.

Importing the SDK takes longer than all the rest of a start. What clients ask first has the same answer every
time, so it is given from the tables here. Every message goes on to the SDK as well, which answers it again:
that answer is not sent, but compared. Should it ever differ, as with another release of the SDK might be, a
mark is left beside the state, and from then on this release of the SDK speaks for itself from the start.
"""

from __future__ import annotations

import json
import os

from landlane.clients.hook_command import sdk_release
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


class Front:
    """Knows how far a connection is, and what may be answered now."""

    def __init__(self) -> None:
        self._version = ""  # of the protocol, once the client has opened it

    def answer(self, message: Any) -> dict[str, Any] | None:
        """The result of a request; nothing when only the SDK can tell."""
        said = table_of(message)
        params = table_of(said.get("params") or {})
        if said.get("jsonrpc") != "2.0" or not _has_id(said) or (said.get("params") and not params):
            return None
        method: Any = said.get("method")
        if method == "initialize":
            return self._initialize(params)
        meta = table_of(params.get("_meta"))
        version = meta.get(f"{_META}protocolVersion")
        if version is None:
            return self._in_handshake_era(method, params)
        if version != _MODERN or self._version not in ("", _MODERN) or not _is_whole(meta):
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


def _is_whole(meta: dict[str, Any]) -> bool:
    """Whether a request of the modern era says all that it must; else the SDK refuses it in its own words."""
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
    """The same, if it is a table; else an empty one."""
    return found if _is_table(found) else {}


def _is_table(found: object) -> bool:
    return isinstance(found, dict)


def is_trusted(state_folder: str) -> bool:
    """Whether these answers are as those of the SDK, as far as anybody has seen."""
    return not os.path.exists(_mark(state_folder))


def distrust(state_folder: str, method: str, ours: object, theirs: object) -> None:
    """Leave a mark: from now on the SDK answers alone."""
    try:
        os.makedirs(state_folder, exist_ok=True)
        with open(_mark(state_folder), "w", encoding="utf-8") as file:
            json.dump({"method": method, "ours": ours, "theirs": theirs}, file)
    except OSError:
        return


def _mark(state_folder: str) -> str:
    return os.path.join(state_folder, f"{_MARK}-{__version__}-{sdk_release()}")
