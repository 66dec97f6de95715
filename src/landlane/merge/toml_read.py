"""Read TOML as blocks of statements, each with its comments and the position of its value.

`tomllib` reads the text first, so it is known to be valid; the reader here only finds positions. An element
of an array of tables is one block with all tables below it.
"""

from __future__ import annotations

import tomllib
from typing import Any

from landlane.merge.model import CannotMerge, quote
from landlane.merge.source_spans import Member, Node, Source
from landlane.merge.value_tree import MISSING, MOST_NESTING, depth_of, is_table, token
from landlane.values import value

Path = tuple[str, ...]
Name = tuple[str, Path, str]  # the brackets of its header, its keys, and a token of an array's element

ROOT: Name = ("", (), "")
_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


@value
class Statement:
    """`key = value` with the comments and blank lines above it; `path` has the parts of the key."""

    path: Path
    above: tuple[str, ...]
    before: str
    node: Node
    after: str


@value
class Block:
    """A table of the text, or one element of an array of tables with all below it as `raw`."""

    name: Name
    above: tuple[str, ...]
    header: str
    statements: tuple[Statement, ...]
    raw: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The keys of the table."""
        return self.name[1]


@value
class Document:
    """A TOML text, its values, and its blocks in order."""

    source: Source
    value: dict[str, Any]
    blocks: tuple[Block, ...]


def parse_toml(text: str, side: str) -> dict[str, Any]:
    """Return the values of a text.

    Raises:
        CannotMerge: it is not TOML, has a key twice, or is nested too deep; with the line if there is one.
    """
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotMerge(f"{side} is not valid TOML: {quote(error)}") from None
    if depth_of(found) > MOST_NESTING:
        raise CannotMerge(f"{side} is nested deeper than {MOST_NESTING} levels")
    return found


def find(tree: Any, path: Path) -> Any:
    """Return the value at a path, or MISSING."""
    for key in path:
        if not is_table(tree) or key not in tree:
            return MISSING
        tree = tree[key]
    return tree


def read_document(text: str, side: str) -> Document:
    """Return a text as blocks."""
    content = parse_toml(text, side)
    reader = _BlockReader(text)
    root = Node(value=content, start=0, end=len(text))
    return Document(source=Source(text=text, root=root), value=content, blocks=reader.read_blocks(content))


class _TomlReader:
    """Reads keys and values at the position `at`, and moves it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def read_line(self) -> str:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line = self.text[self.at : end]
        self.at = end + 1
        return line

    def skip_blank(self, blanks: str = " \t") -> None:
        while self.at < len(self.text) and self.text[self.at] in blanks:
            self.at += 1

    def read_key(self) -> Path:
        parts: list[str] = []
        while True:
            self.skip_blank()
            start = self.at
            if self.text[start] in "\"'":
                self._skip_string()
                parts.append(_value_of(self.text[start : self.at]))
            else:
                while self.text[self.at] in _BARE:
                    self.at += 1
                parts.append(self.text[start : self.at])
            self.skip_blank()
            if self.text[self.at : self.at + 1] != ".":
                return tuple(parts)
            self.at += 1

    def read_value(self) -> Node:
        start = self.at
        members: list[Member] = []
        items: list[Node] = []
        here = self.text[start]
        if here in "\"'":
            self._skip_string()
        elif here == "[":
            self.at += 1
            while self._skip_to_next() != "]":
                items.append(self.read_value())
            self.at += 1
        elif here == "{":
            self.at += 1
            while self._skip_to_next() != "}":
                key_start = self.at
                key = self.read_key()
                key_end = self.at
                self.at = self.text.index("=", self.at) + 1
                self.skip_blank()
                node = self.read_value()
                members.append(Member(key=".".join(key), start=key_start, end=key_end, node=node))
            self.at += 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1
            self.at = start + len(self.text[start : self.at].rstrip())
        found = _value_of(self.text[start : self.at])
        return Node(value=found, start=start, end=self.at, members=tuple(members), items=tuple(items))

    def _skip_to_next(self) -> str:
        """Skip blanks, commas and comments, and return the first character of the next item or the end."""
        while True:
            self.skip_blank(" \t\n,")
            if self.text[self.at] != "#":
                return self.text[self.at]
            self.read_line()

    def _skip_string(self) -> None:
        quote = self.text[self.at]
        is_long = self.text.startswith(quote * 3, self.at)
        end = quote * 3 if is_long else quote
        self.at += len(end)
        while not self.text.startswith(end, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(end)
        # The content of a long string may end with one or two quotes.
        while is_long and self.text.startswith(quote, self.at):
            self.at += 1


class _BlockReader(_TomlReader):
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
        """Return the header that begins here, without moving on."""
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
        """Return the statements up to the next header, and the comments and blank lines before that."""
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


def _value_of(raw: str) -> Any:
    return tomllib.loads(f"x={raw}")["x"]


def _split_comments(lines: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split lines into those before, and the comments that touch what comes next."""
    at = len(lines)
    while at and lines[at - 1].strip():
        at -= 1
    return lines[:at], lines[at:]
