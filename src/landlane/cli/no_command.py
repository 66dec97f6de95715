"""`landlane` without arguments: the current situation and the next sensible step."""

from __future__ import annotations

import os

from landlane.app.open import person_name, was_set_up
from landlane.cli.inbox import item_lines
from landlane.cli.table import align
from landlane.cli.terminal import in_one_line
from landlane.errors import LandlaneError, RepositoryError
from landlane.git.discovery import find_checkout
from landlane.git.hook_pass import hooks_folder
from landlane.inbox.items import list_items
from landlane.status.headline import SEPARATOR, headline_json, headline_text, read_headline
from landlane.status.next_steps import NextStep, Overview, RepositorySetup, next_steps, overview_line
from landlane.status.overview import read_overview
from landlane.status.setup_state import installed_clients, read_setup
from landlane.status.troubles import trouble_lines
from landlane.tasks.records import get_task
from landlane.units import join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.git.discovery import Checkout
    from landlane.sessions.model import Session


_PURPOSE = "Landlane keeps coding agents from overwriting each other's work in one git repository."
_DEMO = NextStep(command="landlane demo", why="see it work in a scratch repository (under a minute)")
_INIT = NextStep(command="landlane init", why="set up this repository (shows a plan first)")
_GIT_INIT = NextStep(command="git init", why="make this directory a repository, then: landlane init")
_START_AGAIN = NextStep(command="landlane init", why="start again with an empty state")
_STATE_GONE = "was deleted. Claims, tasks and the journal are gone"
_MOST_STEPS = 2  # that people see


def show(call: CommandCall) -> int:
    """Show the caller's situation without changing anything; no state folder is created."""
    try:
        checkout = find_checkout(call.cwd)
    except RepositoryError as error:
        if error.code != "NO_REPOSITORY":
            raise
        lines = [_PURPOSE, "This directory is not in a git repository."]
        return _answer(call, "no_repository", lines, (_DEMO, _GIT_INIT), {"repository": None})
    if not os.path.isdir(checkout.state_folder):
        return _show_without_state(call, checkout)
    return _show_situation(call, checkout)


def _show_without_state(call: CommandCall, checkout: Checkout) -> int:
    fields = {"repository": checkout.root}
    name = os.path.basename(checkout.home_checkout.root if checkout.common_dir else checkout.root)
    if was_set_up(checkout):
        folder = os.path.relpath(checkout.state_folder, checkout.root)
        own = "; your own git hooks run again" if os.path.isdir(hooks_folder(checkout.home_dir)) else ""
        lines = [f"{name}{SEPARATOR}✗ state missing", "", f"✗ {folder} {_STATE_GONE}{own}."]
        return _answer(call, "state_missing", lines, (_START_AGAIN,), fields)
    steps = (_INIT, _DEMO) if checkout.common_dir else (_INIT,)
    clients = installed_clients(checkout.root)
    lines = [f"{name}{SEPARATOR}not set up", _risk_line(clients)]
    return _answer(call, "not_set_up", lines, steps, {**fields, "installed": clients})


def _risk_line(clients: Sequence[str]) -> str:
    if not clients:
        return "No coding client is installed here. People and scripts can still claim paths."
    none = {1: "It does not check", 2: "Neither checks"}.get(len(clients), "None of them checks")
    verb = "is" if len(clients) == 1 else "are"
    return f"{join_words(clients)} {verb} installed. {none} claims before it edits."


