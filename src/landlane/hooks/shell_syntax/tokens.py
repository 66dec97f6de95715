"""The words of a line of shell: quotes, substitutions, redirections, heredocs, and where a command ends."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Runner(Protocol):
        """Who is told of each command that is found."""

        words: list[str]
        is_leaving: bool

        def read(self, text: str, where: Where, depth: int) -> Where:
            """A text that is read as commands itself."""
            ...

        def run(self, words: Sequence[str], fed: str, where: Where, depth: int) -> Where:
            """A simple command, and what it is fed with."""
            ...


_BLANK = " \t\r"


@value
class Where:
    """The folder in which a command runs."""

    folders: tuple[str, ...] = ()
    is_elsewhere: bool = False


class Scan:
    """One pass over a text."""

    def __init__(self, reader: Runner, text: str, where: Where, depth: int) -> None:
        self._reader = reader
        self._text = text
        self._where = where
        self._depth = depth
        self._at = 0
        self._words: list[str] = []
        self._word: list[str] = []
        self._is_word = False  # also an empty one, such as ''
        self._is_target = False  # the next word is where output goes, or comes from
        self._is_fed = False  # the next word is a text for the command's input
        self._fed = ""
        self._piped = ""  # what the command before a pipe prints, where that is plain
        self._heredocs: list[tuple[str, bool, bool]] = []  # (its end, whether quoted, whether tabs are cut)
        self._waiting: list[tuple[list[str], str]] = []  # commands of this line, until heredocs are read
        self._above: list[Where] = []

    def run(self) -> Where:
        text = self._text
        while self._at < len(text):
            letter = text[self._at]
            if letter == "\\":
                self._escape()
            elif letter == "'":
                self._quote_plainly()
            elif letter == '"':
                self._quote()
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
        return self._where

    # ---------------------------------------------------------------------------------- words

    def _add(self, text: str) -> None:
        self._word.append(text)
        self._is_word = True

    def _end_word(self) -> None:
        if not self._is_word:
            return
        word = "".join(self._word)
        self._word, self._is_word = [], False
        if self._is_fed:
            self._fed, self._is_fed = word, False
        elif self._is_target:
            self._is_target = False
            self._reader.words.append(word)
        else:
            self._words.append(word)

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following != "\n":
            self._add(following)
        self._at += 2

    def _quote_plainly(self) -> None:
        end = self._text.find("'", self._at + 1)
        end = len(self._text) if end < 0 else end
        self._add(self._text[self._at + 1 : end])
        self._at = end + 1

    def _quote(self) -> None:
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
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end

    # ---------------------------------------------------------------------------------- nesting

    def _substitute(self) -> None:
        """A variable, or a command whose output stands here; that command runs."""
        start = self._at
        following = self._text[start + 1 : start + 2]
        if self._text[start] == "`":
            end = start + 1
            while end < len(self._text) and self._text[end] != "`":
                end += 2 if self._text[end] == "\\" else 1
            self._reader.read(self._text[start + 1 : end].replace("\\`", "`"), self._where, self._depth + 1)
            self._at = end + 1
        elif self._text.startswith("$((", start):
            end = self._text.find("))", start)
            self._at = len(self._text) if end < 0 else end + 2
        elif following == "(":
            end = _closing(self._text, start + 2, ")")
            self._reader.read(self._text[start + 2 : end], self._where, self._depth + 1)
            self._at = end + 1
        elif following == "{":
            end = _closing(self._text, start + 2, "}")
            self._read_inside(self._text[start + 2 : end])
            self._at = end + 1
        elif following == "'":  # $'…': with escapes of its own, never a command
            end = start + 2
            while end < len(self._text) and self._text[end] != "'":
                end += 2 if self._text[end] == "\\" else 1
            self._add(self._text[start + 2 : end])
            self._at = end + 1
            return
        else:
            self._at += 1
        self._add(self._text[start : self._at])

    def _read_inside(self, text: str) -> None:
        """Run what is substituted within a text that is otherwise no command."""
        at = 0
        while at < len(text):
            if text[at] == "\\":
                at += 2
            elif text.startswith("$(", at) and not text.startswith("$((", at):
                end = _closing(text, at + 2, ")")
                self._reader.read(text[at + 2 : end], self._where, self._depth + 1)
                at = end + 1
            elif text[at] == "`":
                end = text.find("`", at + 1)
                end = len(text) if end < 0 else end
                self._reader.read(text[at + 1 : end], self._where, self._depth + 1)
                at = end + 1
            else:
                at += 1

    # ---------------------------------------------------------------------------------- commands

    def _separate(self, letter: str) -> None:
        if letter == "&" and self._text.startswith("&>", self._at):
            self._end_word()
            self._at += 1
            return
        is_pipe = letter == "|" and not self._text.startswith("||", self._at)
        if letter == "&" and not self._text.startswith("&&", self._at):
            is_single = self._text[max(self._at - 1, 0) : self._at] not in ("&", "|")
            self._reader.is_leaving = self._reader.is_leaving or is_single
        self._end_command(is_pipe=is_pipe)
        if letter == "(":
            self._above.append(self._where)
        elif letter == ")" and self._above:
            self._where = self._above.pop()
        self._at += 1

    def _redirect(self, letter: str) -> None:
        text, at = self._text, self._at
        if text.startswith(("<(", ">("), at):  # a command whose output or input is a file here
            end = _closing(text, at + 2, ")")
            self._reader.read(text[at + 2 : end], self._where, self._depth + 1)
            self._add(text[at : end + 1])
            self._at = end + 1
            return
        if self._is_word and "".join(self._word).isdigit():
            self._word, self._is_word = [], False  # the number of a descriptor
        self._end_word()
        if text.startswith("<<<", at):
            self._is_fed = True
            self._at += 3
        elif text.startswith("<<", at):
            self._begin_heredoc()
        else:
            self._is_target = True
            self._at += 1
            while self._at < len(text) and text[self._at] in "<>&|":
                self._at += 1

    def _begin_heredoc(self) -> None:
        text = self._text
        at = self._at + 2
        is_cut = text.startswith("-", at)
        at += is_cut
        while at < len(text) and text[at] in _BLANK:
            at += 1
        end: list[str] = []
        is_quoted = False
        while at < len(text) and text[at] not in " \t\r\n;&|()<>":
            if text[at] in "'\"\\":
                is_quoted = True
            else:
                end.append(text[at])
            at += 1
        self._heredocs.append(("".join(end), is_quoted, is_cut))
        self._at = at

    def _end_command(self, *, is_pipe: bool = False) -> None:
        self._end_word()
        self._is_target = self._is_fed = False
        words, fed = self._words, self._fed or self._piped
        self._words, self._fed = [], ""
        # What is printed into a pipe is what a shell behind it would run.
        is_printing = is_pipe and bool(words) and words[0] in ("echo", "printf", "cat")
        self._piped = " ".join(words[1:]) if is_printing and words[0] != "cat" else ""
        if self._heredocs:
            self._waiting.append((words, fed))
        elif words:
            self._where = self._reader.run(words, fed, self._where, self._depth)

    def _read_heredocs(self) -> None:
        """At the end of a line: the texts that its commands are fed with, then the commands themselves."""
        bodies: list[str] = []
        for end, is_quoted, is_cut in self._heredocs:
            lines: list[str] = []
            while self._at < len(self._text):
                line, newline, _ = self._text[self._at :].partition("\n")
                self._at += len(line) + len(newline)
                if (line.lstrip("\t") if is_cut else line) == end:
                    break
                lines.append(line)
            body = "\n".join(lines)
            bodies.append(body)
            if not is_quoted:
                self._read_inside(body)
        self._heredocs = []
        waiting, self._waiting = self._waiting, []
        for words, fed in waiting:
            if words:
                self._where = self._reader.run(words, "\n".join(bodies) or fed, self._where, self._depth)


def _closing(text: str, at: int, closer: str) -> int:
    """Where the bracket that is open at `at` closes; quotes and nested brackets are passed over."""
    opener = "(" if closer == ")" else "{"
    open_ones = 1
    while at < len(text):
        letter = text[at]
        if letter == "\\":
            at += 1
        elif letter == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end
        elif letter == '"':
            at = _closing_quote(text, at + 1)
        elif text.startswith("<<", at) and closer == ")":
            at = _behind_heredoc(text, at)
        elif letter == opener:
            open_ones += 1
        elif letter == closer:
            open_ones -= 1
            if not open_ones:
                return at
        at += 1
    return len(text)


def _behind_heredoc(text: str, at: int) -> int:
    """The last place of a heredoc that begins at `at`: what is in it closes nothing."""
    if text.startswith("<<<", at):
        return at + 2
    start = at + 2 + text.startswith("-", at + 2)
    stop = start
    while stop < len(text) and text[stop] not in "\n;&|()<>":
        stop += 1
    end = "".join(letter for letter in text[start:stop].strip() if letter not in "'\"\\").partition(" ")[0]
    line_at = text.find("\n", stop)
    while end and line_at >= 0:
        following = text.find("\n", line_at + 1)
        line = text[line_at + 1 : following if following >= 0 else len(text)]
        if line.lstrip("\t") == end:
            return line_at + len(line)
        line_at = following
    return at + 1


def _closing_quote(text: str, at: int) -> int:
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 1
        elif text.startswith("$(", at):
            at = _closing(text, at + 2, ")")
        at += 1
    return at
