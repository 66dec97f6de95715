"""Hints of the command line in terms of the library: `landlane done T1` becomes `tasks.done('T1')`.

A command without a counterpart, such as `landlane doctor`, is for a person at a terminal and stays as it is.
"""

from __future__ import annotations

import re
import shlex

# The calls that are named like their commands: `task drop` is `tasks.drop`.
_SAME_VERBS = {
    "": "claim claims release renew check leave stats",
    "task": "add list after block unblock retry drop",
    "gate": "ask withdraw",
    "review": "list give withdraw adopt",
    "handoff": "list show accept decline",
    "workspace": "open list close",
    "slot": "take list free",
    "number": "list",
}
_CALLS = {
    f"{noun} {verb}".strip(): f"{noun}s.{verb}" if noun else verb
    for noun, verbs in _SAME_VERBS.items()
    for verb in verbs.split()
} | {
    "who": "sessions",
    "log": "journal",
    "next": "tasks.next",
    "done": "tasks.done",
    "fail": "tasks.fail",
    "task show": "tasks.get",
    "task log": "tasks.history",
    "task parts": "fans.get",
    "run pause": "retries.pause",
    "run resume": "retries.resume",
    "land": "landings.submit",
    "queue list": "landings.list",
    "gate list": "gates.waiting",
    "gate show": "gates.get",
    "review show": "reviews.get",
    "handoff": "handoffs.send",
    "commit": "workspaces.commit",
    "rescue list": "workspaces.rescues",
    "rescue restore": "workspaces.restore",
    **{f"state {verb}": f"state.{verb}" for verb in ("get", "set", "append", "list", "history")},
    "number": "numbers.give",
    "usage": "usage.totals",
    "usage list": "usage.list",
    "usage add": "",  # these two have no counterpart
    "usage import": "",
}
# Options by another name; an empty one is left out, because the call does the same without it.
_ARGUMENTS = {
    "any": "overwrite", "for": "purpose", "with": "reducer", "max": "maximum", "m": "message",
    "path": "paths", "label": "labels", "reviewer": "reviewers", "as": "", "repo": "", "all": "", "json": "",
}  # fmt: skip
_LISTS = ("paths", "labels", "reviewers", "after")
_ALONE = {"wait": "'10m'"}  # the value of an option that is given without one; others are switches
_IN_TICKS = re.compile(r"`((?:landlane|git|pip) [^`]+)`")
# A command outside ticks ends with the hint, or where the sentence goes on.
_BARE = re.compile(r"(?<!`)\b(?:landlane|git|pip) [a-z…](?:'[^']*'|\"[^\"]*\"|[^'\";,()`])*")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)(?:[ =]([A-Z0-9][\w:.-]*|'[^']*'))?")


def library_text(text: str) -> str:
    """Return a hint or a message with calls and arguments of the library in place of commands and options."""
    if "landlane" not in text and "--" not in text:
        return text
    kept: list[str] = []

    def keep(command: str) -> str:
        kept.append(_call_text(command) or command)
        return f"\x00{len(kept) - 1}\x00"

    text = _IN_TICKS.sub(lambda found: f"`{keep(found[1])}`", text)
    text = _BARE.sub(lambda found: keep(found[0].rstrip()) + " " * found[0].endswith(" "), text)
    text = _OPTION.sub(_argument_text, text)
    return re.sub("\x00(\\d+)\x00", lambda found: kept[int(found[1])], text)


def _argument_text(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    name = _ARGUMENTS.get(name) or {"as": "agent", "repo": "folder"}.get(name, name)
    return f"{name}={option[2].strip(chr(39))!r}" if option[2] else name


def _call_text(command: str) -> str:
    """Return the call of the library that does the same as a command; empty if there is none."""
    try:
        words = shlex.split(command)[1:]
    except ValueError:  # an apostrophe in a sentence
        return ""
    size = 2 if " ".join(words[:2]) in _CALLS else 1
    call = _CALLS.get(" ".join(words[:size]))
    if not command.startswith("landlane ") or not call or "--" in words or ">" in words:
        return ""
    if call == "landings.submit" and "--wait" in words:
        return "landings.wait(…)"
    arguments = _arguments(words[size:])
    if call == "state.set" and len(arguments) > 2 and "=" not in arguments[2]:
        pairs = zip(arguments[::2], arguments[1::2], strict=False)
        return f"state.set_all({{{', '.join(f'{key}: {value}' for key, value in pairs)}}})"
    return f"{call}({', '.join(arguments)})" if arguments or call != "fans.get" else "fans.list()"


def _arguments(words: list[str]) -> list[str]:
    placed: list[str] = []
    named: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word == "--state":
            continue  # states are given by position
        if not word.startswith("-") or word == "-":
            placed.append(_quoted(word))
            continue
        option = word.lstrip("-").replace("-", "_")
        name = _ARGUMENTS.get(option, option)
        has_value = bool(words) and not words[0].startswith("-") and option not in _SWITCHES
        given = _quoted(words.pop(0)) if has_value else _ALONE.get(name, "True")
        if name:
            named[name] = f"[{given}]" if name in _LISTS else given
    if message := named.pop("message", ""):
        placed.insert(0, message)
    return [*placed, *(f"{name}={given}" for name, given in named.items())]


_SWITCHES = frozenset(
    ("all", "any", "force", "literal", "new", "partial", "shared", "resume", "offline", "json", "final")
)


def _quoted(word: str) -> str:
    return word if word == "…" or word.isdigit() else repr(word)
