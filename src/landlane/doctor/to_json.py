"""The public JSON form of a check."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.doctor.check import Check
    from landlane.doctor.json_types import DoctorCheckJson


def check_json(check: Check) -> DoctorCheckJson:
    """Return the public JSON form of a check."""
    return {
        "name": check.name,
        "ok": check.is_ok,
        "enforced": check.is_enforced,
        "fixed": check.is_fixed,
        "found": check.found,
        "hint": check.hint or None,
    }
