"""The command `init`."""

from __future__ import annotations

import os
import shlex
from difflib import unified_diff

from landlane.cli.person import refuse_agent
from landlane.cli.table import align
from landlane.cli.terminal import in_one_line
from landlane.clients.model import CLIENTS
from landlane.errors import Malformed
from landlane.managed_files.apply import ChangeVerb
from landlane.setup.init import carry_out, plan_init, plan_undo
from landlane.setup.plan import InitOptions
from landlane.setup.propose_settings import UNKNOWN_ID
from landlane.setup.purge import purge as purge_remaining
from landlane.setup.purge import remaining_after_undo
from landlane.text import home_path
from landlane.units import count, join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.setup.plan import InitPlan, InitResult, PlanLine, Remaining

_DONE = {
    ChangeVerb.CREATE: "created",
    ChangeVerb.REMOVE: "removed",
    ChangeVerb.RESTORE: "restored",
    ChangeVerb.CHANGE: "changed",
}
_LIST_WIDTH = 48
_FOR_SEVERAL = {
    "as init wrote it": "as init wrote them",
    "as it was before init": "as they were before init",
    "you changed it since": "you changed them since",
}


def init(
    call: CommandCall,
    undo: bool,
    purge: bool,
    yes: bool,
    dry_run: bool,
    client: tuple[str, ...],
    no_clients: bool,
    no_trust: bool,
) -> int:
    """Show the plan, ask for confirmation, then apply it."""
    if purge and not undo:
        raise Malformed(
            "--purge goes with --undo",
            code="BAD_CALL",
            hint=call.command_text("init", "--undo", "--purge"),
        )
    if purge:
        refuse_agent(call, "remove the state and its history")
    options = InitOptions(clients=client, has_clients=not no_clients, has_trust=not no_trust)
    plan = plan_undo(call.cwd) if undo else plan_init(call.cwd, options)
    answer: dict[str, Any] = {"ok": True, "changed": [], **_plan_json(plan)}
    if plan.is_nothing and not (purge and plan.is_undo):
        return call.terminal.answer(answer, "\n".join(_nothing_lines(call, plan)))
    shown = _plan_lines(call, plan) if not plan.is_nothing else []
    if plan.is_undo and (purge or dry_run):
        shown += _remaining_lines(call, plan, remaining_after_undo(call.cwd), is_purge=purge)
    if dry_run:
        answer |= {"plan": [line.path for line in plan.lines], "steps": _steps(plan)}
        return call.terminal.answer(answer, "\n".join([*shown, *_diffs(call, plan)]))
    if not yes and not call.terminal.can_ask:
        return _refuse_unasked(call, answer, shown, plan, is_purge=purge)
    call.terminal.note("\n".join([*shown, *([""] if yes else _before_question(call, plan))]))
    if not yes and not _is_confirmed(call, plan):
        return call.terminal.answer(answer, "Nothing was changed.")
    done = carry_out(plan)
    answer |= {"changed": list(done.changed), "notes": list(done.notes)}
    if plan.is_undo:
        return _finish_undo(call, plan, done, answer, is_purge=purge, may_ask=not yes)
    return call.terminal.answer(answer, "\n".join(_done_lines(call, plan, done)))


def _is_confirmed(call: CommandCall, plan: InitPlan) -> bool:
    """Ask whether to apply the plan; outside of git, which lacks most of it, only a yes counts."""
    if plan.is_undo or plan.has_git:
        return call.terminal.confirm("Apply?")
    return call.terminal.confirm("Set it up without git?", is_yes_default=False)


def _finish_undo(
    call: CommandCall,
    plan: InitPlan,
    done: InitResult,
    answer: dict[str, Any],
    *,
    is_purge: bool,
    may_ask: bool,
) -> int:
    """Answer what undo did and what is left, after removing that if it is wanted."""
    remaining = remaining_after_undo(call.cwd)
    lines = [f"✓ {_counts(done.lines, plan)}"] if done.lines or not is_purge else []
    if not is_purge and may_ask and remaining.is_any:
        call.terminal.note("\n".join([*lines, *_remaining_lines(call, plan, remaining, is_purge=False), ""]))
        lines = []
        is_purge = call.terminal.confirm("Remove what holds no work of yours?", is_yes_default=False)
        if not is_purge:
            lines = [f"Later: {call.command_text('init', '--undo', '--purge')}"]
    elif not is_purge:
        lines += _remaining_lines(call, plan, remaining, is_purge=False)
        lines += [f"next: {call.command_text('init', '--undo', '--purge')}"] if remaining.is_any else []
    if is_purge:
        purged = purge_remaining(call.cwd)
        answer["purged"] = list(purged.removed)
        answer["kept"] = [{"kind": one.kind, "name": one.name, "why": one.why} for one in purged.kept]
        lines += [f"✓ removed {_shown_path(call, plan, name)}" for name in purged.removed]
        lines += [f"! kept {one.kind} {_shown_path(call, plan, one.name)}: {one.why}" for one in purged.kept]
        lines = lines or ["✓ nothing is left to remove"]
        remaining = remaining_after_undo(call.cwd)
    answer["remaining"] = {"state": remaining.folder or None, **_remaining_json(remaining)}
    return call.terminal.answer(answer, "\n".join(map(in_one_line, lines)))


