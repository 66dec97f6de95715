"""Start a coding client in a sandbox: private settings, the user's sign-in, the options for its role.

A client is recognised by the name of its program. It reads a copy of the user's settings in which its
checkout is trusted, because everything there runs in the sandbox. The client's own sandbox is switched off,
since sandboxes cannot be nested.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from typing import cast

from landlane.clients.as_worker.command import client_of_worker
from landlane.clients.model import ROLE_CLIENTS
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
# File of the user → its copy in the scratch folder: sign-in and settings of each client.
_MODELS = (
    *("ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "GOOGLE_*", "OPENROUTER_*", "AZURE_*", "MISTRAL_*", "GROQ_*"),
    *("DEEPSEEK_*", "XAI_*", "TOGETHER*", "FIREWORKS_*", "CEREBRAS_*", "COHERE_*", "HF_TOKEN"),
)
# The variables by which each client signs in; a `*` stands for any end.
_SIGN_IN = {
    "claude": ("ANTHROPIC_*", "CLAUDE_*"),
    "codex": ("OPENAI_*", "CODEX_*", "AZURE_OPENAI_*"),
    "gemini": ("GEMINI_*", "GOOGLE_*"),
    "qwen": ("QWEN_*", "OPENAI_*", "DASHSCOPE_*"),
    "copilot": ("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"),
    "opencode": ("OPENCODE_*", *_MODELS),
}
_ENV_KEY = re.compile(r"env_key\W{1,4}([A-Za-z_]\w{0,200})")  # in an option of Codex
_BEDROCK = "CLAUDE_CODE_USE_BEDROCK"
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
# Variables by which a user has moved these folders.
_MOVED = {".claude/": "CLAUDE_CONFIG_DIR", ".codex/": "CODEX_HOME"}
# Some clients run their commands in a login shell, which sets PATH again.
_PROFILES = (".profile", ".zprofile")
_CLAUDE_KEYS = ("hasCompletedOnboarding", "oauthAccount", "userID", "theme", "customApiKeyResponses")
_CODEX_HOOKS = ".codex/hooks.json"
_CODEX_SETTINGS = ".codex/config.toml"
_OPTIONAL_SERVER = ("-c", "mcp_servers.landlane.required=false")
_TRUST_HOOKS = "--dangerously-bypass-hook-trust"
# Options that may be given once: their spellings with a value, and those without one.
_ONCE = {
    "--sandbox": (("--sandbox", "-s"), ("--full-auto",)),
    "--approval-mode": (("--approval-mode",), ("--yolo", "-y")),
}
_CODEX_NO_SANDBOX = ("--dangerously-bypass-approvals-and-sandbox", "--yolo")


@value
class ClientCommand:
    """A command line with its environment variables; `client` is empty for other programs."""

    words: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    client: str = ""
    own_variables: tuple[str, ...] = ()  # that it needs to reach its model, although they are secrets


def client_of(command: Sequence[str]) -> str:
    """Return the coding client that a command starts, directly or as a worker; empty for other programs."""
    name = client_of_worker(command) or (os.path.basename(command[0]) if command else "")
    return name if name in ROLE_CLIENTS else ""


def prepare_client_homes(scratch: str, workspace: str, search_path: str) -> None:
    """Copy the user's client settings into the private home, and mark the workspace as trusted."""
    for name in _PROFILES:
        _write_text(os.path.join(scratch, "home", name), f"export PATH={shlex.quote(search_path)}\n")
    home = os.path.expanduser("~")
    for name, target in _COPIED.items():
        _copy(_source(home, name), os.path.join(scratch, target))
    account = _read(os.path.join(home, ".claude.json"))
    copied = {key: account[key] for key in _CLAUDE_KEYS if key in account}
    trusted = {workspace: {"hasTrustDialogAccepted": True}}
    _write(
        os.path.join(scratch, _CLAUDE, ".claude.json"),
        {"hasCompletedOnboarding": True, **copied, "projects": trusted},
    )
    _trust_for_codex(os.path.join(scratch, _CODEX, "config.toml"), workspace)
    _write(os.path.join(scratch, "home/.gemini/trustedFolders.json"), {workspace: "TRUST_FOLDER"})


def prepare_command(
    command: Sequence[str],
    role: Role,
    settings: Settings,
    scratch: str,
    workspace: str,
) -> ClientCommand:
    """Return the command to start; for a client, with the options and settings that its role needs.

    A command that runs a client as a worker passes these options on to the client.
    """
    client = client_of(command)
    if not client:
        return ClientCommand(words=tuple(command))
    if client_of_worker(command):
        at = list(command).index("--") + 1
        prepared = _prepare(client, (client, *command[at:]), role, settings, scratch, workspace)
        return replace(prepared, words=(*command[:at], *prepared.words[1:]))
    return _prepare(client, command, role, settings, scratch, workspace)


def _prepare(
    client: str, command: Sequence[str], role: Role, settings: Settings, scratch: str, workspace: str
) -> ClientCommand:
    permissions = permissions_for(client, role, denied_paths(role, settings), is_sandboxed=True)
    arguments = list(permissions.arguments)
    if permissions.settings_file:
        _merge_into_file(os.path.join(scratch, "home", permissions.settings_file), permissions.settings)
    if client == "claude" and any(word.split("=")[0] == "--settings" for word in command):
        _merge_into_file(os.path.join(scratch, _CLAUDE, "settings.json"), permissions.settings)
        arguments = _without(arguments, ("--settings",), ())
    if client == "codex":
        arguments = _codex_options(command, arguments, workspace)
    words = [*command]
    for option in [word for word in arguments if word in _ONCE]:
        words = [words[0], *_without(words[1:], *_ONCE[option])]
    return ClientCommand(
        words=tuple(_append_options(words, arguments)),
        environment=tuple(
            (name, _merged_with_user(name, text)) for name, text in permissions.environment.items()
        ),
        client=client,
        own_variables=_sign_in_of(client, command, scratch),
    )


