"""What a commit says about who made it: trailers that are written below a message and read back from it."""

from __future__ import annotations

import re

from landlane.values import value

AGENT, SESSION, TASK, TOKEN = "Landlane-Agent", "Landlane-Session", "Landlane-Task", "Landlane-Token"

_OURS = re.compile(r"(landlane-(?:agent|session|task|token))\s*:\s*(.*)", re.IGNORECASE)
# Wider than what is read: git can be told to take other signs than a colon.
_POSING = re.compile(r"\s*landlane-(?:agent|session|task|token)\s*[^\w\s-]", re.IGNORECASE)
_TRAILER = re.compile(r"[A-Za-z0-9-]+\s*:\s|\s+\S|\(cherry picked from commit ")


@value
class Trailers:
    """Who made a commit, for which task, and under which grants."""

    agent: str = ""
    session: str = ""
    task: str = ""
    tokens: tuple[int, ...] = ()

    def lines(self) -> list[str]:
        """As they stand in a message."""
        pairs = [(AGENT, self.agent), (SESSION, self.session), (TASK, self.task)]
        pairs += [(TOKEN, str(token)) for token in self.tokens]
        return [f"{key}: {text}" for key, text in pairs if text]


def find_forged_trailer(message: str) -> str:
    """The first line of a message that could be taken for a trailer of ours; empty when there is none."""
    return next((line for line in message.split("\n") if _POSING.match(line)), "")


def with_trailers(message: str, trailers: Trailers) -> str:
    """A message with trailers below it, beside those it has already.

    Written here and not by git: a user's `trailer.*` settings may move, merge or drop what git writes.
    """
    text = message.rstrip("\n")
    title, _, body = text.partition("\n")
    last = body.rstrip().split("\n\n")[-1].strip("\n").split("\n") if body.strip() else []
    is_block = bool(last) and "\n\n" in f"{title}\n{body}" and all(_TRAILER.match(line) for line in last)
    return text + ("\n" if is_block else "\n\n") + "\n".join(trailers.lines()) + "\n"


def read_trailers(message: str) -> Trailers:
    """What the last paragraph with trailers of ours says.

    A hook may have put more below it, which is why not only the last paragraph counts. Where it contradicts
    itself nothing is taken from it: better no answer than a wrong one.
    """
    for paragraph in reversed(message.replace("\r\n", "\n").split("\n\n")):
        found: dict[str, list[str]] = {}
        for line in paragraph.split("\n"):
            if match := _OURS.fullmatch(line.rstrip()):
                found.setdefault(match[1].lower(), []).append(match[2])
        if found:
            return _understood(found)
    return Trailers()


def _understood(found: dict[str, list[str]]) -> Trailers:
    tokens = found.pop(TOKEN.lower(), [])
    if any(len(set(texts)) > 1 for texts in found.values()):
        return Trailers()
    return Trailers(
        agent=found.get(AGENT.lower(), [""])[0],
        session=found.get(SESSION.lower(), [""])[0],
        task=found.get(TASK.lower(), [""])[0],
        tokens=tuple(int(text) for text in tokens if text.isascii() and text.isdecimal() and len(text) < 20),
    )
