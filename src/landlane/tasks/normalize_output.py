"""Remove what differs in every run (times, addresses, ids), so that two failures can be compared."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DAYS = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?[ap]m\b)?(?: ?(?:z\b|utc\b|gmt\b)|[+-]\d\d:?\d\d\b)?"
_UNITS = r"(?:ns|us|µs|ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)"
_HEX = "[0-9a-f]"
_STAMP = r"[t _-]\d\d[:_-]?\d\d(?:[:_-]?\d\d)?(?:[.,_]\d+)?z?\b"  # mostly in file names

_TEMPORARY = r"(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user/\d+)/[^\s'\"`:;,()<>\[\]]*"

# Expected and actual values: dates and durations that a test compares must not be removed.
_COMPARED = (
    r"(\b(?:expected|got|actual|received|(?:but|,) was|to be|to equal)[ :=]{1,2}['\"]?)"
    r"(\d{4}-\d\d-\d\d(?![\dt _-])|\d{1,2}:\d\d(?![:.,\d])"
    r"|\d+ ?(?:s|secs?|seconds?|mins?|minutes?|hours?|days?)\b)"
)
_PRIVATE_DIGITS = {ord(digit): 0xE000 + at for at, digit in enumerate("0123456789")}


def _protect(match: re.Match[str]) -> str:
    """Replace the digits by private characters, which the patterns below do not match."""
    return f"{match[1]}{match[2].translate(_PRIVATE_DIGITS)}"


def _temporary_path(match: re.Match[str]) -> str:
    """Return a temporary path with its plain names only: generated folder names differ in every run."""
    parts = match[0].removeprefix("/private").split("/")[3:]
    names = [part if _PLAIN_NAME.fullmatch(part) else "*" for part in parts if part]
    return "/".join(["<place>", *names])


_PLAIN_NAME = re.compile(r"(?!tmp)[a-z_.+-]*(?:\.[a-z0-9]{1,5})?")

# The order matters: longer patterns, and those that others would match in part, come first.
_NOISE: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0e-\x1f\x7f]", ""),
        (rf"\b{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}\b", "<id>"),
        (
            r"(?:/private)?/(?:tmp|var/tmp|var/folders|dev/shm|run/user/\d+)/[^\s'\"`:;,()<>\[\]]*",
            _temporary_path,
        ),
        (r"\b[a-z]:\\(?:[^\s\\'\"]+\\)*te?mp\\[^\s'\"]*", "<place>"),
        (r"\btmp[a-z0-9_]{8}\b", "<place>"),
        (_COMPARED, _protect),
        (rf"\d{{4}}-\d\d-\d\d(?:[t _-]{_CLOCK}|{_STAMP})?", "<time>"),
        (rf"\b20\d\d(?:0\d|1[0-2])[0-3]\d{_STAMP}", "<time>"),
        (r"\b\d{10}(?:\d{3})?\.\d+\b", "<time>"),
        (r"\b\d{1,4}/\d{1,2}/\d{1,4}\b|\b\d{1,2}\.\d{1,2}\.\d{4}\b", "<time>"),
        (rf"(?:\b{_DAYS},? )?\b\d{{1,2}} {_MONTHS},? \d{{2,4}}\b", "<time>"),
        (
            rf"(?:\b{_DAYS},? )?\b(?!may +\d+ [a-z]){_MONTHS} +\d\d?\b(?:,? \d{{4}}\b)?",
            "<time>",
        ),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b(?:/\d{1,2}\b)?", "<address>"),
        (rf"(?<![\w:])(?:{_HEX}{{1,4}}:){{4,7}}{_HEX}{{1,4}}\b(?:%\w+)?", "<address>"),
        (
            rf"(?<![\w:])(?=[a-f:]*\d)(?:{_HEX}{{1,4}}:){{1,6}}(?::{_HEX}{{1,4}}){{1,6}}\b(?:%\w+)?",
            "<address>",
        ),
        (rf"\b(?:{_HEX}{{2}}[:-]){{5}}{_HEX}{{2}}\b", "<address>"),
        (r"(<address>\]):\d{1,5}\b", r"\1"),
        (r"(?<![\w:])::1\b(?:\]?:\d{1,5}\b)?", "<address>"),
        (rf"\b0x{_HEX}+\b", "<address>"),
        (r"(\blocalhost|://[^\s/:\d]*):\d{1,5}\b", r"\1:<port>"),
        (r"\b((?:tcp|udp)[46]?) :\d{1,5}\b", r"\1 :<port>"),
        (r"\bport(s?)[ =:#]{1,3}\d{1,5}\b", r"port\1 <port>"),
        (r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", "<line>"),
        (r"(\.[a-z_+]\w{0,8}|file|makefile):\d+(?::\d+)?(?:-\d+)?\b", r"\1:<line>"),
        (r"(\.[a-z_+]\w{0,8})\(\d+(?:[,:] ?\d+)?\)", r"\1:<line>"),
        (r"(\.[a-z_+]\w{0,8}|\b(?:ba|da)?sh): \d+:(?= )", r"\1: <line>:"),  # of a shell
        (r"(?m)^\s*(?:> ?)?\d+(?= ?[|│])|^\s*\d+:\d+(?=\s)(?! ?[ap]m\b)", "<line>"),
        (
            r"\b(lines?|cols?|columns?|ln|char|offset)(?: number)?[ =:#]{1,2}\d+(?:[-–,:]\d+)?",
            r"\1 <line>",
        ),
        (r"(<[a-z]+>)(?::\d+)+\b", r"\1:<line>"),
        (r"#l\d+(?:-l?\d+)?\b", "#<line>"),
        (rf"\b{_CLOCK}", "<time>"),
        (
            r"\b(p?pid|process|thread|tid|goroutine|worker|job|run|build|attempt|seed)s?[ =:#-]{1,3}\d+\b",
            r"\1 <number>",
        ),
        (r"(\w)\[\d{2,}\](?=:)", r"\1[<number>]"),
        (r"\[ *\d{1,3} ?%\]", "[<share>]"),
        (r"\bgw\d+\b", "<worker>"),
        (rf"(?<![\w.])(?:\d+(?:[.,]\d+)?[ ]?{_UNITS}\b[ ]?)+", "<span> "),
        (r"(?<![\w.])(?:\d+(?:[.,]\d+)?(?:h|m|s|ms))+(?!\w)", "<span>"),
        (r"\blandlane/t\d+-\d+/", "landlane/<task>/"),
        (r"\b[lt]\d{1,6}(?:-\d{1,4})?\b(?![.(])", "<task>"),
        (rf"\b(?=[a-f]*\d)(?=\d*[a-f]){_HEX}{{7,64}}\b", "<id>"),
        (rf"\b(commit|sha|head|revision|rev|object|tree)([ =:]{{1,2}}){_HEX}{{7,64}}\b", r"\1\2<id>"),
        (rf"(?<=[a-z\])])@(?=[a-f]*\d)(?=\d*[a-f]){_HEX}{{4,8}}\b(?![.-])", "@<id>"),
        (r"\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-hjkmnp-tv-z]{26}\b", "<id>"),
        (r"\bs-[a-z0-9]{10}\b", "<id>"),
        (r"\b\d{9,}\b", "<number>"),
        (r"([=_*~#.+-])\1{2,}", r"\1"),
    )
)
_MAX_ROUNDS = 25


def normalize(feedback: str) -> str:
    """Return feedback without the parts that differ between two runs that fail for the same reason.

    Compared values, as in `expected 3, got 4`, stay. Normalizing twice changes nothing more.
    """
    text = feedback
    for _ in range(_MAX_ROUNDS):  # one replacement may make another one possible
        before = text
        text = text.lower()
        for pattern, replacement in _NOISE:
            text = pattern.sub(replacement, text)
        text = " ".join(text.split())
        if text == before:
            break
    return text
