"""The types of findings of `doctor` in JSON answers."""

from __future__ import annotations

from typing import TypedDict


class DoctorCheckJson(TypedDict):
    """One check of `doctor`."""

    name: str
    ok: bool
    enforced: bool
    fixed: bool
    found: str
    hint: str | None
