"""Trailers of a commit message that say who made the commit: write and read them."""

from __future__ import annotations

import re

from landlane.values import value

AGENT, SESSION, TASK, TOKEN = "Landlane-Agent", "Landlane-Session", "Landlane-Task", "Landlane-Token"

_OURS = re.compile(r"(landlane-(?:agent|session|task|token))\s*:\s*(.*)", re.IGNORECASE)
# Wider than what is read: git can be configured to accept other separators than a colon.
_FORGED = re.compile(r"\s*landlane-(?:agent|session|task|token)\s*[^\w\s-]", re.IGNORECASE)
_TRAILER = re.compile(r"[A-Za-z0-9-]+\s*:\s|\s+\S|\(cherry picked from commit ")


@value
class Trailers:
    """Who made a commit, for which task, and under which fencing tokens."""

    agent: str = ""
    session: str = ""
    task: str = ""
    tokens: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        """Return the lines of the message."""
        pairs = [(AGENT, self.agent), (SESSION, self.session), (TASK, self.task)]
        pairs += [(TOKEN, str(token)) for token in self.tokens]
        return [f"{key}: {text}" for key, text in pairs if text]


def find_forged_trailer(message: str) -> str:
    """Return the first line of a message that could be taken for one of our trailers; empty if none is."""
    return next((line for line in message.split("\n") if _FORGED.match(line)), "")


def with_trailers(message: str, trailers: Trailers) -> str:
    """Return a message with trailers below it, after those it has already.

    git is not used for it: a user's `trailer.*` settings may move, merge or drop trailers.
    """
    text = message.rstrip("\n")
    title, _, body = text.partition("\n")
    last = body.rstrip().split("\n\n")[-1].strip("\n").split("\n") if body.strip() else []
    is_block = bool(last) and "\n\n" in f"{title}\n{body}" and all(_TRAILER.match(line) for line in last)
    return text + ("\n" if is_block else "\n\n") + "\n".join(trailers.lines()) + "\n"


def read_trailers(message: str) -> Trailers:
    """Return the trailers of the last paragraph that has any of ours; a hook may have added more below it.

    If it contradicts itself, the result is empty: no answer is better than a wrong one.
    """
    for paragraph in reversed(message.replace("\r\n", "\n").split("\n\n")):
        found: dict[str, list[str]] = {}
        for line in paragraph.split("\n"):
            if match := _OURS.fullmatch(line.rstrip()):
                found.setdefault(match[1].lower(), []).append(match[2])
        if found:
            return _from_lines(found)
    return Trailers()


def _from_lines(found: dict[str, list[str]]) -> Trailers:
    tokens = found.pop(TOKEN.lower(), [])
    if any(len(set(texts)) > 1 for texts in found.values()):
        return Trailers()
    return Trailers(
        agent=found.get(AGENT.lower(), [""])[0],
        session=found.get(SESSION.lower(), [""])[0],
        task=found.get(TASK.lower(), [""])[0],
        tokens=tuple(int(text) for text in tokens if text.isascii() and text.isdecimal() and len(text) < 20),
    )