def _show_situation(call: CommandCall, checkout: Checkout) -> int:
    repo, setup, me = call.repo, read_setup(call.repo), _find_session(call)
    overview, person = read_overview(repo, me), person_name()
    headline, items = read_headline(repo, person), list_items(repo, person)
    fields = {
        "repository": checkout.root,
        "headline": headline_json(headline),
        "you": me.agent if me else None,
        "set_up": setup.is_set_up,
        "clients": list(setup.clients),
        **_numbers(overview),
        "inbox": items,
    }
    steps = next_steps(overview, setup)
    state = _state(overview, setup, has_items=bool(items))
    if me is not None and not me.is_person:
        visible = _agent_steps(call, overview)
        return _answer(call, state, _agent_lines(call, me, overview), steps, fields, visible)
    troubles = trouble_lines(repo, overview, call.wall_now())
    shown = [in_one_line(headline_text(headline))]
    if not items and not troubles:
        shown.append(overview_line(overview))
    shown += ["", *map(in_one_line, troubles)] if troubles else []
    shown += ["", "Needs you", *item_lines(items)] if items else []
    hidden = {"landlane inbox"} | ({step.command for step in steps} if troubles else set[str]())
    visible = [step for step in steps if step.command not in hidden]
    return _answer(call, state, shown, steps, fields, visible)


def _find_session(call: CommandCall) -> Session | None:
    try:
        return call.known_session()
    except LandlaneError:
        return None  # a caller that lost its session may still look


def _agent_lines(call: CommandCall, me: Session, overview: Overview) -> list[str]:
    """Return what an agent needs: its tasks and claims; messages for it follow on stderr."""
    from landlane.claims.take import live_claims_of  # noqa: PLC0415 - only agents need it

    repo = call.repo
    claims = repo.store.view(lambda snapshot: live_claims_of(snapshot, me.id))
    tasks = [get_task(repo, name) for name in overview.mine]
    lines = [f"You are {me.agent} in {os.path.basename(repo.checkout.root)}"]
    lines += [f"  task    {task.id} {in_one_line(task.title)}" for task in tasks] or ["  no task"]
    lines += [f"  claimed {in_one_line(claim.pattern)}" for claim in claims] or ["  no claims"]
    return lines


def _agent_steps(call: CommandCall, overview: Overview) -> list[NextStep]:
    named = f" --as {call.name}" if call.name else ""
    if overview.mine:
        return [NextStep(command=f"landlane next --resume{named}", why="show your task in full")]
    if overview.ready:
        return [NextStep(command=f"landlane next{named}", why="take the next ready task and its paths")]
    return []


def _state(overview: Overview, setup: RepositorySetup, *, has_items: bool) -> str:
    troubles = {
        "target_red": overview.red,
        "queue_paused": overview.queue_paused,
        "pool_paused": overview.pool_paused,
        "waits_for_person": has_items or overview.gates,
    }
    if found := next((name for name, is_so in troubles.items() if is_so), ""):
        return found
    if not setup.is_set_up:
        return "not_set_up"
    if overview.ready:
        return "tasks_ready"
    return "working" if overview.attempts or overview.landings or overview.mine else "nothing_to_do"


def _numbers(overview: Overview) -> dict[str, Any]:
    return {
        "tasks": dict(overview.tasks),
        "yours": list(overview.mine),
        "ready": list(overview.ready),
        "dead": list(overview.dead),
        "gates": list(overview.gates),
        "sessions": overview.sessions,
        "claims": overview.claims,
        "attempts": overview.attempts,
        "landings": overview.landings,
        "pool_paused": overview.pool_paused or None,
        "queue_paused": overview.queue_paused or None,
        "target_red": overview.red or None,
    }


def _answer(
    call: CommandCall,
    state: str,
    lines: list[str],
    steps: Sequence[NextStep],
    fields: dict[str, Any],
    visible: Sequence[NextStep] | None = None,
) -> int:
    """Answer with all steps; people see the first of those that the lines do not show already."""
    shown = (steps if visible is None else visible)[:_MOST_STEPS]
    rows = align([[step.command, in_one_line(step.why)] for step in shown], cut=1, gap="    ")
    next_items = [{"command": step.command, "why": step.why} for step in steps]
    text = "\n".join([*lines, *(["", *rows] if rows else [])])
    return call.terminal.answer({"ok": True, "state": state, **fields, "next": next_items}, text)
