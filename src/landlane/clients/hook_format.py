"""The hooks of the coding clients: read their payloads, and write answers in the forms that they obey.

A payload is never guessed at: whatever no release of a client is known to send raises `Malformed`, which
refuses the tool call.
"""

from __future__ import annotations

import json

from landlane.clients.model import CLIENTS
from landlane.errors import Malformed
from landlane.protocol.hook_events import HookEvent, HookEventKind, HookOutput, HookVerdict, ToolAction
from landlane.text import in_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.clients.model import ClientTools
    from landlane.protocol.hook_events import HookAnswer

FAILED = "failed"  # the source of an event after a tool call that failed

_PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
# The characters that Codex strips from the ends of a line. Python's `strip` removes more, which would name
# another file.
_SPACES = " \t\n\x0b\x0c\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_LINE_ENDS = _SPACES + "".join(map(chr, range(0x2000, 0x200B)))

_EXIT_MARK = "exit code"
_BEFORE_EXIT_MARK = ("", "<exited with ", "exited with ", "process exited with ", "command exited with ")
_RESULTS = ("tool_response", "toolResult", "tool_output", "tool_result", "output", "error", "result")
_FAILURE_EVENTS = ("claude", "qwen")
_NESTED = ("metadata", "returnDisplay", "llmContent", "textResultForLlm", "stdout", "output", "text", "error")


