"""Starting a coding client in a sandbox: private settings, its user's sign-in, its role in its own words.

A client is known by its program's name. It reads its own copy of its user's settings, in which the checkout
it works in is trusted: what runs there runs in the sandbox. Its own sandbox is switched off, since it
cannot be made within another.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tomllib
from typing import cast

from landlane.clients.as_worker.command import client_of_worker
from landlane.clients.model import EDIT, ROLE_CLIENTS
from landlane.clients.registry import permissions_for
from landlane.roles.restrictions import denied_paths
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.roles.model import Role
    from landlane.settings.model import Settings

    Document = dict[str, Any]

_CLAUDE, _CODEX = "clients/claude", "clients/codex"
# The user's file → its place in the scratch. What a client knows its user by, and how it is set up.
_COPIED = {
    ".claude/.credentials.json": f"{_CLAUDE}/.credentials.json",
    ".claude/settings.json": f"{_CLAUDE}/settings.json",
    ".codex/auth.json": f"{_CODEX}/auth.json",
    ".codex/config.toml": f"{_CODEX}/config.toml",
    ".gemini/oauth_creds.json": "home/.gemini/oauth_creds.json",
    ".gemini/google_accounts.json": "home/.gemini/google_accounts.json",
    ".gemini/settings.json": "home/.gemini/settings.json",
    ".qwen/oauth_creds.json": "home/.qwen/oauth_creds.json",
    ".qwen/settings.json": "home/.qwen/settings.json",
    ".copilot/config.json": "home/.copilot/config.json",
    ".copilot/mcp-config.json": "home/.copilot/mcp-config.json",
    ".local/share/opencode/auth.json": "home/.local/share/opencode/auth.json",
    ".config/opencode/opencode.json": "home/.config/opencode/opencode.json",
    ".config/gptme/config.toml": "home/.config/gptme/config.toml",
    ".aider.conf.yml": "home/.aider.conf.yml",
    ".aider.model.settings.yml": "home/.aider.model.settings.yml",
}
# Where a user has moved these folders to.
_MOVED = {".claude/": "CLAUDE_CONFIG_DIR", ".codex/": "CODEX_HOME"}
# Some clients run their commands by a login shell, which finds its programs anew.
_PROFILES = (".profile", ".zprofile")
_CLAUDE_KEPT = ("hasCompletedOnboarding", "oauthAccount", "userID", "theme", "customApiKeyResponses")
_HOOKS_OF_CODEX = ".codex/hooks.json"
_SETTINGS_OF_CODEX = ".codex/config.toml"
_OPTIONAL_SERVER = ("-c", "mcp_servers.landlane.required=false")
_TRUST_HOOKS = "--dangerously-bypass-hook-trust"
# Options that may be given once, with the other spellings of each. Those without a value come second.
_ONCE = {
    "--sandbox": (("--sandbox", "-s"), ("--full-auto",)),
    "--approval-mode": (("--approval-mode",), ("--yolo", "-y")),
}
_CODEX_OPEN = ("--dangerously-bypass-approvals-and-sandbox", "--yolo")


@value
class Start:
    """The words and the variables with which a command is started."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    client: str = ""


def client_of(command: Sequence[str]) -> str:
    """Which coding client a command starts, by itself or as a worker; empty when it is none that we know."""
    name = client_of_worker(command) or (os.path.basename(command[0]) if command else "")
    return name if name in ROLE_CLIENTS else ""


def furnish(scratch: str, workspace: str, search_path: str) -> None:
    """Let clients know their user in their private folders, and trust the checkout they will work in."""
    for name in _PROFILES:
        _write_text(os.path.join(scratch, "home", name), f"export PATH={shlex.quote(search_path)}\n")
    home = os.path.expanduser("~")
    for name, place in _COPIED.items():
        _copy(_source(home, name), os.path.join(scratch, place))
    known = _read(os.path.join(home, ".claude.json"))
    told = {key: known[key] for key in _CLAUDE_KEPT if key in known}
    trusted = {workspace: {"hasTrustDialogAccepted": True}}
    _write(
        os.path.join(scratch, _CLAUDE, ".claude.json"),
        {"hasCompletedOnboarding": True, **told, "projects": trusted},
    )
    _trust_for_codex(os.path.join(scratch, _CODEX, "config.toml"), workspace)
    _write(os.path.join(scratch, "home/.gemini/trustedFolders.json"), {workspace: "TRUST_FOLDER"})


def prepare_start(
    command: Sequence[str],
    role: Role,
    settings: Settings,
    scratch: str,
    workspace: str,
    *,
    is_throwaway: bool = False,
) -> Start:
    """The command as it is to be started: for a client, with its role in its own words.

    `is_throwaway`: it works in a clone of which nothing but the difference is kept, so that it may edit there
    whatever its role is. A command that runs a client as a worker hands these words on to the client.
    """
    client = client_of(command)
    if not client:
        return Start(command=tuple(command))
    if is_throwaway:
        role = _editing(role)
    if client_of_worker(command):
        at = list(command).index("--") + 1
        start = _prepare(client, (client, *command[at:]), role, settings, scratch, workspace)
        return replace(start, command=(*command[:at], *start.command[1:]))
    return _prepare(client, command, role, settings, scratch, workspace)


