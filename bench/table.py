"""The one table: what was measured, ours, the peer's, the ratio, what it should be, and whether it is."""

from __future__ import annotations

from landlane.values import value

HEADINGS = ("what", "ours", "peer", "ratio", "aim", "met?")


@value
class Aim:
    """A promise about a ratio."""

    limit: float
    is_at_most: bool

    def text(self) -> str:
        return f"{'≤' if self.is_at_most else '≥'} {self.limit:g}"

    def is_met_by(self, ratio: float) -> bool:
        return ratio <= self.limit if self.is_at_most else ratio >= self.limit


def at_most(limit: float) -> Aim:
    """Ours may cost so many times what the peer costs."""
    return Aim(limit=limit, is_at_most=True)


def at_least(limit: float) -> Aim:
    """Ours must reach so many times what the peer reaches."""
    return Aim(limit=limit, is_at_most=False)


@value
class Row:
    """One comparison; without an aim it is only shown."""

    what: str
    unit: str
    ours: float
    peer: float
    aim: Aim | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.peer if self.peer else float("inf")

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        aim, met = ("", "") if self.aim is None else (self.aim.text(), self._verdict(self.aim))
        return self.what, self._amount(self.ours), self._amount(self.peer), f"{self.ratio:.2f}", aim, met

    def _verdict(self, aim: Aim) -> str:
        return "yes" if aim.is_met_by(self.ratio) else "NO"

    def _amount(self, number: float) -> str:
        digits = 0 if number >= 100 else 1 if number >= 10 else 2
        return f"{number:,.{digits}f} {self.unit}"


@value
class Skipped:
    """A bench that could not run here."""

    what: str
    reason: str


def draw(results: list[Row | Skipped]) -> str:
    """The table as text, and below it what was left out."""
    grid = [HEADINGS, *(row.cells() for row in results if isinstance(row, Row))]
    widths = [max(len(line[column]) for line in grid) for column in range(len(HEADINGS))]
    grid.insert(1, tuple("-" * width for width in widths))
    lines = [_line(cells, widths) for cells in grid]
    lines += [f"SKIPPED {item.what}: {item.reason}" for item in results if isinstance(item, Skipped)]
    return "\n".join(lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    what, *numbers = [(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join([what[0].ljust(what[1]), *(cell.rjust(width) for cell, width in numbers)]).rstrip()
