"""The command `init`."""

from __future__ import annotations

import shlex
from difflib import unified_diff

from landlane.clients.model import CLIENTS
from landlane.setup.init import InitOptions, carry_out, plan_init, plan_undo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.setup.init import InitPlan


def init(
    call: CommandCall,
    undo: bool,
    yes: bool,
    dry_run: bool,
    client: tuple[str, ...],
    no_clients: bool,
    no_trust: bool,
) -> int:
    """Show the plan, ask for confirmation, then apply it."""
    options = InitOptions(clients=client, has_clients=not no_clients, has_trust=not no_trust)
    plan = plan_undo(call.cwd) if undo else plan_init(call.cwd, options)
    _print_plan(call, plan, with_diffs=dry_run)
    answer: dict[str, Any] = {"ok": True, "changed": [], **_plan_json(plan)}
    warning = _unprotected(plan)
    if plan.is_nothing:
        return call.terminal.answer(answer, "\n".join(["nothing to do", *warning]))
    if dry_run:
        answer |= {"plan": [path for _, path, _ in plan.lines], "steps": _steps(plan)}
        return call.terminal.answer(answer, "\n".join(["nothing was changed (--dry-run)", *warning]))
    if not yes and call.terminal.can_ask and not call.terminal.confirm("go ahead?"):
        return call.terminal.answer(answer, "nothing was changed")
    done = carry_out(plan)
    for note in done.notes:
        call.terminal.note(f"note: {note}")
    answer |= {"changed": list(done.changed), "notes": list(done.notes)}
    text = "\n".join([*(f"changed {path}" for path in done.changed), *warning]) or "nothing to do"
    if len(plan.clients) > len(plan.unprotected):
        call.terminal.note("`landlane doctor` proves that the hooks fire and refuse")
    return call.terminal.answer(answer, text)


def _print_plan(call: CommandCall, plan: InitPlan, *, with_diffs: bool) -> None:
    for verb, path, why in plan.lines:
        call.terminal.note(f"  {verb:<7} {path}  {why}")
    for skipped in plan.changes.skipped:
        call.terminal.note(f"  leave   {skipped.path}  {skipped.why}")
    if plan.is_undo:
        why = "the state stays: it holds the history of all sessions; remove it with"
        call.terminal.note(f"  keep    {plan.folder}  {why} rm -r {shlex.quote(plan.folder)}")
    if with_diffs:
        for step in plan.changes.steps:
            if step.before is not None:
                call.terminal.note(_diff(step.path, step.before, step.after))


def _unprotected(plan: InitPlan) -> list[str]:
    """Return the warning that names clients whose edits are not checked."""
    if not plan.unprotected:
        return []
    titles = ", ".join(CLIENTS[name].title for name, _ in plan.unprotected)
    why = "; ".join(reason for _, reason in plan.unprotected)
    return [f"NOT protected: {titles} ({why}). Mend that, then run `landlane init` again"]


def _plan_json(plan: InitPlan) -> dict[str, Any]:
    skipped = [{"path": change.path, "why": change.why} for change in plan.changes.skipped]
    unprotected = [name for name, _ in plan.unprotected]
    return {"clients": list(plan.clients), "left": skipped, "unprotected": unprotected}


def _steps(plan: InitPlan) -> list[dict[str, Any]]:
    diffs = {step.path: _diff(step.path, step.before, step.after) for step in plan.changes.steps}
    return [
        {"verb": verb, "path": path, "why": why, "diff": diffs.get(path)} for verb, path, why in plan.lines
    ]


def _diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff of a file."""
    old, new = ((side or b"").decode("utf-8", "replace").splitlines() for side in (before, after))
    return "\n".join(unified_diff(old, new, f"{path} (now)", f"{path} (then)", lineterm=""))
