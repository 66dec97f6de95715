"""A table for a terminal, drawn by rich."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


def rich_table(title: str, columns: list[str], rows: list[list[str]]) -> str:
    """Return a table rendered for a terminal."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for column in columns:
        table.add_column(column)
    for cells in rows:
        table.add_row(*cells)
    target = io.StringIO()
    # No markup: app/[id]/page.tsx and :bug: are printed literally.
    Console(file=target, force_terminal=True, soft_wrap=True, markup=False, emoji=False).print(table)
    return target.getvalue().rstrip("\n")
