"""The commands for the store: info, move, rebuild."""

from __future__ import annotations

from landlane.doctor.examine import describe_store, rebuild_here
from landlane.setup.move_store import move_store
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def info(call: CommandCall) -> int:
    """Show where the state is stored and how much there is."""
    description = describe_store(call.repo)
    text = "\n".join(f"{key:<12} {content}" for key, content in description.items())
    return call.terminal.answer({"ok": True, "store": description}, text)


def move(call: CommandCall, url: str) -> int:
    """Move everything to another store and show what was moved."""
    call.repo.settle(wait_seconds=5.0)
    moved = move_store(call.repo, url)
    text = f"moved {moved.entries} entries, {moved.claims} claims, {moved.sessions} sessions to {moved.place}"
    hint = f'other clones go on with what they have: commit [store] url = "{moved.place}" for them'
    call.terminal.answer({"ok": True, "moved": as_dict(moved), "hint": hint}, text)
    call.terminal.note(f"hint: {hint}")
    return 0


def rebuild(call: CommandCall) -> int:
    """Rebuild the store from the journal's copy."""
    rebuilt = rebuild_here(call.cwd)
    text = (
        f"rebuilt from {rebuilt.entries} entries: {rebuilt.claims} claims, {rebuilt.sessions} sessions,"
        f" epoch {rebuilt.epoch}; the old store is kept as {rebuilt.kept or 'nothing: there was none'}"
    )
    return call.terminal.answer({"ok": True, "rebuilt": as_dict(rebuilt)}, text)
