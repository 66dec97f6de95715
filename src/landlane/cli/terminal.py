"""The only writer to the terminal: answers to stdout, the rest to stderr, colour only on a terminal.

Handlers pass plain text, and what could control a terminal in it is escaped here. Colour follows from the
words: `✓` is green, `error:` red, a command after `hint:` cyan. So everything reads the same without colour,
and no handler needs to know about it.
"""

from __future__ import annotations

import os
import sys

from landlane.cli.parse import parse, split_call
from landlane.cli.table import format_table, shorten, wrap_card
from landlane.error_json import error_json
from landlane.errors import LandlaneError, Malformed
from landlane.platform.terminal import can_redraw, is_terminal
from landlane.text import in_json, in_lines, in_one_line, shell_quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TextIO


_RED, _GREEN, _YELLOW, _CYAN, _DIM, _BOLD, _PLAIN = (f"\x1b[{code}m" for code in (31, 32, 33, 36, 2, 1, 0))
_STYLES = {"green": _GREEN, "yellow": _YELLOW, "dim": _DIM}
_SYMBOLS = {"✓": _GREEN, "✗": _RED, "!": _YELLOW}
_KINDS = {"error:": _RED, "refused:": _YELLOW, "timed out:": _YELLOW, "waiting:": _YELLOW}
_COMMAND_LABELS = ("hint:", "next:", "then:", "fix:", "approve:", "reject:", "retry:", "stop:", "drop:")
# The first word of an error by exit code; others are `error:`.
_FIRST_WORDS = {3: "refused:", 4: "refused:", 5: "timed out:", 6: "refused:", 7: "waiting:"}
_ASCII = {
    "✓": "ok", "✗": "x", "–": "-", "●": "*", "━": "=", "─": "-", "→": "->", "…": "...", "·": "|",
    "≥": ">=", "↑": "up", "↓": "down", "−": "-", "×": "x", "“": '"', "”": '"',
}  # fmt: skip
WIDEST = 100
_READING = ("claims", "status", "who", "log", "stats", "usage", "help", "doctor", "config", "inbox", "store")
_READING_VERBS = (["get"], ["history"], ["list"], ["show"])


