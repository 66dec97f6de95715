"""What coding clients tell their hooks, in one vocabulary for all of them, and what a hook may answer."""

from __future__ import annotations

from landlane.values import value

# When a hook is called.
START = "start"
PROMPT = "prompt"
BEFORE = "before"
AFTER = "after"
STOP = "stop"
END = "end"
CHILD_START = "child-start"
CHILD_STOP = "child-stop"
SETTINGS = "settings"  # the client is about to obey changed settings
OTHER_KIND = "other"

# What a tool does with files.
EDIT = "edit"  # names the paths that it writes
SHELL = "shell"  # may write anything
READ = "read"
OTHER = "other"

# What a hook answers.
SILENT = "silent"  # go on; nothing to say
INFORM = "tell"  # go on, and tell the model this
DENY = "deny"  # do not do it; the text says why and what to do instead
HOLD = "hold"  # at the end of a turn: there is something left to do

AUTO = "auto"
STRICT = "strict"
WATCH = "watch"


@value
class HookEvent:
    """One call of a hook. `session` and `agent` are the client's own names, not ours."""

    client: str
    kind: str
    session: str
    agent: str = ""
    agent_type: str = ""
    cwd: str = ""
    tool: str = OTHER
    tool_name: str = ""
    call: str = ""
    paths: tuple[str, ...] = ()
    command: str = ""
    source: str = ""
    is_again: bool = False
    is_background: bool = False
    settings_path: str = ""
    exit_code: int | None = None  # of a shell call that has ended, where the client tells


@value
class HookAnswer:
    """What the client is told, before it is put into the client's own words."""

    verdict: str
    text: str = ""


@value
class HookOutput:
    """An answer in a client's own form."""

    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""


NOTHING = HookAnswer(verdict=SILENT)


def deny(text: str) -> HookAnswer:
    """Refuse, with the reason and the next action."""
    return HookAnswer(verdict=DENY, text=text)


def inform(text: str) -> HookAnswer:
    """Go on, and let the model know; an empty text is nothing to say."""
    return HookAnswer(verdict=INFORM, text=text) if text else NOTHING


def is_guarded(event: HookEvent) -> bool:
    """Whether a failure of ours must refuse what the client is about to do."""
    return event.kind == SETTINGS or (event.kind == BEFORE and event.tool in (EDIT, SHELL))


def is_own_tool(tool_name: str) -> bool:
    """Whether a client means a tool of our own server: mcp__landlane__claim, landlane_claim and so on."""
    return "landlane" in tool_name