def _sign_in_of(client: str, command: Sequence[str], scratch: str) -> tuple[str, ...]:
    """Return the variables by which a client signs in, with those that its own settings name."""
    known = _SIGN_IN.get(client, (f"{client.upper()}_*", *_MODELS))
    if client == "claude" and os.environ.get(_BEDROCK):
        return (*known, "AWS_*")
    if client == "codex":
        given = [found[1] for word in command if (found := _ENV_KEY.search(word))]
        return (*known, *given, *_env_keys(os.path.join(scratch, _CODEX, "config.toml")))
    return known


def _env_keys(path: str) -> list[str]:
    """Return the variables that Codex's settings name for the keys of model providers."""
    try:
        with open(path, "rb") as file:
            providers = tomllib.load(file).get("model_providers", {})
    except (OSError, ValueError):
        return []
    tables = cast("Document", providers).values() if isinstance(providers, dict) else ()
    found = [cast("Document", table).get("env_key") for table in tables if isinstance(table, dict)]
    return [name for name in found if isinstance(name, str)]


def _merged_with_user(name: str, text: str) -> str:
    """Return JSON settings for a variable, merged with the user's own value of it."""
    try:
        own, ours = json.loads(os.environ.get(name, "")), json.loads(text)
    except ValueError:
        return text
    if not isinstance(own, dict) or not isinstance(ours, dict):
        return text
    return json.dumps(_merge(cast("Document", own), cast("Document", ours)))


def _codex_options(command: Sequence[str], arguments: list[str], workspace: str) -> list[str]:
    """Add the options Codex needs: it runs unreviewed hooks only with one, which is safe in the sandbox."""
    if any(word in _CODEX_NO_SANDBOX for word in command):
        arguments = _without(arguments, ("--sandbox",), ())
    has_hooks = os.path.isfile(os.path.join(workspace, _CODEX_HOOKS))
    if has_hooks and _TRUST_HOOKS not in command:
        arguments = [*arguments, _TRUST_HOOKS]
    # The commands do everything the MCP tools do, so Codex must start even if the server cannot.
    return [*arguments, *(_OPTIONAL_SERVER if _has_server(workspace) else ())]


def _has_server(workspace: str) -> bool:
    try:
        with open(os.path.join(workspace, _CODEX_SETTINGS), encoding="utf-8", errors="replace") as file:
            return "[mcp_servers.landlane]" in file.read(1_000_000)
    except OSError:
        return False


def _without(words: Sequence[str], with_value: Sequence[str], alone: Sequence[str]) -> list[str]:
    """Return the words without certain options, up to `--`."""
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


def _append_options(words: list[str], arguments: Sequence[str]) -> list[str]:
    """Put options at the end: one that takes several values would swallow the user's words elsewhere."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], *arguments, *words[at:]]


def _source(home: str, name: str) -> str:
    for folder, variable in _MOVED.items():
        moved = os.environ.get(variable, "")
        if moved and name.startswith(folder):
            return os.path.join(moved, name.removeprefix(folder))
    return os.path.join(home, name)


def _copy(source: str, target: str) -> None:
    if not os.path.isfile(source):
        return
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    try:
        shutil.copyfile(source, target)
    except OSError:
        return  # the user cannot read it, either
    os.chmod(target, 0o600)


def _read(path: str) -> Document:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError):
        return {}
    return cast("Document", document) if isinstance(document, dict) else {}


def _write(path: str, document: Mapping[str, Any]) -> None:
    _write_text(path, json.dumps(document))


def _write_text(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.chmod(path, 0o600)


def _merge_into_file(path: str, more: Mapping[str, Any]) -> None:
    """Merge into a client's settings: lists are joined, other values are replaced."""
    _write(path, _merge(_read(path), more))


def _merge(known: Mapping[str, Any], more: Mapping[str, Any]) -> Document:
    result = dict(known)
    for key, item in more.items():
        before: Any = result.get(key)
        if isinstance(before, dict) and isinstance(item, dict):
            result[key] = _merge(cast("Document", before), cast("Document", item))
        elif isinstance(before, list) and isinstance(item, list):
            old_items, new_items = cast("list[Any]", before), cast("list[Any]", item)
            result[key] = [*old_items, *(new for new in new_items if new not in old_items)]
        else:
            result[key] = item
    return result


def _trust_for_codex(path: str, workspace: str) -> None:
    """Mark the workspace as trusted: Codex ignores settings and hooks of other projects."""
    try:
        with open(path, "rb") as file:
            text = file.read().decode()
        tomllib.loads(text)
    except FileNotFoundError:
        text = ""
    except (OSError, ValueError):
        return  # Codex reports the broken file itself
    heading = f"[projects.{json.dumps(workspace)}]"
    if heading not in text:
        text = f'{text.rstrip()}\n\n{heading}\ntrust_level = "trusted"\n'.lstrip()
    _write_text(path, text)