def _refuse_unasked(
    call: CommandCall, answer: dict[str, Any], shown: list[str], plan: InitPlan, *, is_purge: bool
) -> int:
    """Print the plan and change nothing: without a terminal, only --yes confirms it."""
    if not call.terminal.is_json:
        call.terminal.answer({}, "\n".join(shown))
    answer |= {
        "ok": False,
        "code": "NOT_CONFIRMED",
        "message": "nothing was changed: there is no terminal to ask for confirmation",
        "hint": f"apply the plan: {_typed(call, plan, *(['--purge'] if is_purge else []), '--yes')}",
        "plan": [line.path for line in plan.lines],
        "steps": _steps(plan),
    }
    return call.terminal.refuse(answer, 2)


def _typed(call: CommandCall, plan: InitPlan, *more: str) -> str:
    """Return the call as it was typed, with another option."""
    chosen = plan.options
    words = ["--undo"] if plan.is_undo else [word for name in chosen.clients for word in ("--client", name)]
    words += ["--no-clients"] if not chosen.has_clients else []
    words += ["--no-trust"] if not chosen.has_trust else []
    return call.command_text("init", *words, *more)


def _shown_path(call: CommandCall, plan: InitPlan, path: str) -> str:
    """Return a path as people read it: relative inside the repository, else from their home folder."""
    if not os.path.isabs(path):
        return path
    is_inside = path.startswith(os.path.join(plan.root, ""))
    return in_one_line(os.path.relpath(path, os.path.realpath(call.cwd)) if is_inside else home_path(path))


def _plan_lines(call: CommandCall, plan: InitPlan) -> list[str]:
    table = _undo_rows(call, plan) if plan.is_undo else _init_rows(call, plan)
    heading = f"Plan for {home_path(plan.root)} (nothing has changed yet)"
    return [heading, "", *align(table, cut=2), *(["", plan.consequence] if plan.consequence else [])]


def _init_rows(call: CommandCall, plan: InitPlan) -> list[list[str]]:
    files = [line for line in plan.lines if line.path != plan.folder] or plan.lines  # the state is not a file
    rows = [[line.verb, _shown_path(call, plan, line.path), line.why] for line in files]
    risks = {path: f"; {CLIENTS[name].title} stays unprotected" for name, path in plan.unprotected}
    return rows + [
        ["skip", _shown_path(call, plan, file.path), f"{file.why}{risks.get(file.path, '')}"]
        for file in plan.changes.skipped
    ]


def _undo_rows(call: CommandCall, plan: InitPlan) -> list[list[str]]:
    """Return rows that name all files with the same reason together, and workspaces without their files."""
    kept = [("keep", file.path, file.why, plan.root) for file in plan.changes.skipped]
    done = [(line.verb, line.path, line.why, line.root or plan.root) for line in plan.lines]
    groups: dict[tuple[str, str], list[str]] = {}
    for verb, path, why, root in (*done, *kept):
        shown = _shown_path(call, plan, path) if root == plan.root else f"hooks in {home_path(root)}"
        names = groups.setdefault((verb, why), [])
        names += [shown] if shown not in names else []
    rows: list[list[str]] = []
    for (verb, why), names in groups.items():
        lists = _broken(names)
        reason = _FOR_SEVERAL.get(why, why) if len(names) > 1 else why
        rows += [[verb, lists[0], reason], *(["", more, ""] for more in lists[1:])]
    return rows


def _broken(names: Sequence[str]) -> list[str]:
    """Return names as lists of a readable width."""
    lists = [names[0]]
    for name in names[1:]:
        if len(lists[-1]) + len(name) < _LIST_WIDTH:
            lists[-1] += f", {name}"
        else:
            lists[-1] += ","
            lists.append(name)
    return lists


def _before_question(call: CommandCall, plan: InitPlan) -> list[str]:
    if plan.is_undo:
        return [""]
    ways = f"Diff: {_typed(call, plan, '--dry-run')}. Undo: {call.command_text('init', '--undo')}."
    return [*([] if plan.consequence else [""]), ways, ""]


def _diffs(call: CommandCall, plan: InitPlan) -> list[str]:
    """Return the changes of every file, and that nothing was done."""
    diffs = [
        _diff(_shown_path(call, plan, step.path), step.before, step.after) for step in plan.changes.steps
    ]
    return ["", *diffs, "", "Nothing was changed (--dry-run)."]


