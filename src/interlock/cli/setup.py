"""The commands that set a repository up and look after it: init and doctor."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.cli.main import Desk


def init(desk: Desk, undo: bool, yes: bool, dry_run: bool) -> int:
    """Show the plan, ask a person at the terminal, then carry it out."""
    from interlock.initialising import carry_out, plan_init, plan_undo

    plan = plan_undo(desk.cwd) if undo else plan_init(desk.cwd)
    for step in plan.steps:
        desk.terminal.note(f"  {step.verb:<7} {step.path}  {step.why}")
    if not plan.steps:
        desk.terminal.answer({"ok": True, "changed": []}, "nothing to do")
        return 0
    if dry_run:
        answer = {"ok": True, "changed": [], "plan": [step.path for step in plan.steps]}
        desk.terminal.answer(answer, "nothing was changed (--dry-run)")
        return 0
    if not yes and not desk.terminal.confirm("go ahead?"):
        desk.terminal.answer({"ok": True, "changed": []}, "nothing was changed")
        return 0
    changed = carry_out(plan)
    desk.terminal.answer({"ok": True, "changed": changed}, "\n".join(f"changed {path}" for path in changed))
    return 0


def doctor(desk: Desk, fix: bool) -> int:
    """Examine the repository and show each finding."""
    from interlock.doctor import examine

    checks = examine(desk.cwd, fix=fix)
    rows = [
        {
            "name": one.name,
            "ok": one.is_ok,
            "enforced": one.is_enforced,
            "found": one.found,
            "hint": one.hint or None,
        }
        for one in checks
    ]
    is_well = all(one.is_ok for one in checks)
    marks = {True: "ok", False: "TROUBLE"}
    cells = [
        [marks[one.is_ok], "enforced" if one.is_enforced else "unenforced", one.name, one.found]
        for one in checks
    ]
    hints = [f"hint ({one.name}): {one.hint}" for one in checks if one.hint]
    text = desk.terminal.table("", ["", "", "check", "found"], cells) + (
        "\n" + "\n".join(hints) if hints else ""
    )
    answer = {"ok": is_well, "checks": rows}
    if not is_well:
        worst = next(one for one in checks if not one.is_ok)
        answer |= {"code": "UNWELL", "message": f"{worst.name}: {worst.found}", "hint": worst.hint}
    desk.terminal.answer(answer, text.strip("\n"))
    return 0 if is_well else 1
