"""Set up a client: the files that `init` writes for it, and what keeps our hooks in them from working."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from landlane.clients.hook_format import ClientHooks
from landlane.clients.model import CLIENTS
from landlane.clients.setup_checks import RUN_INIT, broken_command, get, items, read_settings, table
from landlane.clients.setup_files import (
    JSON,
    OURS,
    SECONDS,
    WHOLE,
    ClientEnvironment,
    ClientFile,
    SetupProblem,
    hooks_file,
    is_ours,
    placeholder_command,
    server_file,
)
from landlane.values import replace

HookCommand = Callable[[str, bool], str]  # makes the hook's command for an event and whether it guards
Run = Callable[[list[str]], str]  # starts a program and returns its output


class ClientSetup:
    """How one client is set up. A subclass has the facts about it, and overrides what it does differently.

    `init` writes the hooks into a table of events, each with groups of a matcher and its hooks.
    """

    hooks: ClientHooks
    path: str  # of the file with our hooks, in the checkout
    form = JSON
    servers_path = ".mcp.json"  # of the file with our MCP server
    trusts_server = False  # whether its tools are to be called without a question
    timeout = SECONDS  # of a hook, in the client's unit
    noted_own_tools: tuple[str, ...] = ()  # tools of our server whose caller has to be noted
    after_unguarded = ""  # what follows the command of a hook that guards nothing
    lets_slow_hooks_pass = False

    @property
    def title(self) -> str:
        """The client's name for people."""
        return CLIENTS[self.hooks.name].title

    @property
    def noted_tools(self) -> str:
        """The tools whose calls are only recorded, so that an edit of an outdated version is noticed."""
        return "|".join((*self.hooks.tools.reads, *self.noted_own_tools))

    def wanted_files(self, command: HookCommand) -> tuple[ClientFile, ...]:
        """Return our hooks, in the file where the client reads them."""
        hooks: Any = self.hook_table(command)
        content = json.dumps(hooks, indent=2) + "\n" if self.form == WHOLE else hooks
        return (hooks_file(self.path, content, self.form),)

    def hook_table(self, command: HookCommand) -> dict[str, Any]:
        """Return the content of the file with our hooks: one for each event; before a tool it guards."""
        before, after = self.hooks.before_tool, self.after_unguarded
        hooks = {event: [self.hook_group(command(event, False) + after)] for event in self.hooks.kinds}
        guarded = "|".join(self.hooks.tools.guarded)
        hooks[before] = [
            self.hook_group(command(before, True), guarded),
            self.hook_group(command(before, False) + after, self.noted_tools),
        ]
        return {"hooks": hooks}

    def hook_group(self, command: str, matcher: str = "") -> dict[str, Any]:
        """Return one hook, in its group."""
        group = {"matcher": matcher} if matcher else {}
        hook = {"type": "command", "command": command, "timeout": self.timeout}
        return {**group, "hooks": [hook]}

    def server_files(self, words: list[str]) -> tuple[ClientFile, ...]:
        """Return our MCP server, in the file where the client reads it."""
        trust = {"trust": True} if self.trusts_server else {}
        server = {"command": words[0], "args": words[1:], **trust}
        return (server_file(self.servers_path, {"mcpServers": {"landlane": server}}),)

    def hook_files(self, env: ClientEnvironment) -> list[str]:
        """Return the files that the client reads hooks from, whether they exist or not."""
        raise NotImplementedError

    def find_problems(self, env: ClientEnvironment, run: Run) -> list[SetupProblem]:
        """Return everything that keeps our hooks from being called, or from refusing when they fail."""
        settings, problems = read_settings(env.path(self.path))
        problems += self.hook_problems(settings)
        problems += self.more_problems(env, run, settings)
        if self.lets_slow_hooks_pass:
            what = f"{self.title} lets an edit pass when a hook takes longer than {SECONDS} seconds"
            hint = "nothing to do: our hooks give up and refuse before that, unless the machine stands still"
            problems.append(SetupProblem(what=what, hint=hint, is_open=False))
        return problems

    def more_problems(
        self, env: ClientEnvironment, run: Run, settings: Mapping[str, Any]
    ) -> list[SetupProblem]:
        """Return the problems that only this client can have."""
        raise NotImplementedError

    def hook_problems(self, settings: Mapping[str, Any]) -> list[SetupProblem]:
        """Return which of our hooks are missing in a file or cannot run."""
        wanted = self.hook_table(placeholder_command)
        known = {(event, matcher) for event, matcher, _ in our_hooks(settings)}
        missing = {event for event, matcher, _ in our_hooks(wanted) if (event, matcher) not in known}
        # A guard's command refuses when its program is gone: the guard holds, but nothing can be edited.
        commands = {_command_of(hook) for _, _, hook in our_hooks(settings)} - {OURS}
        gone = sorted({broken_command(command) for command in commands} - {""})
        before = self.hooks.before_tool
        return [
            *(
                self.problem(f"has no hook of ours for {event} in {self.path}", RUN_INIT, event == before)
                for event in sorted(missing)
            ),
            *(
                SetupProblem(
                    what=f"{self.title}'s hooks run {part}, which is not there", hint=RUN_INIT, is_open=False
                )
                for part in gone
            ),
        ]

    def problem(self, what: str, hint: str, is_open: bool = True) -> SetupProblem:
        """Return a problem of this client."""
        return SetupProblem(what=f"{self.title} {what}", hint=hint, is_open=is_open)

    def switched_off(
        self, paths: Iterator[str] | list[str], key_of: Callable[[Mapping[str, Any]], str] | None = None
    ) -> list[SetupProblem]:
        """Return the settings files that switch hooks off; `key_of` names the key that does, if one does."""
        problems: list[SetupProblem] = []
        for path in paths:
            settings, unreadable = read_settings(path)
            problems += [replace(one, is_open=False) for one in unreadable]
            if key := (key_of or all_hooks_off)(settings):
                what = f"{self.title}'s hooks are switched off"
                problems.append(SetupProblem(what=what, hint=f"take `{key}` out of {path}"))
        return problems


def our_hooks(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield our hooks in a client's settings: event, matcher, and the hook itself.

    Most clients list hooks in groups below their events, some list them right there.
    """
    for event, groups in table(settings.get("hooks")).items():
        for group in items(groups):
            for hook in items(get(group, "hooks")) or [group]:
                if is_ours(_command_of(hook)):
                    yield event, str(get(group, "matcher") or ""), table(hook)


def _command_of(hook: Any) -> str:
    return str(get(hook, "bash") or get(hook, "command"))


def all_hooks_off(settings: Mapping[str, Any]) -> str:
    """Return the key by which Claude, Qwen and Copilot switch all hooks off, if it does."""
    return "disableAllHooks" if settings.get("disableAllHooks") is True else ""


def is_on(env: ClientEnvironment, variable: str) -> bool:
    """Return whether a variable of the environment is set to yes."""
    return env.variables.get(variable, "").lower() in ("1", "true")


def join_home(env: ClientEnvironment, variable: str, folder: str) -> str:
    """Return the folder with the user's settings, which a variable can name."""
    return env.variables.get(variable) or os.path.join(env.home, folder)
