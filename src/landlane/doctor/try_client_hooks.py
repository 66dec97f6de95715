"""Try each client's hook: an edit of a path that another session holds must be refused.

The command in the client's settings is run exactly as the client runs it. Both sessions are temporary and
end with the trial; only the journal keeps a record of them.
"""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from contextlib import contextmanager

from landlane.claims.model import ClaimMode, Request
from landlane.claims.take import take
from landlane.clients.canary import Canary, make_canary
from landlane.clients.model import VARIABLE_PREFIXES
from landlane.clients.registry import hooks_of
from landlane.clients.setup_files import is_ours
from landlane.errors import LandlaneError
from landlane.git.discovery import find_checkout
from landlane.git.run import LOCATION_VARIABLES, run_in
from landlane.hooks.dispatch import handle
from landlane.ids import new_uuid, short_id
from landlane.managed_files.json_entries import MISSING, values_of
from landlane.merge.json_source import NotJson
from landlane.merge.value_tree import is_list, is_table
from landlane.patterns.pattern import parse
from landlane.processes.child import Child
from landlane.protocol.hook_events import HookEvent, HookEventKind
from landlane.sessions.join import join, leave
from landlane.values import replace, value
from landlane.workspaces.unauthorized_writes import CLEARED, end_breach, list_breaches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence
    from typing import Any

    from landlane.platform.process import Process
    from landlane.processes.child import ChildResult
    from landlane.repository import Repository


_LIMIT_SECONDS = 15.0
_TTL_MS = 120_000
_OURS = ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_TASK", "LANDLANE_WORKSPACE")
_AFTER_WORDS = ("PostToolUse", "AfterTool", "postToolUse", "afterShellExecution", "after", "")
_HOLDER = "canary-"
_DESTRUCTIVE = "git reset --hard"
_GUARD_END = "exit 2"


@value
class Trial:
    """The result of a trial: whether the call was refused, the message, and whether the reason was right."""

    is_denied: bool
    output: str
    is_understood: bool = True
    is_reported: bool = False  # it was not refused, but reported right afterwards


class CanarySession:
    """A client session that tries forbidden changes; `path` is held by another session."""

    def __init__(self, repo: Repository, root: str, client: str, path: str) -> None:
        self.client = client
        self.path = path
        self._repo = repo
        self._root = root
        self._session = new_uuid()
        self._name = short_id("canary", 6)
        self._hooks = hooks_of(client)
        self._sessions: set[str] = set()

    @property
    def guard_word(self) -> str:
        """The name of the event before an edit."""
        return self._canary("edit", "").event_name

    def edit(self, command: str, agent: str = "") -> Trial:
        """Try to edit the held path."""
        tried = self._try(command, self._canary("edit", agent))
        return replace(tried, is_understood=self.path in tried.output or _HOLDER in tried.output)

    def reset(self, command: str) -> Trial:
        """Try to discard the work of all sessions through the shell."""
        canary = self._canary("shell", "")
        payload = _replaced(canary.payload, self._read(canary).command, _DESTRUCTIVE)
        tried = self._try(command, replace(canary, payload=payload))
        return replace(tried, is_understood=_HOLDER in tried.output or "reset" in tried.output)

    def write(self, command_of: Callable[[str], str]) -> Trial:
        """Write the held path through the shell: it must be refused, or reported right afterwards.

        `command_of` gives the command for an event's word.
        """
        canary = self._canary("shell", "")
        tried = self._try(command_of(canary.event_name), canary)
        after = self._after(canary)
        if tried.is_denied or after is None:
            return replace(tried, is_understood=self.path in tried.output or _HOLDER in tried.output)
        full = os.path.join(self._root, self.path)
        try:
            with open(full, "w", encoding="utf-8") as file:
                file.write("canary\n")
            ended = self._run(command_of(after.event_name), after)
        finally:
            if os.path.exists(full):
                os.unlink(full)
        is_reported = self.path in ended.stdout + ended.stderr
        return Trial(is_denied=is_reported, output=_describe_output(ended), is_reported=is_reported)

    def send_garbage(self, command: str) -> Trial:
        """Call the hook with unreadable input."""
        canary = self._canary("edit", "")
        ended = self._start(command, b"{", canary.variables)
        return self._trial_of(canary.event_name, ended)

    def end(self) -> None:
        """End every session that this trial started."""
        for session in self._sessions:
            event = HookEvent(client=self.client, kind=HookEventKind.END, session=session, cwd=self._root)
            try:
                handle(self._repo, event, {})
            except LandlaneError:
                continue
        self._clear_breaches()

    def _clear_breaches(self) -> None:
        """Close the violation that the trial's own write caused."""
        home = find_checkout(self._root).home_checkout
        for breach in list_breaches(self._repo):
            if self.path in breach.paths:
                end_breach(self._repo, None, breach.id, CLEARED)
                run_in(home, "update-ref", "-d", breach.ref)

    def _canary(self, kind: str, agent: str) -> Canary:
        full = os.path.join(self._root, self.path)
        return make_canary(self.client, kind, self._root, full, self._session, agent)

    def _read(self, canary: Canary) -> HookEvent:
        return self._hooks.read(canary.event_name, canary.payload, canary.variables)

    def _after(self, canary: Canary) -> Canary | None:
        """Return the hook call after a shell call, if this client has one."""
        before = self._read(canary)
        for word in _AFTER_WORDS:
            payload: dict[str, Any] = {**canary.payload, "tool_response": {}}
            if "hook_event_name" in payload:
                payload["hook_event_name"] = word or str(payload["hook_event_name"]).replace(
                    "before", "after"
                )
            try:
                event: HookEvent = self._hooks.read(word, payload, canary.variables)
            except LandlaneError:
                continue
            if event.kind == HookEventKind.AFTER and event.tool == before.tool:
                return replace(canary, event_name=word, payload=payload)
        return None

    def _try(self, command: str, canary: Canary) -> Trial:
        return self._trial_of(canary.event_name, self._run(command, canary))

    def _trial_of(self, word: str, ended: ChildResult) -> Trial:
        is_denied = not ended.has_timed_out and self._hooks.is_denial(word, ended.exit_code, ended.stdout)
        return Trial(is_denied=is_denied, output=_describe_output(ended))

    def _run(self, command: str, canary: Canary) -> ChildResult:
        self._sessions.add(self._read(canary).session)
        return self._start(command, json.dumps(canary.payload).encode(), canary.variables)

    def _start(self, command: str, payload: bytes, environment: Mapping[str, str]) -> ChildResult:
        # The trial must not look like a child of a client that runs the doctor.
        foreign = [name for name in os.environ if name.startswith(VARIABLE_PREFIXES)]
        return run_with_input(
            ["/bin/sh", "-c", command],
            payload,
            cwd=self._root,
            environment={**environment, "LANDLANE_AGENT": self._name},
            without=(*LOCATION_VARIABLES, *_OURS, *foreign),
            limit_seconds=_LIMIT_SECONDS,
        )


