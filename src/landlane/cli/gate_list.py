"""`landlane gate list`: what waits for a person."""

from __future__ import annotations

from landlane.gates.ask import list_gates
from landlane.gates.to_json import gate_json
from landlane.inbox.held_landings import landing_evidence
from landlane.inbox.to_json import inbox_cells, landing_gate_json
from landlane.landing.records import list_landings
from landlane.landing.to_json import landing_json
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command_call import CommandCall
    from landlane.landing.model import Landing
    from landlane.repository import Repository


_COLUMNS = ["id", "kind", "risk", "agent", "task", "change", "cost", "waits", "why"]


def list_all(call: CommandCall, all: bool = False) -> int:
    """Show what waits for a person, riskiest first."""
    call.show_life()
    repo = call.repo
    now = call.wall_now()
    items = [gate_json(gate, now) for gate in list_gates(repo, () if all else ("waiting",))]
    items += _held_landings(call, now)
    overdue = repo.settings.gates.overdue_ms // 1000
    items = [
        {**item, "is_overdue": item["state"] == "waiting" and item["waited_seconds"] >= overdue}
        for item in items
    ]
    items.sort(key=lambda item: (item["state"] != "waiting", -item["risk"], item["asked_at"]))
    waiting = sum(item["state"] == "waiting" for item in items)
    title = f"{waiting} wait{'s' if waiting == 1 else ''} for a person"
    cells = [inbox_cells(item) for item in items]
    if all:
        cells = [
            [*line[:-1], f"{item['state']}: {line[-1]}"] for line, item in zip(cells, items, strict=True)
        ]
    call.terminal.answer({"ok": True, "gates": items}, call.terminal.table(title, _COLUMNS, cells))
    return 0


def trusted_checkout(call: CommandCall) -> Repository | None:
    """Return the checkout to inspect; for a sandboxed caller only the main checkout's git config applies.

    Returns None without git.
    """
    if not call.repo.checkout.common_dir:
        return None
    repo = call.repo.require_git()
    return replace(repo, checkout=repo.home) if is_guest(call) else repo


def is_guest(call: CommandCall) -> bool:
    """Return whether the caller is in a sandbox."""
    return bool(getattr(call, "state_folder", ""))


def _held_landings(call: CommandCall, now: int) -> list[dict[str, Any]]:
    held = list_landings(call.repo, ("held",))
    return [landing_item(call, landing, now) for landing in held]


def landing_item(call: CommandCall, landing: Landing, now: int) -> dict[str, Any]:
    """Return a held landing in the form of a gate."""
    risk, evidence = landing_evidence(trusted_checkout(call) or call.repo, landing)
    return landing_gate_json(landing, landing_json(landing), risk, evidence, now)