def _editing(role: Role) -> Role:
    """A role with its edit tools; what is denied to it stays denied."""
    tools = role.tools if EDIT in role.tools else (*role.tools, EDIT)
    return replace(role, tools=tools, writes=role.writes or ("**",))


def _prepare(
    client: str, command: Sequence[str], role: Role, settings: Settings, scratch: str, workspace: str
) -> Start:
    told = permissions_for(client, role, denied_paths(role, settings), is_sandboxed=True)
    arguments = list(told.arguments)
    if told.settings_file:
        _join(os.path.join(scratch, "home", told.settings_file), told.settings)
    if client == "claude" and any(word.split("=")[0] == "--settings" for word in command):
        _join(os.path.join(scratch, _CLAUDE, "settings.json"), told.settings)
        arguments = _without(arguments, ("--settings",), ())
    if client == "codex":
        arguments = _for_codex(command, arguments, workspace)
    words = [*command]
    for option in [word for word in arguments if word in _ONCE]:
        words = [words[0], *_without(words[1:], *_ONCE[option])]
    return Start(
        command=tuple(_put_behind(words, arguments)),
        environment=tuple((name, _with_own(name, text)) for name, text in told.environment.items()),
        client=client,
    )


def _with_own(name: str, text: str) -> str:
    """Settings in a variable, joined with what the user has there."""
    try:
        own, ours = json.loads(os.environ.get(name, "")), json.loads(text)
    except ValueError:
        return text
    if not isinstance(own, dict) or not isinstance(ours, dict):
        return text
    return json.dumps(_joined(cast("Document", own), cast("Document", ours)))


def _for_codex(command: Sequence[str], arguments: list[str], workspace: str) -> list[str]:
    """It runs hooks that were not looked at only if told so; in the sandbox they can do no more than it."""
    if any(word in _CODEX_OPEN for word in command):
        arguments = _without(arguments, ("--sandbox",), ())
    has_hooks = os.path.isfile(os.path.join(workspace, _HOOKS_OF_CODEX))
    if has_hooks and _TRUST_HOOKS not in command:
        arguments = [*arguments, _TRUST_HOOKS]
    # Commands do all that its tools do: it must not refuse to begin where our server cannot.
    return [*arguments, *(_OPTIONAL_SERVER if _has_server(workspace) else ())]


def _has_server(workspace: str) -> bool:
    try:
        with open(os.path.join(workspace, _SETTINGS_OF_CODEX), encoding="utf-8", errors="replace") as file:
            return "[mcp_servers.landlane]" in file.read(1_000_000)
    except OSError:
        return False


def _without(words: Sequence[str], with_value: Sequence[str], alone: Sequence[str]) -> list[str]:
    """Words without certain options, up to where options end."""
    kept: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*kept, word, *rest]
        if word in with_value:
            rest = rest[1:]
        elif word not in alone and word.partition("=")[0] not in with_value:
            kept.append(word)
    return kept


def _put_behind(words: list[str], arguments: Sequence[str]) -> list[str]:
    """At the end, where an option that takes several values swallows none of the user's words."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *arguments, *words[at:]]


def _source(home: str, name: str) -> str:
    for folder, variable in _MOVED.items():
        moved = os.environ.get(variable, "")
        if moved and name.startswith(folder):
            return os.path.join(moved, name.removeprefix(folder))
    return os.path.join(home, name)


def _copy(source: str, place: str) -> None:
    if not os.path.isfile(source):
        return
    _make_folder(os.path.dirname(place))
    try:
        shutil.copyfile(source, place)
    except OSError:
        return  # it cannot be read, and so it is not known
    os.chmod(place, 0o600)


def _make_folder(path: str) -> None:
    if not os.path.isdir(path):
        _make_folder(os.path.dirname(path))
        os.mkdir(path, 0o700)


def _read(path: str) -> Document:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return cast("Document", found) if isinstance(found, dict) else {}


def _write(path: str, document: Mapping[str, Any]) -> None:
    _write_text(path, json.dumps(document))


def _write_text(path: str, text: str) -> None:
    _make_folder(os.path.dirname(path))
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.chmod(path, 0o600)


def _join(path: str, more: Mapping[str, Any]) -> None:
    """Add to a client's settings; where both say something, both lists count, and ours goes before a word."""
    _write(path, _joined(_read(path), more))


def _joined(known: Mapping[str, Any], more: Mapping[str, Any]) -> Document:
    result = dict(known)
    for key, item in more.items():
        before: Any = result.get(key)
        if isinstance(before, dict) and isinstance(item, dict):
            result[key] = _joined(cast("Document", before), cast("Document", item))
        elif isinstance(before, list) and isinstance(item, list):
            known_ones, new_ones = cast("list[Any]", before), cast("list[Any]", item)
            result[key] = [*known_ones, *(one for one in new_ones if one not in known_ones)]
        else:
            result[key] = item
    return result


def _trust_for_codex(path: str, workspace: str) -> None:
    """Codex reads no settings and hooks of a project that its user does not trust."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode()
        tomllib.loads(text)
    except FileNotFoundError:
        text = ""
    except (OSError, ValueError):
        return  # Codex itself will say what is wrong with it, if it is ever started
    heading = f"[projects.{json.dumps(workspace)}]"
    if heading not in text:
        text = f'{text.rstrip()}\n\n{heading}\ntrust_level = "trusted"\n'.lstrip()
    _write_text(path, text)
