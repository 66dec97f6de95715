"""The full path of a client hook: parse the event, handle it, and answer in the client's own format.

An error refuses the call when the client is about to change something. For other events it is ignored: a
session whose start could not be recorded must still be able to read.
"""

from __future__ import annotations

import json
import os

from landlane.clients.hook_format import exit_code_of
from landlane.clients.model import CLIENTS, HOOK_CLIENTS, check_client
from landlane.clients.registry import hooks_of
from landlane.errors import LandlaneError, Malformed, RepositoryError
from landlane.git.discovery import find_checkout
from landlane.hook_entry.repository import cache_for_client_hooks, open_from_hook
from landlane.hooks.dispatch import handle
from landlane.hooks.edit import real_path
from landlane.protocol.hook_events import (
    NOTHING,
    HookEventKind,
    HookOutput,
    HookVerdict,
    ToolAction,
    deny,
    is_guarded,
)
from landlane.settings.model import FILE_NAME
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.protocol.hook_events import HookAnswer, HookEvent
    from landlane.repository import Repository


_LARGEST = 64 * 1024 * 1024
_NO_REPOSITORY = ("NO_REPOSITORY", "NO_FOLDER")
_REFUSED = "Landlane cannot tell whether this is safe, so it is refused: "


def answer(
    client: str,
    word: str,
    payload: bytes,
    environment: Mapping[str, str],
    *,
    open_at: Callable[[str], Repository] | None = None,
) -> HookOutput:
    """Answer one hook call. `open_at` opens the repository of a folder; the default is the usual way."""
    if client == "git":
        from landlane.hook_entry.git_full_path import answer_for_guest  # noqa: PLC0415 - only for git hooks

        return answer_for_guest(word, payload, environment, open_at or open_from_hook)
    try:
        check_client(client, HOOK_CLIENTS, f"unknown client {client[:40]}")
    except LandlaneError as error:
        return HookOutput(exit_code=2, stderr=f"{error.message}; {error.hint}")
    hooks = hooks_of(client)
    try:
        document = _document(payload)
        event = hooks.read(word, document, environment)
        if event.kind == HookEventKind.AFTER and event.tool == ToolAction.SHELL:
            event = replace(event, exit_code=exit_code_of(event, document))
    except Exception as error:  # noqa: BLE001 - an internal error is a refusal, whatever it was
        return hooks.refuse(word, f"{_REFUSED}its input cannot be read ({_said(error)})")
    return hooks.render(event, _judge(event, environment, open_at or open_from_hook))


def _document(payload: bytes) -> dict[str, Any]:
    if len(payload) > _LARGEST:
        raise Malformed("the input is too large", code="HOOK_INPUT", hint="")
    found = json.loads(payload or b"{}")
    if not isinstance(found, dict):
        raise Malformed("the input is not a JSON object", code="HOOK_INPUT", hint="")
    return found  # pyright: ignore[reportUnknownVariableType]


def _judge(
    event: HookEvent, environment: Mapping[str, str], open_at: Callable[[str], Repository]
) -> HookAnswer:
    try:
        # Outside a repository there is nothing to guard.
        answers = [_ask(open_at(folder), event, environment) for folder in _folders(event, environment)]
    except Exception as error:  # noqa: BLE001 - an internal error is a refusal, whatever it was
        return deny(f"{_REFUSED}{_said(error)}") if is_guarded(event) else NOTHING
    refused = [answer for answer in answers if answer.verdict == HookVerdict.DENY]
    return next(iter(refused + [answer for answer in answers if answer.text] + answers), NOTHING)


def _ask(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> HookAnswer:
    try:
        return handle(repo, event, environment)
    finally:
        _settle(repo)


def _folders(event: HookEvent, environment: Mapping[str, str]) -> list[str]:
    """Return the repositories that an event concerns: those of its files, else that of its folder."""
    stand = _standpoint(event, environment)
    home = find_checkout(stand).state_folder if stand else ""
    found: dict[str, str] = {}
    for path in event.paths:
        folder = _existing(real_path(event, path).partition("/.git/")[0])
        try:
            state = find_checkout(folder).state_folder
        except RepositoryError:
            continue  # no repository, or a broken one that cannot hold claims
        if state == home or _is_known(folder):
            found.setdefault(state, stand if state == home else folder)
    return list(found.values()) or ([stand] if stand else [])


def _standpoint(event: HookEvent, environment: Mapping[str, str]) -> str:
    """Return the tool's folder, or else the client's project; empty when neither is in a repository.

    In a repository that Landlane does not know, such as a submodule, return the known one around it.
    """
    names = [client.project_variable for client in CLIENTS.values()]
    projects = [environment[name] for name in names if environment.get(name)]
    for folder in (event.cwd, *projects):  # a client that names no folder runs the hook in its own
        if found := _known_around(_existing(os.path.abspath(folder))):
            return found
    return ""


def _known_around(folder: str) -> str:
    inner = ""
    while True:
        try:
            root = find_checkout(folder).root
        except RepositoryError as error:
            if error.code not in _NO_REPOSITORY and not inner:
                raise
            return inner
        if _is_known(folder):
            return folder
        inner = inner or folder
        folder = os.path.dirname(root)
        if folder == root:
            return inner


def _is_known(folder: str) -> bool:
    """Return whether Landlane was set up or used in the repository of a folder."""
    found = find_checkout(folder)
    return os.path.isdir(found.state_folder) or os.path.exists(os.path.join(found.root, FILE_NAME))


def _existing(folder: str) -> str:
    """Return the nearest existing folder: the tool's current directory may have been deleted."""
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return folder


def _settle(repo: Repository) -> None:
    """Update the journal copy and the cached facts; after a failure the next hook does it."""
    try:
        repo.settle()
        cache_for_client_hooks(repo)
    except (LandlaneError, OSError, ValueError):
        return


def _said(error: Exception) -> str:
    """Format an error for a model."""
    if isinstance(error, LandlaneError):
        return f"{error.message}. {error.hint}." if error.hint else f"{error.message}."
    return f"{type(error).__name__}: {error}. Tell the person at the terminal to run `landlane doctor`."
