"""The events that coding clients report to their hooks, the same for all clients, and the answers to them."""

from __future__ import annotations

from enum import StrEnum

from landlane.values import value


class HookEventKind(StrEnum):
    """When a hook is called."""

    START = "start"
    PROMPT = "prompt"
    BEFORE = "before"
    AFTER = "after"
    STOP = "stop"
    END = "end"
    CHILD_START = "child-start"
    CHILD_STOP = "child-stop"
    SETTINGS = "settings"  # the client is about to obey changed settings
    OTHER = "other"


class ToolAction(StrEnum):
    """What a tool does."""

    EDIT = "edit"  # names the paths that it writes
    SHELL = "shell"  # may write anything
    READ = "read"
    OTHER = "other"


class HookVerdict(StrEnum):
    """What a hook answers."""

    SILENT = "silent"  # go on; there is nothing to say
    INFORM = "tell"  # go on, and give the model this text
    DENY = "deny"  # refuse; the text says why and what to do instead
    HOLD = "hold"  # at the end of a turn: something is left to do


class HookPolicy(StrEnum):
    """What happens to an edit of a path that the session has not claimed."""

    AUTO = "auto"  # a free path is claimed for the session
    STRICT = "strict"  # it is refused
    WATCH = "watch"  # it is allowed and reported


@value
class HookEvent:
    """One call of a hook. `session` and `agent` are the client's own names, not ours."""

    client: str
    kind: HookEventKind
    session: str
    agent: str = ""
    cwd: str = ""
    tool: ToolAction = ToolAction.OTHER
    tool_name: str = ""
    call: str = ""
    paths: tuple[str, ...] = ()
    command: str = ""
    source: str = ""
    is_again: bool = False
    is_background: bool = False
    exit_code: int | None = None  # of a shell call that has ended, where the client reports it


@value
class HookAnswer:
    """An answer to a client, before it is put into the client's own form."""

    verdict: HookVerdict
    text: str = ""


@value
class HookOutput:
    """An answer in a client's own form."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


NOTHING = HookAnswer(verdict=HookVerdict.SILENT)


def deny(text: str) -> HookAnswer:
    """Refuse, with the reason and the next action."""
    return HookAnswer(verdict=HookVerdict.DENY, text=text)


def inform(text: str) -> HookAnswer:
    """Go on, and give the model a text, unless that is empty."""
    return HookAnswer(verdict=HookVerdict.INFORM, text=text) if text else NOTHING


def is_guarded(event: HookEvent) -> bool:
    """Return whether a failure of ours must refuse what the client is about to do."""
    return event.kind == HookEventKind.SETTINGS or (
        event.kind == HookEventKind.BEFORE and event.tool in (ToolAction.EDIT, ToolAction.SHELL)
    )


def is_own_tool(tool_name: str) -> bool:
    """Return whether a tool is one of our MCP server, such as mcp__landlane__claim or landlane_claim."""
    return "landlane" in tool_name
