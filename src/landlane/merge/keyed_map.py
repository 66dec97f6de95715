"""Merge keyed maps: JSON and TOML files such as package.json and pyproject.toml, key by key.

An ordinary merge of lines is tried first, since it keeps the comments and layout of both sides. It is used
only if it gives the same values as the merge of the trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from landlane.merge.json_source import NotJson, read_json
from landlane.merge.json_text import write_json
from landlane.merge.lines import clean_lines, merge_lines
from landlane.merge.model import SIDES, CannotMerge, Merged
from landlane.merge.source_spans import Source
from landlane.merge.text_file import TextLines, read_sides, read_text, style_notes, write_text
from landlane.merge.toml_read import parse_toml, read_document
from landlane.merge.toml_write import write_toml
from landlane.merge.value_tree import MISSING, is_same, merge_trees


def merge_map(
    base: bytes | None, ours: bytes, theirs: bytes, path: str, options: Mapping[str, str]
) -> Merged:
    """Merge the keys of both sides.

    Raises:
        CannotMerge: a side cannot be read, or both gave a key different values.
    """
    del options
    extension = _extension(path)
    texts = read_sides(base, ours, theirs, is_strict=True)
    values = [
        MISSING if content is None else _values(text.body, extension, side)
        for text, content, side in zip(texts, (base, ours, theirs), SIDES, strict=True)
    ]
    merged, conflicts = merge_trees(*values)
    if conflicts:
        raise CannotMerge("both sides changed the same keys differently", *conflicts)
    lines = _plain_merge(texts, extension, merged)
    notes: tuple[str, ...] = ()
    if lines is None:
        lines = _write(texts, extension, merged)
        if not is_same(_values_or_missing("\n".join(lines), extension), merged):
            raise CannotMerge(
                "both sides' keys can be joined, but not without losing how the target writes them",
                "join the two by hand: no key has two different values",
            )
        notes = _lost_comments(texts, lines) if extension == "toml" else ()
    return Merged(content=write_text(lines, texts[1]), notes=(*notes, *style_notes(texts[1])))


def check_map(content: bytes, path: str, options: Mapping[str, str], before: bytes | None) -> str:
    """Refuse a file that cannot be read, for example because a key occurs twice."""
    del options, before
    _values(read_text(content, "the file", is_strict=True).body, _extension(path), "the file")
    return ""


def _extension(path: str) -> str:
    extension = path.rpartition("/")[2].rpartition(".")[2].lower()
    if extension not in {"json", "toml"}:
        raise CannotMerge(f"a keyed-map has to be a .json or .toml file, and {path} is neither")
    return extension


def _values(text: str, extension: str, side: str) -> Any:
    return _read_json(text, side).root.value if extension == "json" else parse_toml(text, side)


def _read_json(text: str, side: str) -> Source:
    try:
        return read_json(text)
    except NotJson as error:
        raise CannotMerge(f"{side} is not valid JSON, {error}") from None


def _values_or_missing(text: str, extension: str) -> Any:
    try:
        return _values(text, extension, "the result")
    except CannotMerge:
        return MISSING


def _plain_merge(
    texts: tuple[TextLines, TextLines, TextLines], extension: str, merged: Any
) -> list[str] | None:
    lines = clean_lines(merge_lines(*(text.lines for text in texts)))
    if lines is None or not is_same(_values_or_missing("\n".join(lines), extension), merged):
        return None
    return lines


def _write(texts: tuple[TextLines, TextLines, TextLines], extension: str, merged: Any) -> list[str]:
    if extension == "toml":
        documents = (read_document(text.body, side) for text, side in zip(texts, SIDES, strict=True))
        return write_toml(merged, *documents)
    ours, theirs = (_read_json(text.body, side) for text, side in zip(texts[1:], SIDES[1:], strict=True))
    return write_json(merged, ours, theirs).removesuffix("\n").split("\n")


def _lost_comments(texts: tuple[TextLines, TextLines, TextLines], lines: Sequence[str]) -> tuple[str, ...]:
    """Return a note for each comment that only the candidate has and that is not in the result."""
    known = {line.strip() for line in (*texts[0].lines, *lines)}
    lost = {line.strip() for line in texts[2].lines if line.strip().startswith("#")} - known
    return tuple(f"not carried over from the candidate: {line}" for line in sorted(lost))
