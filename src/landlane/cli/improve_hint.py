"""Turn the hint of an error into a call that can be pasted, from the call that was typed."""

from __future__ import annotations

import os

from landlane.sessions.model import valid_name
from landlane.text import nearest_word, shell_quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.terminal import Terminal
    from landlane.cli.typed_call import TypedCall
    from landlane.errors import LandlaneError

NEXT_STEP = "--next 'the next step'"  # the hint of a handoff that says nothing
_MALFORMED = 2  # the exit code
_PROGRAMS = ("landlane ", "git ", "cd ", "ls", "sudo ", "uv ", "pipx ", "ps ", "pg_isready", "npm ", "pip ")


def improve_hint(typed: TypedCall, error: LandlaneError, terminal: Terminal) -> str:
    """Return a hint that ends in a command wherever the typed call shows which one was meant."""
    if error.facts.get("meant"):
        return f"did you mean: {typed.with_value(str(error.facts['unknown']), str(error.facts['meant']))}"
    if error.facts.get("example"):
        given = str(error.facts.get("given", error.facts.get("unknown", "")))
        reason = error.hint if "given" in error.facts else "for example"
        return f"{reason}: {typed.with_value(given, str(error.facts['example']))}"
    if error.code == "NOT_YOUR_SESSION" and terminal.agent:
        terminal.agent = ""  # the hint must not name the agent that the caller may not act as
        return f"act as yourself: {typed.with_name()}"
    if error.code == "NO_RECEIVER":
        return typed.with_words("--to", "anybody", "--next", "the next step")
    if error.code == "BAD_NAME":
        return _with_valid_name(typed, error, terminal)
    if error.code == "NO_REASON" and typed.has_option("--why"):
        return typed.with_words("--why", "the reason")
    if error.code == "PATTERN_UNCLOSED" and typed.has_option("--literal"):
        return f"take it as an ordinary character: {typed.with_words('--literal')}"
    if error.code == "UNREADABLE_FILE" and error.facts.get("file"):
        return _with_near_file(typed, terminal.folder, str(error.facts["file"]))
    if error.hint == NEXT_STEP and typed.has_option("--next"):
        return typed.with_words("--next", "the next step")
    quoted = error.hint.split("`")
    if len(quoted) > 2 and not quoted[0] and quoted[1].startswith("landlane "):
        return quoted[1]  # the words after it only explain the command
    command = error.hint.rpartition(": ")[2]
    if error.exit_code == _MALFORMED and not command.startswith(_PROGRAMS) and "landlane " not in error.hint:
        return f"{error.hint}: landlane help {typed.path}" if error.hint else f"landlane help {typed.path}"
    return error.hint


def _with_valid_name(typed: TypedCall, error: LandlaneError, terminal: Terminal) -> str:
    name = str(error.facts.get("name", ""))
    if name == terminal.agent and name:
        terminal.agent = ""  # it is not a valid name
        return typed.with_name(valid_name(name))
    return typed.with_value(name, valid_name(name)) if name else error.hint


def _with_near_file(typed: TypedCall, root: str, name: str) -> str:
    folder, base = os.path.split(name)
    try:
        names = sorted(os.listdir(os.path.join(root, folder) or "."))
    except OSError:
        return "ls"
    near = nearest_word(base, [one for one in names if not one.startswith(".")], cutoff=0.7)
    if not near and " " in name.strip():
        return f"to give it as text: echo {shell_quote(name)} | {typed.with_value(name, '-')}"
    return typed.with_value(name, os.path.join(folder, near)) if near else f"ls {folder}".rstrip()