def run_with_input(
    command: Sequence[str],
    content: bytes,
    *,
    cwd: str,
    environment: Mapping[str, str],
    without: Sequence[str],
    limit_seconds: float,
) -> ChildResult:
    """Run a program with some bytes as its standard input."""
    with tempfile.NamedTemporaryFile(prefix="landlane-canary-") as file:
        file.write(content)
        file.flush()
        shell = 'input=$1; shift; exec "$@" <"$input"'
        words = ["/bin/sh", "-c", shell, "sh", file.name, *command]
        return Child(words, cwd=cwd, environment=environment, without=without).wait(limit_seconds)


@contextmanager
def held_path(repo: Repository, process: Process | None = None) -> Generator[str]:
    """Hold a path that does not exist, for the duration of the block.

    The holder's session ends with `process`, if given, even if that is killed.
    """
    holder = join(repo, short_id("canary", 6), process=process, may_choose_role=process is not None).session
    try:
        path = f".landlane-{short_id('canary', 8)}"
        take(
            repo,
            holder,
            Request(patterns=(parse(path),), mode=ClaimMode.EXCLUSIVE, ttl_ms=_TTL_MS, note="doctor"),
        )
        yield path
    finally:
        leave(repo, holder)


@contextmanager
def canary_session(repo: Repository, root: str, client: str, path: str) -> Generator[CanarySession]:
    """Yield a session that tries to change a held path, and always end it."""
    session = CanarySession(repo, root, client, path)
    try:
        yield session
    finally:
        session.end()


def commands_in(text: str) -> list[str]:
    """Return every Landlane command in a settings file, or in a plugin that holds it as a list of words."""
    try:
        found = values_of(text)
    except NotJson:
        return [shlex.join(words) for words in _lists_of_words(text)]
    return [] if found is MISSING else [item for item in _strings(found) if is_ours(item)]


def command_for(commands: list[str], client: str, word: str) -> str:
    """Return the command for an event; of several, the one that also refuses when it cannot run."""
    named = f"{client} {word}".strip()
    fitting = [command for command in commands if named in command or (not word and client in command)]
    guards = [command for command in fitting if _GUARD_END in command]
    return (guards or fitting or [""])[0]


def _strings(item: Any) -> list[str]:
    if isinstance(item, str):
        return [item]
    parts = item.values() if is_table(item) else item if is_list(item) else ()
    return [text for part in parts for text in _strings(part)]


def _lists_of_words(text: str) -> list[list[str]]:
    found: list[list[str]] = []
    for line in text.splitlines():
        _, equals, rest = line.partition("= [")
        if equals and is_ours(rest):
            try:
                found.append([str(word) for word in json.loads("[" + rest.rstrip(";"))])
            except ValueError:
                continue
    return found


def _replaced(item: Any, old: str, new: str) -> Any:
    if isinstance(item, str):
        return item.replace(old, new)
    if is_table(item):
        return {key: _replaced(part, old, new) for key, part in item.items()}
    return [_replaced(part, old, new) for part in item] if is_list(item) else item


def _describe_output(ended: ChildResult) -> str:
    if ended.has_timed_out:
        return f"no answer within {_LIMIT_SECONDS:g} seconds"
    output = " ".join((ended.stdout + " " + ended.stderr).split())
    return f"exit {ended.exit_code}" + (f": {output[:600]}" if output else ", and nothing was said")