class ClientHooks:
    """The hooks of one client. A subclass has the facts about it, and overrides what it does differently."""

    name: str
    tools: ClientTools
    before_tool: str  # the event before a tool call
    kinds: Mapping[str, HookEventKind]
    other_guards: tuple[str, ...] = ()  # events besides `before_tool` at which a failure refuses
    unguarded_exit_code = 0  # after a failure at any other event
    most_bytes = 0  # of a text, where the client cuts longer ones
    context_kinds: tuple[HookEventKind, ...] = (  # at these, the client gives a text to the model
        HookEventKind.START,
        HookEventKind.PROMPT,
        HookEventKind.BEFORE,
        HookEventKind.AFTER,
        HookEventKind.CHILD_START,
    )
    user_kinds: tuple[HookEventKind, ...] = ()  # at these, it shows a text to its user only

    def read(self, event_name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEvent:
        """Read what the client writes to a hook's standard input; `event_name` is from the hook's command.

        Raises:
            Malformed: no release of the client is known to send this.
        """
        payload, keys = as_table(payload, "the input"), self.tools.keys
        given_name = get_text(payload, keys.event)
        name = given_name if given_name in self.kinds or not event_name else event_name
        kind = self.kind_of(name, payload, environment)
        fields: dict[str, Any] = {
            "client": self.name,
            "kind": kind,
            "session": get_text(payload, keys.session, is_needed=True),
            "agent": get_text(payload, keys.agent),
            "cwd": get_text(payload, "cwd") or environment.get(CLIENTS[self.name].project_variable, ""),
        }
        if kind in (HookEventKind.BEFORE, HookEventKind.AFTER):
            fields["source"] = FAILED if name.endswith("Failure") else ""
            fields["call"] = get_text(payload, "tool_use_id")
            fields |= self.read_tool(payload, fields["cwd"])
        elif kind in (HookEventKind.STOP, HookEventKind.CHILD_STOP):
            fields["is_again"] = payload.get("stop_hook_active") is True
            fields["is_background"] = bool(payload.get("background_tasks"))
        else:
            fields["source"] = get_text(payload, "source") or get_text(payload, "reason")
        return HookEvent(**fields)

    def kind_of(self, name: str, payload: Mapping[str, Any], environment: Mapping[str, str]) -> HookEventKind:
        """Return the kind of an event."""
        del payload, environment
        return self.kinds.get(name, HookEventKind.OTHER)

    def read_tool(self, payload: Mapping[str, Any], cwd: str) -> dict[str, Any]:
        """Return the fields of a `HookEvent` that say which tool is called, with which files or command."""
        keys = self.tools.keys
        name = get_text(payload, keys.tool, is_needed=True)
        return self.read_call(name, get_table(payload, keys.arguments), cwd)

    def read_call(self, name: str, arguments: Mapping[str, Any], cwd: str) -> dict[str, Any]:
        """Return the same for a tool's name and arguments, wherever the client puts them."""
        tools = self.tools
        if key := tools.edits.get(name):
            return {"tool_name": name, "tool": ToolAction.EDIT, "paths": (get_path(arguments, key, cwd),)}
        if key := tools.patches.get(name):
            patch = get_text(arguments, key, is_needed=True)
            paths = tuple(absolute_path(path, cwd) for path in patched_paths(patch))
            return {"tool_name": name, "tool": ToolAction.EDIT, "paths": paths}
        if key := tools.reads.get(name):
            return {"tool_name": name, "tool": ToolAction.READ, "paths": (get_path(arguments, key, cwd),)}
        if name not in tools.shells:
            return {"tool_name": name, "tool": ToolAction.OTHER}
        return {
            "tool_name": name,
            "tool": ToolAction.SHELL,
            "command": get_text(arguments, "command"),
            "is_background": name in tools.background_shells or arguments.get(tools.background) is True,
            "cwd": absolute_path(get_text(arguments, tools.folder) or cwd, cwd) if tools.folder else cwd,
        }

    def render(self, event: HookEvent, answer: HookAnswer) -> HookOutput:
        """Write an answer in the form that the client obeys at this event."""
        text = shorten(answer.text, self.most_bytes) if self.most_bytes else answer.text
        if answer.verdict == HookVerdict.DENY and event.kind == HookEventKind.BEFORE:
            return self.deny(text)
        if answer.verdict == HookVerdict.DENY and event.kind in (
            HookEventKind.PROMPT,
            HookEventKind.SETTINGS,
        ):
            return block(text)
        is_end = event.kind in (HookEventKind.STOP, HookEventKind.CHILD_STOP)
        if answer.verdict == HookVerdict.HOLD and is_end and not event.is_again:
            # Held once: an agent that cannot do what is asked must be able to end.
            return block(text)
        if text and event.kind in self.context_kinds:
            return self.inform(event, text)
        return show_user(text) if text and event.kind in self.user_kinds else HookOutput()

    def deny(self, text: str) -> HookOutput:
        """Refuse a tool call in both known forms, since some clients know only one of them."""
        reason = printable(text)
        decision = {
            "hookEventName": self.before_tool,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
        return answer_with({"decision": "block", "reason": reason, "hookSpecificOutput": decision})

    def inform(self, event: HookEvent, text: str) -> HookOutput:
        """Give the model a text with an event."""
        names = [name for name, kind in self.kinds.items() if kind == event.kind]
        name = names[-1] if event.source == FAILED else names[0]
        specific = {"hookEventName": name, "additionalContext": printable(text)}
        return answer_with({"hookSpecificOutput": specific})

    def refuse(self, event_name: str, text: str) -> HookOutput:
        """Refuse a call that could not be read; where nothing is guarded, only show the text."""
        return fail(text, 2 if self.is_guard(event_name) else self.unguarded_exit_code)

    def is_guard(self, event_name: str) -> bool:
        """Return whether a failure at this event refuses what is about to happen."""
        return event_name in ("", self.before_tool, *self.other_guards)

    def is_denial(self, event_name: str, exit_code: int, stdout: str) -> bool:
        """Return whether the client would refuse the tool call on this answer."""
        return self.is_guard(event_name) and (exit_code == 2 or (not exit_code and is_refusal(stdout)))


def parse_arguments(payload: Mapping[str, Any], key: str, patch_key: str) -> Mapping[str, Any]:
    """Return a tool's arguments that may also be JSON in a text, or the text of a patch."""
    given = payload.get(key)
    if not isinstance(given, str):
        return get_table(payload, key)
    if not given.lstrip().startswith("{"):
        return {patch_key: given}
    try:
        return as_table(json.loads(given), f"`{key}`")
    except (ValueError, RecursionError):
        raise unreadable(f"`{key}` is not valid JSON") from None


def patched_paths(patch: str) -> tuple[str, ...]:
    """Return the paths that a patch in the `*** Begin Patch` form writes, each once, as it names them.

    A line of context that looks like a header counts as one: a path too many is harmless, one too few is not.

    Raises:
        Malformed: it names no file.
    """
    paths: dict[str, None] = {}
    for line in patch.split("\n"):
        stripped = line.strip(_LINE_ENDS)
        for mark in _PATCH_MARKS:
            if stripped.startswith(mark) and len(stripped) > len(mark):
                paths[stripped[len(mark) :]] = None
    if not paths:
        raise unreadable("a patch that names no file")
    return tuple(paths)


def exit_code_of(event: HookEvent, payload: Mapping[str, Any]) -> int | None:
    """Return the exit code of a shell command; None where the client does not report it."""
    if event.is_background:
        return None
    for name in _RESULTS:
        code = _find_exit_code(payload.get(name), 0)
        if code is not None:
            return code
    if event.client in _FAILURE_EVENTS:  # they have an event for failures, so any other call succeeded
        return 1 if event.source else 0
    return None


def _find_exit_code(item: Any, depth: int) -> int | None:
    if isinstance(item, str):
        return _exit_code_in_text(item)
    if item.__class__ is not dict or depth > 2:
        return None
    table: Mapping[str, Any] = item
    for name in ("exit_code", "exitCode", "exit", "code"):
        code = table.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and -256 < code < 256:
            return code
    codes = (_find_exit_code(table.get(name), depth + 1) for name in _NESTED)
    return next((code for code in codes if code is not None), None)


def _exit_code_in_text(text: str) -> int | None:
    """Return the number after `exit code` at the start of a line, near the start or the end of a text."""
    lines = text[:2000].splitlines()[:8] + text[-2000:].splitlines()[-8:]
    for line in lines:
        before, mark, after = line.strip().lower().partition(_EXIT_MARK)
        word = after.strip(" :.").split(" ", 1)[0].rstrip(".,;>)")
        if mark and before in _BEFORE_EXIT_MARK and word.isdecimal() and len(word) <= 3:
            return int(word)
    return None


def get_text(payload: Mapping[str, Any], key: str, is_needed: bool = False) -> str:
    """Return a text of a payload; one that is absent and not needed is empty.

    Raises:
        Malformed: it is something else, or is missing.
    """
    item = payload.get(key)
    if item is None and not is_needed:
        return ""
    if not isinstance(item, str) or (is_needed and not item):
        raise unreadable(f"`{key}` is not a text")
    return item


def get_table(payload: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a table of a payload; an absent one is empty.

    Raises:
        Malformed: it is something else.
    """
    item = payload.get(key)
    return {} if item is None else as_table(item, f"`{key}`")


def as_table(item: Any, what: str) -> Mapping[str, Any]:
    """Return the item, which must be a table.

    Raises:
        Malformed: it is something else.
    """
    if item.__class__ is not dict:
        raise unreadable(f"{what} is not a table")
    return item


def get_path(payload: Mapping[str, Any], key: str, cwd: str) -> str:
    """Return a path of a payload as an absolute path.

    Raises:
        Malformed: it is not a path, or is relative to an unknown folder.
    """
    return absolute_path(get_text(payload, key, is_needed=True), cwd)


def absolute_path(path: str, cwd: str) -> str:
    """Return a path that a client names as an absolute path.

    Raises:
        Malformed: it is not a path, or is relative to an unknown folder.
    """
    if "\0" in path or not (path.startswith("/") or cwd.startswith("/")):
        raise unreadable("a path that leads nowhere")
    return path if path.startswith("/") else f"{cwd.rstrip('/')}/{path}"


def unreadable(what: str) -> Malformed:
    """Return the error for a payload that no release of the client is known to send."""
    return Malformed(
        f"the hook was called with something it cannot read: {what}",
        code="HOOK_INPUT",
        hint="run `landlane doctor`; the client may be newer than this version of Landlane",
    )


def answer_with(answer: Mapping[str, Any]) -> HookOutput:
    """Return an answer as one line of JSON on standard output."""
    return HookOutput(stdout=json.dumps(answer) + "\n")


def block(reason: str) -> HookOutput:
    """Refuse something other than a tool call: the end of a turn, a prompt, or a change of settings."""
    return answer_with({"decision": "block", "reason": printable(reason)})


def show_user(text: str) -> HookOutput:
    """Show a text to the user of the client only."""
    return answer_with({"systemMessage": printable(text)})


def fail(text: str, exit_code: int = 0) -> HookOutput:
    """Write a text to standard error, and end with an exit code."""
    return HookOutput(exit_code=exit_code, stderr=printable(text) + "\n")


def printable(text: str) -> str:
    """Return the text escaped, without lone surrogates, which odd file names bring in, and never empty.

    Strict JSON readers drop an answer with either, and then let the edit pass.
    """
    return in_lines(text.encode("utf-8", "replace").decode("utf-8").strip()) or "Landlane refuses this"


def shorten(text: str, most_bytes: int) -> str:
    """Cut a text with a note where the client would cut it itself."""
    encoded = printable(text).encode("utf-8")
    if len(encoded) <= most_bytes:
        return text
    note = "\n[cut here; the rest: landlane status]"
    return encoded[: most_bytes - len(note)].decode("utf-8", "ignore") + note


def parse_answer(stdout: str) -> Mapping[str, Any] | None:
    """Return the JSON table on a hook's standard output; None if there is none."""
    try:
        return as_table(json.loads(stdout), "the answer")
    except (ValueError, Malformed):
        return None


def is_refusal(stdout: str) -> bool:
    """Return whether clients of the shared form refuse a tool call on such an answer."""
    try:
        answer = as_table(json.loads(stdout), "the answer")
        specific = get_table(answer, "hookSpecificOutput")
    except (ValueError, Malformed):
        return False
    return answer.get("decision") == "block" or specific.get("permissionDecision") == "deny"
