"""`landlane` without arguments: the current situation and the next sensible step."""

from __future__ import annotations

import os

from landlane.cli.terminal import in_one_line
from landlane.errors import LandlaneError, RepositoryError
from landlane.git.discovery import find_checkout
from landlane.git.hooks.former_hooks import load_installed_hooks
from landlane.managed_files.manifest import load_record
from landlane.settings.detect_test_command import find_test_command
from landlane.status.next_steps import Equipment, Standpoint, Step, next_steps, tells_of
from landlane.status.overview import stand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall


_MORE = "`landlane --help` lists all commands"


def standing(call: CommandCall) -> int:
    """Show the caller's situation without changing anything; no state folder is created."""
    try:
        checkout = find_checkout(call.cwd)
    except RepositoryError as error:
        if error.code != "NO_REPOSITORY":
            raise
        steps = (
            Step(command="cd REPOSITORY", why="go into a repository of yours, or make one with `git init`"),
            Step(command="landlane demo", why="see what it does, on a scratch repository"),
        )
        return _answer(
            call, "no_repository", ["there is no git repository here"], steps, {"repository": None}
        )
    facts: dict[str, Any] = {"repository": checkout.root}
    first = [f"repository {checkout.root}"]
    if not os.path.isdir(checkout.state_folder):
        has = Equipment(has_git=bool(checkout.common_dir))
        first.append("nobody has used Landlane here yet; nothing is held, and no client asks")
        steps = next_steps(Standpoint(tasks={}), has)
        return _answer(call, "not_set_up", first, steps, facts)
    has = _equipment(call)
    point, me = _look(call)
    facts |= {"you": me or None, "set_up": has.is_set_up, "clients": list(has.clients), **_numbers(point)}
    first += [_set_up_in_words(has), *([f"you are {me}"] if me else []), tells_of(point)]
    troubles = _troubles(point)
    state = troubles[0][0] if troubles else _state(point, has)
    return _answer(call, state, [*first, *(text for _, text in troubles)], next_steps(point, has), facts)


def _look(call: CommandCall) -> tuple[Standpoint, str]:
    try:
        me = call.known_session()
    except LandlaneError:
        me = None  # a caller that lost its session may still look
    return stand(call.repo, me), me.agent if me else ""


def _equipment(call: CommandCall) -> Equipment:
    repo = call.repo
    checkout, settings = repo.checkout, repo.settings
    record = load_record(checkout.state_folder)
    has_git = bool(checkout.common_dir)
    has_git_hooks = has_git and load_installed_hooks(checkout.home_checkout.common_dir) is not None
    has_checks = settings.landing.checks is not None
    return Equipment(
        is_set_up=bool(record.entries) or has_git_hooks,
        has_git=has_git,
        has_checks=has_checks,
        checks="" if has_checks else find_test_command(checkout.root)[0],
        agent=settings.run.agent,
        clients=record.clients,
        workers=tuple(settings.agents),
    )


def _set_up_in_words(has: Equipment) -> str:
    if not has.is_set_up:
        return "not set up: no client asks before it changes a file"
    return f"set up for {', '.join(has.clients)}" if has.clients else "set up, for no coding client"


def _troubles(point: Standpoint) -> list[tuple[str, str]]:
    """Return what blocks progress: a code for programs and a line for people."""
    waiting = len(point.gates)
    found = (
        ("target_red", point.red, point.red),
        ("queue_paused", point.queue_paused, f"the landing queue is paused: {point.queue_paused}"),
        ("pool_paused", point.pool_paused, f"the pool of workers is paused: {point.pool_paused}"),
        ("waits_for_person", waiting, f"{waiting} wait{'s' if waiting == 1 else ''} for a person"),
    )
    return [(word, text) for word, is_so, text in found if is_so]


def _state(point: Standpoint, has: Equipment) -> str:
    if not has.is_set_up:
        return "not_set_up"
    if point.ready:
        return "tasks_ready"
    return "working" if point.attempts or point.landings or point.mine else "nothing_to_do"


def _numbers(point: Standpoint) -> dict[str, Any]:
    return {
        "tasks": dict(point.tasks),
        "yours": list(point.mine),
        "ready": list(point.ready),
        "dead": list(point.dead),
        "gates": list(point.gates),
        "sessions": point.sessions,
        "claims": point.claims,
        "attempts": point.attempts,
        "landings": point.landings,
        "pool_paused": point.pool_paused or None,
        "queue_paused": point.queue_paused or None,
        "target_red": point.red or None,
    }


def _answer(
    call: CommandCall, state: str, lines: list[str], steps: tuple[Step, ...], facts: dict[str, Any]
) -> int:
    next_items = [{"command": step.command, "why": step.why} for step in steps]
    width = max((len(step.command) for step in steps), default=0)
    shown = [f"  {step.command:<{width}}  {in_one_line(step.why)}" for step in steps]
    text = "\n".join([*(in_one_line(line) for line in lines), "", "next:", *shown, _MORE])
    call.terminal.answer({"ok": True, "state": state, **facts, "next": next_items}, text)
    return 0
