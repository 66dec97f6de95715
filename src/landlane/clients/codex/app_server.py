"""Ask Codex about itself: one call to its app server, which answers in lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from landlane.errors import LandlaneError

# The server drops a request when its input ends, so the input is kept open until the answer is there, for
# ten seconds at most.
_TALK = r"""
answers=$(mktemp) || exit 1
trap 'rm -f "$answers"' EXIT
asked=$1
shift
{
    printf '%s\n' "$asked"
    left=200
    until grep -q '^{"id":1,' "$answers" || [ "$left" -eq 0 ]; do
        sleep 0.05
        left=$((left - 1))
    done
} | "$@" >"$answers" 2>/dev/null
cat "$answers"
"""

# With these features it would wait at its end for hosts that may be out of reach. Hooks do not need them.
_SWITCHED_OFF = ("plugins", "apps", "remote_plugin", "plugin_discovery_prefetch")


def call_server(
    codex: str, run: Callable[[list[str]], str], method: str, params: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the result of one call of a method.

    Raises:
        LandlaneError: there was no answer, or it was an error.
    """
    client = {"name": "landlane", "title": "Landlane", "version": "1"}
    calls: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": client}},
        {"method": "initialized"},
        {"id": 1, "method": method, "params": params},
    ]
    server = [codex, "app-server"]
    for feature in _SWITCHED_OFF:
        server += ["-c", f"features.{feature}=false"]
    output = run(["/bin/sh", "-c", _TALK, "sh", "\n".join(map(json.dumps, calls)), *server])
    for line in output.splitlines():
        answer = _parse_answer(line)
        if isinstance(answer.get("result"), dict):
            return answer["result"]
        if "error" in answer:
            raise _no_answer(method, str(answer["error"]))
    raise _no_answer(method, "no answer")


def _parse_answer(line: str) -> Mapping[str, Any]:
    """Return a line of the server if it answers our call, else an empty table."""
    try:
        answer: Any = json.loads(line)
        return answer if answer["id"] == 1 else {}
    except (ValueError, TypeError, KeyError):
        return {}


def _no_answer(method: str, why: str) -> LandlaneError:
    return LandlaneError(
        f"Codex could not be asked for {method}: {why}",
        code="CLIENT_SILENT",
        hint="run `codex doctor`, or look at its hooks with `/hooks` in Codex",
    )
