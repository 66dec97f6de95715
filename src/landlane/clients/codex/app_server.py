"""Asking Codex about itself: one question to its app server, which answers in lines of JSON."""

from __future__ import annotations

import json

from landlane.errors import LandlaneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# The server drops what it was asked when its input ends, so the line is held until the answer is there, for
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

# What would have it wait at its end for hosts that may be out of reach, and has nothing to do with hooks.
_WITHOUT = ("plugins", "apps", "remote_plugin", "plugin_discovery_prefetch")


def ask(codex: str, run: Callable[..., str], method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result of one call of a method.

    Raises:
        LandlaneError: there was no answer, or it was an error.
    """
    about_us = {"name": "landlane", "title": "Landlane", "version": "1"}
    calls: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": about_us}},
        {"method": "initialized"},
        {"id": 1, "method": method, "params": params},
    ]
    server = [codex, "app-server"]
    for feature in _WITHOUT:
        server += ["-c", f"features.{feature}=false"]
    said = run(["/bin/sh", "-c", _TALK, "sh", "\n".join(map(json.dumps, calls)), *server])
    for line in said.splitlines():
        answer = _answer(line)
        if isinstance(answer.get("result"), dict):
            return answer["result"]
        if "error" in answer:
            raise _silent(method, str(answer["error"]))
    raise _silent(method, "no answer")


def _answer(line: str) -> Mapping[str, Any]:
    """A line of the server, if it is the answer to what we asked."""
    try:
        said: Any = json.loads(line)
        return said if said["id"] == 1 else {}
    except (ValueError, TypeError, KeyError):
        return {}


def _silent(method: str, why: str) -> LandlaneError:
    return LandlaneError(
        f"Codex could not be asked for {method}: {why}",
        code="CLIENT_SILENT",
        hint="run `codex doctor`, or look at its hooks with `/hooks` in Codex",
    )
