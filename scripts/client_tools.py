#!/usr/bin/env python3
"""Copy the numbers of the store and the tools and events of each coding client into the quick hook.

The quick hook must not import their modules. The copy is a block of
`src/landlane/hook_entry/client_fast_path.py`. `--check` writes nothing, and fails with a diff when that is
stale.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any

from landlane.clients.model import HOOK_CLIENTS
from landlane.clients.registry import hooks_of
from landlane.protocol.hook_events import HookEventKind
from landlane.sessions.signs_of_life import RECORD_BYTES
from landlane.store.schema_version import SCHEMA_VERSION
from landlane.store.sqlite.database import APPLICATION_ID

TARGET = Path(__file__).resolve().parent.parent / "src" / "landlane" / "hook_entry" / "client_fast_path.py"
BEGIN = "# Written by scripts/client_tools.py: begin\n"
END = "# end of what scripts/client_tools.py writes\n"

# The quick hook leaves these to the full one: their arguments need more than a look.
SKIPPED_CLIENTS = ("cursor",)
SKIPPED_TOOLS = {
    "gemini": ("read_many_files",),
    "copilot": ("str_replace_editor", "apply_patch"),
    "opencode": ("patch", "apply_patch"),
}


def main(arguments: list[str] | None = None) -> int:
    """Write or check the block, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the copy is stale")
    before = TARGET.read_text(encoding="utf-8")
    after = with_block(before)
    if before == after:
        return 0
    if not parser.parse_args(arguments).check:
        TARGET.write_text(after, encoding="utf-8")
        return 0
    print(
        "\n".join(difflib.unified_diff(before.splitlines(), after.splitlines(), TARGET.name, "wanted", n=1))
    )
    print(f"{TARGET.name} is stale. `python scripts/client_tools.py` updates it.", file=sys.stderr)
    return 1


def with_block(text: str) -> str:
    """Return the module with the block as it should be."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    lines = [
        "# From store/sqlite/database.py, store/schema_version.py and sessions/signs_of_life.py.",
        f"APPLICATION_ID = 0x{APPLICATION_ID:X}",
        f"SCHEMA_VERSION = {SCHEMA_VERSION}",
        f"_RECORD_BYTES = {RECORD_BYTES}",
        "# From clients/*/hook.py.",
        '_CLIENTS: "dict[str, Json]" = {',
    ]
    for name in HOOK_CLIENTS:
        if name not in SKIPPED_CLIENTS:
            lines += [f'    "{name}": {{', *_rows(table_of(name)), "    },"]
    return "\n".join([head + BEGIN.rstrip("\n"), *lines, "}", END + tail])


def table_of(client: str) -> dict[str, Any]:
    """Return what the quick hook needs to know about a client."""
    hooks = hooks_of(client)
    tools = hooks.tools
    keys = tools.keys
    skipped = SKIPPED_TOOLS.get(client, ())
    # The first event of a kind: an event for failures comes second, and is left to the full hook.
    first = {
        kind: next(event for event in hooks.kinds if hooks.kinds[event] == kind)
        for kind in (HookEventKind.BEFORE, HookEventKind.AFTER)
    }
    named = {
        field: {tool: key for tool, key in getattr(tools, field).items() if tool not in skipped}
        for field in ("edits", "patches", "reads")
    }
    return {
        "keys": (keys.session, keys.agent, keys.event, keys.tool, keys.arguments),
        "events": {first[HookEventKind.BEFORE]: 1, first[HookEventKind.AFTER]: 2},
        **named,
        "harmless": (*tools.network, *tools.harmless),
    }


def _rows(table: dict[str, Any]) -> list[str]:
    """Return the rows of a table as the formatter writes them."""
    rows: list[str] = []
    for field, content in table.items():
        is_mapping = content.__class__ is dict
        items = [
            f"{_quoted(key)}: {_quoted(content[key])}" if is_mapping else _quoted(key) for key in content
        ]
        left, right = "{}" if is_mapping else "()"
        line = f'        "{field}": {left}{", ".join(items)}{right},'
        if len(line) <= 110:
            rows.append(line)
        else:
            rows += [
                f'        "{field}": {left}',
                *(f"            {item}," for item in items),
                f"        {right},",
            ]
    return rows


def _quoted(item: object) -> str:
    return f'"{item}"' if isinstance(item, str) else repr(item)


if __name__ == "__main__":
    raise SystemExit(main())