class Terminal:
    """Writes a command's answer, notes and errors."""

    def __init__(
        self,
        *,
        is_json: bool = False,
        is_verbose: bool = False,
        is_quiet: bool = False,
        agent: str = "",
        folder: str = "",
    ) -> None:
        self.agent, self.folder = agent, folder  # as typed with --as and --repo
        self.is_json = is_json
        self.is_verbose = is_verbose
        self.is_quiet = is_quiet
        self._has_live_line = False

    def answer(
        self, document: Mapping[str, Any], text: str = "", code: int = 0, *, quiet: str | None = None
    ) -> int:
        """Print the command's only answer, as JSON or as text; return the exit code.

        With -q only `quiet` is printed: the value that a script needs.
        """
        if self.is_json:
            _write(sys.stdout, to_json(document), is_painted=False)
        else:
            _write(sys.stdout, (quiet or "") if self.is_quiet else text)
        return code

    def answer_card(
        self, document: Mapping[str, Any], text: str, *, output: str = "", quiet: str | None = None
    ) -> int:
        """Print an answer whose text is a card: long texts in it are wrapped, not the output below it."""
        lines = "\n".join(map(in_one_line, text.split("\n")))
        card = wrap_card(lines, min(terminal_width(), WIDEST))
        return self.answer(document, f"{card}\n\n{output.rstrip()}" if output else card, quiet=quiet)

    def answer_value(self, document: dict[str, Any], text: str, remark: str = "") -> int:
        """Print a value that scripts capture alone to stdout, and a remark about it to stderr."""
        if self.is_json or is_terminal(sys.stdout):
            self.answer(document, text, quiet=text)
        else:
            self.write_raw(f"{text}\n" if text else "", "")
        if remark and not self.is_quiet and not self.is_json:
            _write_stderr(encodable(stderr_style(in_lines(remark), "dim"), sys.stderr) + "\n")
        return 0

    def as_typed(self, text: str) -> str:
        """Return a hint or a next step whose command repeats --as and --repo as they were typed."""
        return "\n".join(repeat_identity(line, self.agent, self.folder) for line in text.split("\n"))

    def refuse(
        self, document: dict[str, Any], code: int, details: Iterable[str] = (), *, is_outcome: bool = False
    ) -> int:
        """Answer with a refusal: JSON, or an error with details before its hint; return the exit code.

        An outcome that scripts branch on, such as that there is no task, begins with its subject.
        """
        if document.get("hint"):
            document = {**document, "hint": self.as_typed(document["hint"])}
        if self.is_json:
            return self.answer(document, code=code)
        exit_code = None if is_outcome else code
        self.print_error(document["message"], document["hint"], document["code"], details, exit_code)
        return code

    def line(self, document: Mapping[str, Any], text: str) -> None:
        """Print one line of an unbounded answer, such as the followed journal."""
        self.answer(document, text, quiet=text)
        if sys.stdout is not None:
            sys.stdout.flush()

    def write_raw(self, out: str, err: str) -> None:
        """Print text exactly as another program expects it."""
        if out and sys.stdout is not None:
            sys.stdout.buffer.write(out.encode("utf-8", "backslashreplace"))
        if err:
            _write_stderr(in_lines(err if err.endswith("\n") else err + "\n"))

    def item_table(self, title: str, items: list[dict[str, Any]], columns: Sequence[str]) -> str:
        """Return a table of the given columns of JSON objects as text."""
        return self.table(title, columns, [[_cell(item[name]) for name in columns] for item in items])

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        right: Sequence[str] = (),
        cut: str = "",
        gap: str = "  ",
    ) -> str:
        """Return a table as text, cut to the width of the terminal; only the title if there are no rows."""
        if not rows:
            return title
        cells = [[in_one_line(cell) for cell in row] for row in rows]
        width = cut_width()
        header = [column.upper() for column in columns]
        table = format_table(header, cells, right=right, cut=cut, width=width, gap=gap)
        return f"{title}\n{table}" if title else table

    def note(self, text: str) -> None:
        """Print a remark to stderr; nothing with --json."""
        if not self.is_json:
            self._clear_live_line()
            _write(sys.stderr, text)

    def live(self, make_text: Callable[[], str]) -> None:
        """Replace the live line on stderr, which only a terminal shows; an empty text removes it."""
        if self.is_json or self.is_quiet or not can_redraw(sys.stderr):
            return
        text = in_one_line(make_text())
        self._clear_live_line()
        if text:
            _write_stderr(shorten(text, terminal_width() - 1))
            self._has_live_line = True

    def _clear_live_line(self) -> None:
        if self._has_live_line:
            _write_stderr("\r\x1b[2K")
            self._has_live_line = False

    @property
    def is_live(self) -> bool:
        """Return whether a line on stderr can be shown and replaced."""
        return not self.is_json and not self.is_quiet and can_redraw(sys.stderr)

    def show_progress(self, text: str) -> None:
        """Replace the progress line on the terminal; an empty text removes it."""
        if self.is_live:
            _write_stderr(f"\r\x1b[2K{shorten(in_one_line(text), terminal_width() - 1)}")

    @property
    def can_ask(self) -> bool:
        """Return whether a person can be asked."""
        return not self.is_json and is_terminal(sys.stdin) and is_terminal(sys.stderr)

    def confirm(self, question: str, *, is_yes_default: bool = True) -> bool:
        """Ask the person at the terminal; callers check `can_ask` first."""
        _write_stderr(f"{in_lines(question)} [{'Y/n' if is_yes_default else 'y/N'}] ")
        answer = sys.stdin.readline().strip().lower()
        return answer in ("y", "yes") or (not answer and is_yes_default)

    def ask(self, question: str) -> str:
        """Return what the person at the terminal answers; callers check `can_ask` first."""
        _write_stderr(f"{in_lines(question)} ")
        return sys.stdin.readline().strip()

    def fail(self, error: LandlaneError, wall_of: Callable[[int], int] | None = None) -> int:
        """Report an error, as JSON or for people; return the exit code."""
        return self.refuse(error_json(error, wall_of), error.exit_code, error.facts.get("excerpt", ()))

    def print_error(
        self, message: str, hint: str, code: str, details: Iterable[str] = (), exit_code: int | None = 1
    ) -> None:
        """Print an error: what happened with its code, details, and what to do."""
        self._clear_live_line()
        first = "" if exit_code is None else f"{_FIRST_WORDS.get(exit_code, 'error:')} "
        _write(sys.stderr, f"{first}{in_one_line(message)} [{code}]")
        for detail in details:
            _write(sys.stderr, detail)
        for line in hint.split("\n") if hint else ():
            _write(sys.stderr, f"hint: {in_one_line(line)}")


def repeat_identity(text: str, agent: str, folder: str) -> str:
    """Return a hint with --as and --repo added to the landlane command in it, and not to words after it.

    Commands that only show something do not depend on the caller and get no --as.
    """
    start = 0 if text.startswith("landlane ") else text.rfind(": landlane ") + 2
    if not (agent or folder) or start == 1 or "`" in text:
        return text
    length = _call_length(text[start:])
    call, rest = text[start : start + length], text[start + length :]
    words = call.split()
    is_reading = words[1:2] == [] or words[1] in _READING or words[2:3] in _READING_VERBS
    added = f" --as {agent}" if agent and not is_reading and "--as" not in words else ""
    if folder and "--repo" not in words:
        added += f" --repo {shell_quote(folder)}"
    before, dashes, command = call.partition(" -- ")
    return f"{text[:start]}{before}{added}{dashes}{command}{rest}"


def _call_length(text: str) -> int:
    """Return how many characters at the start of a text are a call; words that explain it may follow."""
    ends = [len(text), *(end for end in range(len(text) - 1, 0, -1) if text[end] in " ,;")]
    for end in ends:
        try:
            parse(split_call(text[:end]))
        except (Malformed, ValueError):
            continue
        return end
    return len(text)


