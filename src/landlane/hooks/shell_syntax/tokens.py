"""Split shell text into simple commands: quotes, substitutions, redirections, heredocs, command ends."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class CommandHandler(Protocol):
        """Receives each command that the scanner finds, and returns the folder after it."""

        words: list[str]
        may_leave_processes: bool

        def parse(self, text: str, folder: WorkingFolder, depth: int) -> WorkingFolder:
            """Handle a nested text, such as a command substitution."""
            ...

        def handle(
            self, words: Sequence[str], stdin: str, folder: WorkingFolder, depth: int
        ) -> WorkingFolder:
            """Handle a simple command; `stdin` is its input where that is known."""
            ...


_BLANK = " \t\r"


@value
class WorkingFolder:
    """The folder in which a command runs: the folders that `cd` went to so far, one after the other."""

    folders: tuple[str, ...] = ()
    is_unknown: bool = False  # one of them cannot be known from the text


class ShellScanner:
    """One pass over a text."""

    def __init__(self, handler: CommandHandler, text: str, folder: WorkingFolder, depth: int) -> None:
        self._handler = handler
        self._text = text
        self._folder = folder
        self._depth = depth
        self._at = 0
        self._words: list[str] = []
        self._word: list[str] = []
        self._is_word = False  # also for an empty one, such as ''
        self._expects_file = False  # the next word is the file of a redirection
        self._expects_stdin = False  # the next word is the text of a here-string
        self._stdin = ""
        self._piped = ""  # the output of the command before a pipe, where it is a fixed text
        self._heredocs: list[tuple[str, bool, bool]] = []  # (delimiter, is quoted, strips tabs)
        self._waiting: list[tuple[list[str], str]] = []  # commands of this line, until heredocs are read
        self._outer_folders: list[WorkingFolder] = []  # of the subshells around this one

    def run(self) -> WorkingFolder:
        """Scan the text, and return the folder after its last command."""
        text = self._text
        while self._at < len(text):
            letter = text[self._at]
            if letter == "\\":
                self._escape()
            elif letter == "'":
                self._single_quote()
            elif letter == '"':
                self._double_quote()
            elif letter in "$`":
                self._substitute()
            elif letter == "#" and not self._is_word:
                self._skip_comment()
            elif letter in _BLANK:
                self._end_word()
                self._at += 1
            elif letter == "\n":
                self._end_command()
                self._at += 1
                self._read_heredocs()
            elif letter in ";&|()":
                self._separate(letter)
            elif letter in "<>":
                self._redirect(letter)
            else:
                self._add(letter)
                self._at += 1
        self._end_command()
        self._read_heredocs()
        return self._folder

    def _add(self, text: str) -> None:
        self._word.append(text)
        self._is_word = True

    def _end_word(self) -> None:
        if not self._is_word:
            return
        word = "".join(self._word)
        self._word, self._is_word = [], False
        if self._expects_stdin:
            self._stdin, self._expects_stdin = word, False
        elif self._expects_file:
            self._expects_file = False
            self._handler.words.append(word)
        else:
            self._words.append(word)

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following != "\n":
            self._add(following)
        self._at += 2

    def _single_quote(self) -> None:
        end = _find(self._text, "'", self._at + 1)
        self._add(self._text[self._at + 1 : end])
        self._at = end + 1

    def _double_quote(self) -> None:
        self._is_word = True
        self._at += 1
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == '"':
                self._at += 1
                return
            if letter == "\\":
                following = self._text[self._at + 1 : self._at + 2]
                self._add(
                    following if following in '"\\$`' else "" if following == "\n" else "\\" + following
                )
                self._at += 2
            elif letter in "$`":
                self._substitute()
            else:
                self._add(letter)
                self._at += 1

    def _skip_comment(self) -> None:
        self._at = _find(self._text, "\n", self._at)

    def _substitute(self) -> None:
        """Add a variable or a command substitution as it is written; the command is parsed."""
        start = self._at
        following = self._text[start + 1 : start + 2]
        if self._text[start] == "`":
            end = _find_unescaped(self._text, "`", start + 1)
            self._handler.parse(
                self._text[start + 1 : end].replace("\\`", "`"), self._folder, self._depth + 1
            )
            self._at = end + 1
        elif self._text.startswith("$((", start):
            self._at = min(_find(self._text, "))", start) + 2, len(self._text))
        elif following == "(":
            end = _find_closing(self._text, start + 2, ")")
            self._handler.parse(self._text[start + 2 : end], self._folder, self._depth + 1)
            self._at = end + 1
        elif following == "{":
            end = _find_closing(self._text, start + 2, "}")
            self._parse_substitutions(self._text[start + 2 : end])
            self._at = end + 1
        elif following == "'":  # $'…' has its own escapes, and contains no command
            end = _find_unescaped(self._text, "'", start + 2)
            self._add(self._text[start + 2 : end])
            self._at = end + 1
            return
        else:
            self._at += 1
        self._add(self._text[start : self._at])

    def _parse_substitutions(self, text: str) -> None:
        """Parse the command substitutions in a text that is not a command itself."""
        at = 0
        while at < len(text):
            if text[at] == "\\":
                at += 2
            elif text.startswith("$(", at) and not text.startswith("$((", at):
                end = _find_closing(text, at + 2, ")")
                self._handler.parse(text[at + 2 : end], self._folder, self._depth + 1)
                at = end + 1
            elif text[at] == "`":
                end = _find(text, "`", at + 1)
                self._handler.parse(text[at + 1 : end], self._folder, self._depth + 1)
                at = end + 1
            else:
                at += 1

    def _separate(self, letter: str) -> None:
        if letter == "&" and self._text.startswith("&>", self._at):
            self._end_word()
            self._at += 1
            return
        is_pipe = letter == "|" and not self._text.startswith("||", self._at)
        if letter == "&" and not self._text.startswith("&&", self._at):
            is_single = self._text[max(self._at - 1, 0) : self._at] not in ("&", "|")
            self._handler.may_leave_processes = self._handler.may_leave_processes or is_single
        self._end_command(is_pipe=is_pipe)
        if letter == "(":
            self._outer_folders.append(self._folder)
        elif letter == ")" and self._outer_folders:
            self._folder = self._outer_folders.pop()
        self._at += 1

    def _redirect(self, letter: str) -> None:
        text, at = self._text, self._at
        if text.startswith(("<(", ">("), at):  # process substitution
            end = _find_closing(text, at + 2, ")")
            self._handler.parse(text[at + 2 : end], self._folder, self._depth + 1)
            self._add(text[at : end + 1])
            self._at = end + 1
            return
        if self._is_word and "".join(self._word).isdigit():
            self._word, self._is_word = [], False  # a file descriptor
        self._end_word()
        if text.startswith("<<<", at):
            self._expects_stdin = True
            self._at += 3
        elif text.startswith("<<", at):
            self._begin_heredoc()
        else:
            self._expects_file = True
            self._at += 1
            while self._at < len(text) and text[self._at] in "<>&|":
                self._at += 1

    def _begin_heredoc(self) -> None:
        text = self._text
        at = self._at + 2
        strips_tabs = text.startswith("-", at)
        at += strips_tabs
        while at < len(text) and text[at] in _BLANK:
            at += 1
        delimiter: list[str] = []
        is_quoted = False
        while at < len(text) and text[at] not in " \t\r\n;&|()<>":
            if text[at] in "'\"\\":
                is_quoted = True
            else:
                delimiter.append(text[at])
            at += 1
        self._heredocs.append(("".join(delimiter), is_quoted, strips_tabs))
        self._at = at

    def _end_command(self, *, is_pipe: bool = False) -> None:
        self._end_word()
        self._expects_file = self._expects_stdin = False
        words, stdin = self._words, self._stdin or self._piped
        self._words, self._stdin = [], ""
        # A shell after a pipe runs what is printed into it.
        is_printing = is_pipe and bool(words) and words[0] in ("echo", "printf", "cat")
        self._piped = " ".join(words[1:]) if is_printing and words[0] != "cat" else ""
        if self._heredocs:
            self._waiting.append((words, stdin))
        elif words:
            self._folder = self._handler.handle(words, stdin, self._folder, self._depth)

    def _read_heredocs(self) -> None:
        """Read the heredocs after a line, then handle the commands that they belong to."""
        bodies: list[str] = []
        for delimiter, is_quoted, strips_tabs in self._heredocs:
            lines: list[str] = []
            while self._at < len(self._text):
                line, newline, _ = self._text[self._at :].partition("\n")
                self._at += len(line) + len(newline)
                if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            bodies.append(body)
            if not is_quoted:
                self._parse_substitutions(body)
        self._heredocs = []
        waiting, self._waiting = self._waiting, []
        for words, stdin in waiting:
            if words:
                self._folder = self._handler.handle(
                    words, "\n".join(bodies) or stdin, self._folder, self._depth
                )


def _find_closing(text: str, at: int, closer: str) -> int:
    """Return the position of the bracket that closes; quotes and nested brackets are skipped."""
    opener = "(" if closer == ")" else "{"
    level = 1
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
        elif letter == "'":
            at = _find(text, "'", at + 1)
        elif letter == '"':
            at = _find_closing_quote(text, at + 1)
        elif text.startswith("<<", at) and closer == ")":
            at = _end_of_heredoc(text, at)
        elif letter == opener:
            level += 1
        elif letter == closer:
            level -= 1
            if not level:
                return at
        at += 1
    return len(text)


def _end_of_heredoc(text: str, at: int) -> int:
    """Return the last position of a heredoc that begins at `at`: brackets in it do not count."""
    if text.startswith("<<<", at):
        return at + 2
    start = at + 2 + text.startswith("-", at + 2)
    stop = start
    while stop < len(text) and text[stop] not in "\n;&|()<>":
        stop += 1
    quoted = text[start:stop].strip()
    delimiter = "".join(letter for letter in quoted if letter not in "'\"\\").partition(" ")[0]
    line_at = text.find("\n", stop)
    while delimiter and line_at >= 0:
        following = text.find("\n", line_at + 1)
        line = text[line_at + 1 : following if following >= 0 else len(text)]
        if line.lstrip("\t") == delimiter:
            return line_at + len(line)
        line_at = following
    return at + 1


def _find_closing_quote(text: str, at: int) -> int:
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
        elif text.startswith("$(", at):
            at = _find_closing(text, at + 2, ")")
        at += 1
    return at


def _find(text: str, wanted: str, at: int) -> int:
    """Return where a text is found from `at` on, or else the end."""
    end = text.find(wanted, at)
    return len(text) if end < 0 else end


def _find_unescaped(text: str, letter: str, at: int) -> int:
    while at < len(text) and text[at] != letter:
        at += 2 if text[at] == "\\" else 1
    return at
