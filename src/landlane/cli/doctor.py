"""The command `doctor`."""

from __future__ import annotations

from landlane.doctor.examine import examine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.doctor.examine import Check


def _hints(checks: list[Check]) -> list[str]:
    """Return each hint once; several rows of one client share a hint under the client's name."""
    names: dict[tuple[str, str], list[str]] = {}
    for check in checks:
        if check.hint:
            names.setdefault((check.name.partition(":")[0], check.hint), []).append(check.name)
    return [f"hint ({rows[0] if len(rows) == 1 else whole}): {hint}" for (whole, hint), rows in names.items()]


def doctor(call: CommandCall, fix: bool) -> int:
    """Check the repository and show each finding."""
    checks = examine(call.cwd, fix=fix)
    rows = [
        {
            "name": check.name,
            "ok": check.is_ok,
            "enforced": check.is_enforced,
            "found": check.found,
            "hint": check.hint or None,
        }
        for check in checks
    ]
    is_well = all(check.is_ok for check in checks)
    marks = {True: "ok", False: "TROUBLE"}
    cells = [
        [marks[check.is_ok], "enforced" if check.is_enforced else "unenforced", check.name, check.found]
        for check in checks
    ]
    hints = _hints(checks)
    text = call.terminal.table("", ["", "", "check", "found"], cells) + (
        "\n" + "\n".join(hints) if hints else ""
    )
    answer = {"ok": is_well, "checks": rows}
    if not is_well:
        worst = next(check for check in checks if not check.is_ok)
        answer |= {"code": "UNWELL", "message": f"{worst.name}: {worst.found}", "hint": worst.hint}
    call.terminal.answer(answer, text.strip("\n"))
    return 0 if is_well else 1
