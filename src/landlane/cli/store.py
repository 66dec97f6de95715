"""The commands for the store: info, move, adopt, rebuild."""

from __future__ import annotations

from landlane.app.store_place import show_place
from landlane.doctor.examine import describe_store, rebuild_here
from landlane.errors import StoreError
from landlane.setup.adopt_store import adopt_store
from landlane.setup.move_store import move_store
from landlane.text import short_path
from landlane.units import byte_size, count
from landlane.values import as_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall


def info(call: CommandCall) -> int:
    """Show where the state is stored and how much there is."""
    description = describe_store(call.repo)
    if call.terminal.is_verbose:
        text = "\n".join(f"{key:<12} {content}" for key, content in description.items())
    else:
        text = "\n".join(_summary_lines(description))
    return call.terminal.answer({"ok": True, "store": description}, text, quiet=str(description["place"]))


def _summary_lines(store: dict[str, Any]) -> list[str]:
    size = f" ({byte_size(store['bytes'])})" if "bytes" in store else ""
    writer = f", written by Landlane {store['written_by']}" if "written_by" in store else ""
    place = str(store["place"])
    shown = place if "://" in place else short_path(place)
    return [
        f"{str(store['kind']).partition(' (')[0]} at {shown}{size}{writer}",
        f"  {_counts(store['entries'], store['claims'], store['sessions'])}",
    ]


def _counts(entries: int, claims: int, sessions: int) -> str:
    parts = (count(entries, "journal entry", "journal entries"), count(claims, "claim"))
    return f"{', '.join(parts)}, {count(sessions, 'session')}"


def move(call: CommandCall, url: str) -> int:
    """Move everything to another store and show what was moved."""
    try:
        moved = move_store(call.cwd, url)
    except StoreError as error:
        if error.code == "STORE_UNKNOWN_KIND":
            place = show_place(f"postgresql://{url.partition('://')[2]}")
            error.hint = call.command_text("store", "move", place)
        raise
    place = moved.place if "://" in moved.place else short_path(moved.place)
    lines = [f"✓ moved {_counts(moved.entries, moved.claims, moved.sessions)} to {place}"]
    if moved.is_followed:
        lines = [f"✓ the state is in {place} already; this clone uses it from now on"]
    answer: dict[str, Any] = {"ok": True, "moved": as_dict(moved), "hint": None}
    if "://" in moved.place:
        share = call.command_text("config", "set", "store.url", moved.place)
        answer["hint"] = f"other clones keep their own store until the settings name this one: {share}"
        lines += ["  other clones keep their own store until the settings name this one", f"next: {share}"]
    return call.terminal.answer(answer, "\n".join(lines))


def adopt(call: CommandCall) -> int:
    """Use what the settings name, and show what has changed."""
    adopted = adopt_store(call.cwd)
    text = "\n".join(f"✓ {line}" for line in adopted.changed)
    return call.terminal.answer({"ok": True, "adopted": as_dict(adopted)}, text)


def rebuild(call: CommandCall) -> int:
    """Rebuild the store from the journal's copy."""
    rebuilt = rebuild_here(call.cwd)
    lines = [f"✓ rebuilt the store: {_counts(rebuilt.entries, rebuilt.claims, rebuilt.sessions)}"]
    if rebuilt.unreadable:
        lines.append(f"! {count(rebuilt.unreadable, 'line')} of the journal could not be used and are kept")
    lines += [f"  the old file is kept as {rebuilt.kept}"] if rebuilt.kept else []
    return call.terminal.answer({"ok": True, "rebuilt": as_dict(rebuilt)}, "\n".join(lines))
