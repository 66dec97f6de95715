"""The command `doctor`."""

from __future__ import annotations

from landlane.doctor.examine import examine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.doctor.examine import Check


def _hints(checks: list[Check]) -> list[str]:
    """What to do, each thing once: for several rows of a client in the client's name."""
    names: dict[tuple[str, str], list[str]] = {}
    for one in checks:
        if one.hint:
            names.setdefault((one.name.partition(":")[0], one.hint), []).append(one.name)
    return [f"hint ({rows[0] if len(rows) == 1 else whole}): {hint}" for (whole, hint), rows in names.items()]


def doctor(call: CommandCall, fix: bool) -> int:
    """Examine the repository and show each finding."""
    checks = examine(call.cwd, fix=fix)
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
    hints = _hints(checks)
    text = call.terminal.table("", ["", "", "check", "found"], cells) + (
        "\n" + "\n".join(hints) if hints else ""
    )
    answer = {"ok": is_well, "checks": rows}
    if not is_well:
        worst = next(one for one in checks if not one.is_ok)
        answer |= {"code": "UNWELL", "message": f"{worst.name}: {worst.found}", "hint": worst.hint}
    call.terminal.answer(answer, text.strip("\n"))
    return 0 if is_well else 1
