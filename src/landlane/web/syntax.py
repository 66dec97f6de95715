"""Colour code by its words: enough to read a diff, in a few lines and for any language."""

from __future__ import annotations

import itertools
import re

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@value
class Piece:
    """A part of a line: its class (k keyword, s string, f function, c comment) and whether it changed."""

    text: str
    kind: str = ""
    is_marked: bool = False


_WORDS = {
    "python": (
        "and as assert async await break case class continue def del elif else except finally for from "
        "global if import in is lambda match None nonlocal not or pass raise return self True False try "
        "while with yield"
    ),
    "script": (
        "abstract as async await break case catch class const continue default delete do else enum export "
        "extends false finally for from function if implements import in instanceof interface let new "
        "null of private protected public return static super switch this throw true try type typeof "
        "undefined var void while yield"
    ),
    "c": (
        "auto bool break case catch char class const continue default defer delete do double else enum "
        "extern false fn float for func go goto if impl import in int interface let long loop map match "
        "mod mut namespace new nil null package private protected pub public range return self short "
        "signed sizeof static struct super switch template this throw trait true try type typedef union "
        "unsigned use using var virtual void where while"
    ),
    "sql": (
        "add alter and as asc begin between by case check column commit constraint create cross default "
        "delete desc distinct drop else end exists foreign from full group having if in index inner "
        "insert into is join key left like limit not null on or order outer primary references right "
        "rollback select set table then to transaction trigger union unique update using values view when "
        "where with"
    ),
    "shell": (
        "case do done elif else esac exit export fi for function if in local return set shift then trap "
        "until while"
    ),
}
_ENDINGS = {
    "python": ("py", "pyi"),
    "script": ("js", "jsx", "ts", "tsx", "mjs", "cjs"),
    "c": ("c", "h", "cc", "cpp", "hpp", "cs", "go", "java", "kt", "rs", "swift", "scala", "dart", "zig"),
    "sql": ("sql",),
    "shell": ("sh", "bash", "zsh", "fish", "Makefile", "mk", "Dockerfile"),
    "data": ("toml", "yaml", "yml", "ini", "cfg", "conf", "rb", "pl", "r", "jl", "ex", "exs", "tf"),
}
_COMMENTS = {"python": "#", "shell": "#", "data": "#", "script": "//", "c": "//", "sql": "--"}
_LANGUAGES = {ending: language for language, endings in _ENDINGS.items() for ending in endings}
_PARTS = re.compile(
    r"""(?P<s>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?P<w>[A-Za-z_]\w*)(?P<call>(?=\())?|(?P<o>.)""",
    re.DOTALL,
)
_KEYWORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}


def language_of(path: str) -> str:
    """Return which words a file has; empty if its name does not say."""
    name = path.rpartition("/")[2]
    return _LANGUAGES.get(name.rpartition(".")[2], "")


def colour(code: str, language: str) -> tuple[Piece, ...]:
    """Return a line of code in pieces."""
    if not language or not code:
        return (Piece(text=code),)
    sign, keywords = _COMMENTS[language], _KEYWORDS.get(language, frozenset())
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(code):
        if code.startswith(sign, at) and (at == 0 or code[at - 1] in " \t;({"):
            found.append((code[at:], "c"))
            break
        match = _PARTS.match(code, at)
        assert match is not None
        found.append((match[0], _kind(match, keywords, language)))
        at = match.end()
    return tuple(_joined(found))


def _kind(match: re.Match[str], keywords: frozenset[str], language: str) -> str:
    if match["s"]:
        return "s"
    word = match["w"]
    if word and (word.lower() if language == "sql" else word) in keywords:
        return "k"
    return "f" if word and match["call"] is not None else ""


def _joined(parts: Sequence[tuple[str, str]]) -> list[Piece]:
    found: list[Piece] = []
    for text, kind in parts:
        if found and found[-1].kind == kind:
            found[-1] = Piece(text=found[-1].text + text, kind=kind)
        else:
            found.append(Piece(text=text, kind=kind))
    return found


def mark(pieces: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    """Return the pieces with those characters marked that changed."""
    if not spans:
        return tuple(pieces)
    found: list[Piece] = []
    at = 0
    for piece in pieces:
        cuts = {0, len(piece.text)}
        cuts |= {min(max(edge - at, 0), len(piece.text)) for span in spans for edge in span}
        edges = sorted(cuts)
        for start, end in itertools.pairwise(edges):
            is_marked = any(first <= at + start and at + end <= last for first, last in spans)
            found.append(Piece(text=piece.text[start:end], kind=piece.kind, is_marked=is_marked))
        at += len(piece.text)
    return tuple(found)
