"""Set up Codex: hooks in the checkout, the trust that it wants for them, and what keeps them idle."""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from landlane.clients.client_setup import ClientSetup, HookCommand, Run, join_home, our_hooks
from landlane.clients.codex.app_server import call_server
from landlane.clients.codex.hook import HOOKS
from landlane.clients.setup_checks import RUN_INIT, find_client_program, load_json, main_checkout
from landlane.clients.setup_files import (
    TOML,
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    is_ours,
    server_file,
)
from landlane.errors import LandlaneError, Malformed

# A linked worktree takes the hooks of the checkout it belongs to, but only if it has this folder itself, even
# an empty one.
_WORKTREE_FOLDER = ".codex"

_END_SECONDS = 3  # Codex allows no more at the end of a session
_SERVER_VARIABLES = ("LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE", "LANDLANE_RESIDENT")
_MAKE_TRUSTED = "trust them with /hooks in Codex, or: landlane init --client codex"


class _CodexSetup(ClientSetup):
    hooks = HOOKS
    path = ".codex/hooks.json"
    servers_path = ".codex/config.toml"
    noted_own_tools = ("mcp__landlane__.*",)

    def hook_table(self, command: HookCommand) -> dict[str, Any]:
        content = super().hook_table(command)
        # Codex runs a hook with the user's own shell, which may not understand how a guard's line ends.
        (guard,) = content["hooks"]["PreToolUse"][0]["hooks"]
        guard["command"] = f"/bin/sh -c {shlex.quote(guard['command'])}"
        content["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] = _END_SECONDS
        return content

    def server_files(self, words: list[str]) -> tuple[ClientFile, ...]:
        """Return our server, as Codex reads it in a project that it trusts.

        Without `required` Codex does not wait for a server: in its first turn the tools would be missing. It
        gives a server almost nothing of its environment, and in a sandbox no call can be approved.
        """
        lines = [
            "[mcp_servers.landlane]",
            f"command = {json.dumps(words[0])}",
            f"args = {json.dumps(words[1:])}",
            "required = true",
            'default_tools_approval_mode = "approve"',
            f"env_vars = {json.dumps(_SERVER_VARIABLES)}",
        ]
        return (server_file(self.servers_path, "\n".join(lines), TOML),)

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        folders = [_codex_home(env), env.path(".codex"), os.path.join(main_checkout(env.root), ".codex")]
        return [os.path.join(folder, name) for folder in folders for name in ("hooks.json", "config.toml")]

    def find_problems(self, env: ClientEnvironment, run: Run) -> list[SetupProblem]:
        root = main_checkout(env.root)
        try:
            settings = load_json(os.path.join(root, self.path))
        except Malformed as error:
            return [SetupProblem(what=error.message, hint=error.hint)]
        problems = self.hook_problems(settings)
        if root != env.root and not os.path.isdir(env.path(_WORKTREE_FOLDER)):
            what = f"reads no hooks in {env.root}, which has no folder {_WORKTREE_FOLDER}"
            problems.append(self.problem(what, f"make that folder, or {RUN_INIT} there"))
        if next(our_hooks(settings), None) and find_client_program(env, "codex"):
            problems += self._trust_problems(env, run, root)
        return problems

    def _trust_problems(self, env: ClientEnvironment, run: Run, root: str) -> list[SetupProblem]:
        """Return what Codex itself says about our hooks."""
        if _feature_is_off(env):
            hint = f"take `hooks = false` out of {trust_file(env)}"
            return [SetupProblem(what="Codex's hooks are switched off", hint=hint)]
        if not _is_project_trusted(env, root):
            return [self.problem("ignores its hooks: this folder is not trusted", _MAKE_TRUSTED)]
        try:
            listed = _listed(env, run, root)
        except LandlaneError as error:
            return [SetupProblem(what=error.message, hint=error.hint)]  # whether it trusts them is unknown
        if not listed:
            return [self.problem("lists none of our hooks", "look for its reason with `/hooks` in Codex")]
        idle = [hook for hook in listed if not _is_live(hook)]
        is_open = any(hook.get("eventName") == "preToolUse" for hook in idle)
        words = sorted(
            {"disabled" if hook.get("enabled") is False else str(hook.get("trustStatus")) for hook in idle}
        )
        what = f"skips {len(idle)} of our {len(listed)} hooks: {', '.join(words)}"
        return [self.problem(what, _MAKE_TRUSTED, is_open)] if idle else []


SETUP = _CodexSetup()


def trust_file(env: ClientEnvironment) -> str:
    """Return the file that `trust` has Codex write."""
    return os.path.join(_codex_home(env), "config.toml")


def trust(env: ClientEnvironment, run: Run) -> None:
    """Have Codex trust this project and our hooks in it; the user has agreed to it before.

    Raises:
        LandlaneError: Codex does not answer.
    """
    root = main_checkout(env.root)
    if not _is_project_trusted(env, root):
        _write(env, run, "projects", {os.path.realpath(root): {"trust_level": "trusted"}})
    states = {
        str(hook["key"]): {"trusted_hash": hook["currentHash"], "enabled": True}
        for hook in _listed(env, run, root)
        if not _is_live(hook)
    }
    if states:
        _write(env, run, "hooks.state", states)


def _listed(env: ClientEnvironment, run: Run, root: str) -> list[Mapping[str, Any]]:
    """Return our hooks as Codex lists them for this checkout."""
    answer = call_server(find_client_program(env, "codex"), run, "hooks/list", {"cwds": [root]})
    return [
        hook
        for folder in answer.get("data", [])
        for hook in folder.get("hooks", [])
        if is_ours(str(hook.get("command")))
    ]


def _is_live(hook: Mapping[str, Any]) -> bool:
    return hook.get("enabled") is not False and hook.get("trustStatus") in ("trusted", "managed")


def _write(env: ClientEnvironment, run: Run, key: str, item: dict[str, Any]) -> None:
    edit = {"keyPath": key, "value": item, "mergeStrategy": "upsert"}
    call_server(find_client_program(env, "codex"), run, "config/batchWrite", {"edits": [edit]})


def _codex_home(env: ClientEnvironment) -> str:
    return join_home(env, "CODEX_HOME", ".codex")


def _config(env: ClientEnvironment) -> dict[str, Any]:
    """Return the user's settings; empty if they cannot be read, which Codex reports itself."""
    try:
        with open(trust_file(env), "rb") as file:
            return tomllib.load(file)
    except (OSError, ValueError):
        return {}


def _is_project_trusted(env: ClientEnvironment, root: str) -> bool:
    projects: Mapping[str, Any] = _config(env).get("projects", {})
    keys = (root, os.path.realpath(root))
    return any(projects.get(key, {}).get("trust_level") == "trusted" for key in keys)


def _feature_is_off(env: ClientEnvironment) -> bool:
    features: Mapping[str, Any] = _config(env).get("features", {})
    return features.get("hooks") is False or features.get("codex_hooks") is False