def terminal_width() -> int:
    """Return how wide the terminal is that shows stdout."""
    return _width_of(sys.stdout)


def stderr_width() -> int:
    """Return how wide the terminal is that shows stderr."""
    return _width_of(sys.stderr)


def _width_of(stream: TextIO | None) -> int:
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream is not None else WIDEST
    except (OSError, ValueError, AttributeError):
        columns = WIDEST
    return max(columns or WIDEST, 40)


def stderr_style(text: str, style: str) -> str:
    """Return an escaped text in a colour if stderr has colours; `style` is green, yellow, dim or empty."""
    return f"{_STYLES[style]}{text}{_PLAIN}" if style and text and has_colour(sys.stderr) else text


def stderr_text(text: str) -> str:
    """Return an escaped text as stderr shows it: with the colours of its words, in the characters it has."""
    return encodable(paint(text) if has_colour(sys.stderr) else text, sys.stderr)


def cut_width() -> int:
    """Return the width that lines are cut to; 0 if stdout is not a terminal, because nothing is cut then."""
    return terminal_width() if is_terminal(sys.stdout) else 0


def flush() -> bool:
    """Flush stdout and return whether that worked: the reader may be gone or the disk full."""
    is_flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            is_flushed = False
    return is_flushed


def has_colour(stream: TextIO | None) -> bool:
    """Return whether to colour what goes to a stream."""
    if os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str) -> str:
    """Return a text with the colours that follow from its words; a title is bold."""
    lines = text.split("\n")
    before, after = ["", *lines], [*lines[1:], ""]
    return "\n".join(
        f"{_BOLD}{_paint_line(line, then=_BOLD)}{_PLAIN}"
        if _is_title(above, line, below)
        else _paint_line(line)
        for above, line, below in zip(before, lines, after, strict=False)
    )


def _is_title(above: str, line: str, below: str) -> bool:
    """Return whether a line is the headline of a repository, or stands alone above indented lines."""
    is_free = not above and line[:1] not in ("", " ", *_SYMBOLS) and not line.startswith(tuple(_KINDS))
    return is_free and (below.startswith("  ") or " · " in line)


def _paint_line(line: str, then: str = "") -> str:
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    if body[:1] in _SYMBOLS and body[1:2] == " ":
        return f"{indent}{_SYMBOLS[body[0]]}{body[0]}{_PLAIN}{_dim_code(body[1:])}"
    for word, colour in _KINDS.items():
        if body.startswith(word):
            return f"{indent}{colour}{word}{_PLAIN}{_dim_code(body[len(word) :])}"
    for label in _COMMAND_LABELS:
        if body.startswith(f"{label} "):
            before, colon, command = body.rpartition(": ")
            return f"{indent}{before}{colon}{_CYAN}{command}{_PLAIN}"
    if "  " in body and body.isupper():
        return f"{indent}{_DIM}{body}{_PLAIN}"
    for words in ("needs you", "need you"):
        if words in body and f"nothing {words}" not in body:
            body = body.replace(words, f"{_YELLOW}{words}{_PLAIN}{then}")
    return indent + _dim_code(body)


def _dim_code(text: str) -> str:
    before, bracket, code = text.rpartition(" [")
    if bracket and code.endswith("]") and code[:-1].replace("_", "").isupper():
        return f"{before}{_DIM}{bracket}{code}{_PLAIN}"
    return text


def _write(stream: TextIO | None, text: str, *, is_painted: bool = True) -> None:
    """Write text for people or programs; a caller that closed the stream only wants the exit code."""
    if not text or stream is None:
        return
    text = for_stream(text, stream) if is_painted else text
    if stream is sys.stderr:
        _write_stderr(text + "\n")
    else:
        # Paths may contain bytes that are not valid text: print them escaped.
        stream.buffer.write((text + "\n").encode("utf-8", "backslashreplace"))


def for_stream(text: str, stream: TextIO) -> str:
    """Return a text of a handler as a stream shows it: escaped, coloured, in the characters that it has."""
    text = in_lines(text)
    return encodable(paint(text) if has_colour(stream) else text, stream)


def encodable(text: str, stream: TextIO) -> str:
    """Return a text with words in place of symbols that the stream cannot show."""
    if (stream.encoding or "").lower().replace("-", "") == "utf8":
        return text
    return "".join(_ASCII.get(letter, letter) for letter in text)


def _write_stderr(text: str) -> None:
    """Write to stderr; continue if it cannot be written."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except OSError:
        return


def _cell(content: Any) -> str:
    if isinstance(content, list):
        return ", ".join(map(str, content))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return "" if content is None else str(content)


def to_json(document: Mapping[str, Any]) -> str:
    """Return a JSON object on one line."""
    import json  # noqa: PLC0415 - help does not need it

    return in_json(json.dumps(document, ensure_ascii=False, default=str))