def _nothing_lines(call: CommandCall, plan: InitPlan) -> list[str]:
    place = home_path(plan.root)
    said = f"✓ nothing to undo in {place}" if plan.is_undo else f"✓ {place} is set up; nothing to change"
    return [said, *_unprotected_lines(call, plan)]


def _unprotected_lines(call: CommandCall, plan: InitPlan) -> list[str]:
    """Return a warning for each client whose edits are not checked."""
    return [
        f"! {CLIENTS[name].title} stays unprotected: fix {_shown_path(call, plan, path)}, then run init again"
        for name, path in plan.unprotected
    ]


def _counts(lines: Iterable[PlanLine], plan: InitPlan) -> str:
    """Return how many files were created, changed, removed, restored and left alone."""
    numbers: dict[str, int] = {}
    for line in lines:
        if line.path != plan.folder:  # the state is not a file
            numbers[_DONE[line.verb]] = numbers.get(_DONE[line.verb], 0) + 1
    left = "kept" if plan.is_undo else "skipped"
    numbers |= {left: len(plan.changes.skipped)} if plan.changes.skipped else {}
    order = [*_DONE.values(), "kept", "skipped"]
    parts = [f"{verb} {numbers[verb]}" for verb in order if verb in numbers]
    if not parts:
        return "created the state" if plan.is_new else "nothing changed"
    first = parts[0].split(" ")
    return ", ".join([f"{first[0]} {count(int(first[1]), 'file')}", *parts[1:]])


def _done_lines(call: CommandCall, plan: InitPlan, done: InitResult) -> list[str]:
    lines = [f"✓ {_counts(done.lines, plan)}"]
    if done.protected:
        titles = [CLIENTS[name].title for name in done.protected]
        verb = "check" if len(titles) > 1 else "checks"
        they = "they edit" if len(titles) > 1 else "it edits"
        lines.append(f"✓ {join_words(titles)} now {verb} claims before {they} (restart open sessions)")
    lines += [*_unprotected_lines(call, plan), *(f"! {in_one_line(note)}" for note in done.notes)]
    steps: list[str] = []
    if done.to_commit:
        paths = shlex.join(_shown_path(call, plan, path) for path in done.to_commit)
        steps.append(f"git add {paths} && git commit -m 'Set up Landlane'")
    steps.append(call.command_text("doctor"))
    return [*lines, "", *(f"{label}: {step}" for label, step in zip(("next", "then"), steps, strict=False))]


def _remaining_lines(call: CommandCall, plan: InitPlan, remaining: Remaining, *, is_purge: bool) -> list[str]:
    """Return what undo leaves, by name; with `is_purge`, what is to be removed as well."""
    rows: list[str] = []
    if remaining.folder:
        entries = count(remaining.entries, "journal entry", "journal entries")
        rows.append(f"  the state in {_shown_path(call, plan, remaining.folder)} ({entries})")
    rows += [f"  workspace {home_path(path)}" for path in remaining.workspaces]
    rows += [f"  branch {ref.removeprefix('refs/heads/')}" for ref in remaining.branches]
    rows += (
        [f"  {count(remaining.saved, 'ref')} with saved work (landlane rescue list)"]
        if remaining.saved
        else []
    )
    rows += [f"  git config {name}" for name in remaining.settings]
    heading = "To be removed unless it holds work of yours:" if is_purge else "Undo leaves:"
    return ["", heading, *rows] if rows else []


def _remaining_json(remaining: Remaining) -> dict[str, Any]:
    return {
        "entries": remaining.entries,
        "workspaces": len(remaining.workspaces),
        "branches": len(remaining.branches),
        "workspace_paths": list(remaining.workspaces),
        "branch_names": [ref.removeprefix("refs/heads/") for ref in remaining.branches],
        "saved": remaining.saved,
        "git_settings": list(remaining.settings),
    }


def _plan_json(plan: InitPlan) -> dict[str, Any]:
    skipped = [{"path": change.path, "why": change.why} for change in plan.changes.skipped]
    unprotected = [name for name, _ in plan.unprotected]
    return {"clients": list(plan.clients), "left": skipped, "unprotected": unprotected}


def _steps(plan: InitPlan) -> list[dict[str, Any]]:
    diffs = {step.path: _diff(step.path, step.before, step.after) for step in plan.changes.steps}
    return [
        {"verb": line.verb, "path": line.path, "why": line.why, "diff": diffs.get(line.path)}
        for line in plan.lines
    ]


def _diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff of a file."""
    new_id = (UNKNOWN_ID.encode(), b"(chosen when this is applied)")
    sides = (before or b"", (after or b"").replace(*new_id))
    old, new = (side.decode("utf-8", "replace").splitlines() for side in sides)
    return "\n".join(unified_diff(old, new, f"{path} (now)", f"{path} (then)", lineterm=""))
