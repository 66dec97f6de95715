"""TOML as text: a document as blocks of statements, each with its comments and the place of its value.

`tomllib` has read the text before, so what is read here is known to be valid; this only finds out where what
stands. An element of an array of tables is one block with all tables below it.
"""

from __future__ import annotations

import tomllib

from landlane.merge.result import CannotMerge, shown
from landlane.merge.source_spans import Node, Source
from landlane.merge.toml_values import ValueReader
from landlane.merge.value_tree import MISSING, MOST_NESTING, depth_of, is_table, token
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Path = tuple[str, ...]
    Name = tuple[str, Path, str]

ROOT: Name = ("", (), "")


@value
class Statement:
    """`key = value` with the comments and blank lines above it; `path` is the key as the table knows it."""

    path: Path
    above: tuple[str, ...]
    before: str
    node: Node
    after: str


@value
class Block:
    """A table as it stands in the text, or one element of an array of tables with all below it as `raw`."""

    name: Name
    above: tuple[str, ...]
    header: str
    statements: tuple[Statement, ...]
    raw: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where in the document it lies."""
        return self.name[1]


@value
class Document:
    """A TOML text, what it holds, and its blocks in order."""

    source: Source
    value: dict[str, Any]
    blocks: tuple[Block, ...]


def parse_toml(text: str, side: str) -> dict[str, Any]:
    """What the text holds.

    Raises:
        CannotMerge: it is no TOML, has a key twice, or is nested too deep; with the line if there is one.
    """
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotMerge(f"{side} is not valid TOML: {shown(error)}") from None
    if depth_of(found) > MOST_NESTING:
        raise CannotMerge(f"{side} is nested deeper than {MOST_NESTING} levels")
    return found


def find(tree: Any, path: Path) -> Any:
    """What stands at this path, or MISSING."""
    for key in path:
        if not is_table(tree) or key not in tree:
            return MISSING
        tree = tree[key]
    return tree


def read_document(text: str, side: str) -> Document:
    """The text as blocks."""
    content = parse_toml(text, side)
    reader = _Reader(text)
    whole = Node(value=content, start=0, end=len(text))
    return Document(source=Source(text=text, root=whole), value=content, blocks=reader.read_blocks(content))


class _Reader(ValueReader):
    def read_blocks(self, content: dict[str, Any]) -> tuple[Block, ...]:
        blocks: list[Block] = []
        counts: dict[Path, int] = {}
        name, above, header = ROOT, (), ""
        start = 0
        while True:
            statements, below = self._read_statements()
            group = name[1] if name[0] == "[[" else None
            next_name = self._peek_header()
            # Tables below an element of an array belong to that element.
            while group is not None and next_name and next_name[1][: len(group)] == group != next_name[1]:
                self.read_line()
                _, below = self._read_statements()
                next_name = self._peek_header()
            own, next_above = _split_comments(below) if next_name else (below, ())
            if group is not None:
                end = self.at - sum(len(line) + 1 for line in below)
                raw = tuple(self.text[start:end].removesuffix("\n").split("\n"))
                blocks.append(Block(name=name, above=above, header="", statements=(), raw=raw, below=own))
            else:
                blocks.append(
                    Block(name=name, above=above, header=header, statements=statements, raw=(), below=own)
                )
            if not next_name:
                return tuple(blocks)
            name, above, start = next_name, next_above, self.at
            header = self.read_line()
            if name[0] == "[[":
                nth = counts.get(name[1], 0)
                counts[name[1]] = nth + 1
                elements = find(content, name[1])
                if not isinstance(elements, list):
                    raise CannotMerge(
                        f"the tables [[{'.'.join(name[1])}]] lie where this merge cannot follow"
                    )
                name = ("[[", name[1], token(elements[nth]))

    def _peek_header(self) -> Name | None:
        """The header that begins here, without reading on."""
        if self.at >= len(self.text):
            return None
        back = self.at
        self.skip_blank()
        kind = "[[" if self.text.startswith("[[", self.at) else "["
        self.at += len(kind)
        name = (kind, self.read_key(), "")
        self.at = back
        return name

    def _read_statements(self) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
        """All up to the next header, and the comments and blank lines that are left over before it."""
        statements: list[Statement] = []
        above: list[str] = []
        while self.at < len(self.text):
            back = self.at
            self.skip_blank()
            here = self.text[self.at : self.at + 1]
            if here == "[":
                self.at = back
                break
            if here in {"#", "\n", ""}:
                self.at = back
                above.append(self.read_line())
                continue
            path = self.read_key()
            self.at = self.text.index("=", self.at) + 1
            self.skip_blank()
            before = self.text[back : self.at]
            node = self.read_value()
            after = self.read_line()
            statements.append(Statement(path=path, above=tuple(above), before=before, node=node, after=after))
            above = []
        return tuple(statements), tuple(above)


def _split_comments(lines: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The comments that touch what comes next, apart from what stands before them."""
    at = len(lines)
    while at and lines[at - 1].strip():
        at -= 1
    return lines[:at], lines[at:]
