"""Find out why a client failed, for the worker protocol: from its errors, exit code and stderr."""

from __future__ import annotations

import re

from landlane.clients.model import CLIENTS
from landlane.clients.worker_adapter import OutputEvent, WorkerAdapter, printable
from landlane.worker import Failure

_LIMITED = re.compile(
    r"\b(429|529)\b|rate.?limit|too many requests|overloaded|usage.?limit|quota|resource.?exhausted"
    r"|limit reached|capacity",
    re.IGNORECASE,
)
_UNKNOWN_USER = re.compile(
    r"\b(401|403)\b|unauthori[sz]ed|authenticat|invalid.{0,20}api.?key|api.?key.{0,30}(not valid|invalid)"
    r"|api.?key.{0,30}(missing|required|not set)|no api.?key|not logged in"
    r"|please (run /)?log.?in|sign.?in again|oauth token.{0,20}expired|credentials|forbidden",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"\brefus(al|ed to)\b|content.?(policy|filter)|usage polic|prohibited.?content|violat\w+ .{0,30}polic"
    r"|blocked.{0,30}safety|safety.{0,30}block",
    re.IGNORECASE,
)
_NO_MONEY = re.compile(
    r"max.?budget|insufficient.?(funds|credit|quota|balance)|credit balance|billing", re.IGNORECASE
)
_WAIT = re.compile(
    r"(?:retry(?!ing)|try again|resets?|available again|wait)[^0-9\n]{0,30}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])[\s,and]*)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h|d)", re.IGNORECASE)
_HEADER = re.compile(r"retry-after[\"']?\s*[:=]\s*[\"']?(\d+(?:\.\d+)?)", re.IGNORECASE)
_INSTANT = re.compile(r"\|(\d{10})\b")  # when a usage limit ends
_STATUS = re.compile(r"\bstatus(?:code)?\W{1,3}([45]\d\d)\b", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_LONGEST_WAIT = 31_536_000.0
_LIMITED_STATUS = (429, 503, 529)
_MOST_REASON = 2_000
_MOST_READ = 4_000  # characters of an error; the beginning matters


def find_failure(
    adapter: WorkerAdapter, error: OutputEvent | None, exit_code: int, stderr: str, *, now: float = 0.0
) -> Failure:
    """Return the failure to report: by the client's last error, else by the end of its stderr.

    `now` is the time of day in seconds since 1970, for clients that name an instant.
    """
    message = error.text[:_MOST_READ] if error is not None else ""
    status, word = (error.status, error.word) if error is not None else (0, "")
    # Some clients print only the body of the provider's answer, and its status on their stderr.
    status = status or _last_status(message) or _last_status(stderr)
    is_repeated = word.lower() in message.lower()
    text = (message if is_repeated else f"{word} {message}").strip() or _last_lines(stderr)
    title = CLIENTS[adapter.name].title
    reason = printable(f"{title}: {text or f'it ended with exit code {exit_code}'}"[:_MOST_REASON])
    if _NO_MONEY.search(text):
        return Failure(f"{reason} (no money is left for it)", retry=False)
    if status in (401, 403) or (not status and _UNKNOWN_USER.search(text) and not _LIMITED.search(text)):
        return Failure(f"{reason} (to do: {adapter.sign_in})", retry=False)
    if is_rate_limit(text, status):
        return Failure(reason, code="rate_limited", retry_after_seconds=read_wait(text, now))
    if _REFUSED.search(text):
        return Failure(reason, code="refused", retry=False)
    return Failure(reason)


def is_rate_limit(text: str, status: int = 0) -> bool:
    """Return whether the provider wants fewer requests."""
    return status in _LIMITED_STATUS or (not status and bool(_LIMITED.search(text)))


def read_wait(text: str, now: float = 0.0) -> float | None:
    """Return how many seconds to wait, if the text says so."""
    text = text[:_MOST_READ]
    if header := _HEADER.search(text):
        return min(float(header[1]), _LONGEST_WAIT)
    if (instant := _INSTANT.search(text)) and now:
        return min(max(float(instant[1]) - now, 0.0), _LONGEST_WAIT)
    wait = _WAIT.search(text)
    if not wait:
        return None
    seconds = sum(float(number) * _SECONDS[unit.lower()] for number, unit in _PART.findall(wait[1]))
    return min(seconds, _LONGEST_WAIT)


def _last_status(stderr: str) -> int:
    """Return the last HTTP status of the provider that stands on stderr."""
    statuses = _STATUS.findall(stderr)
    return int(statuses[-1]) if statuses else 0


def _last_lines(stderr: str) -> str:
    lines = [" ".join(line.split()) for line in stderr.splitlines() if line.strip()]
    return " / ".join(lines[-3:])
