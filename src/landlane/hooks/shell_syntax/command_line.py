"""Reading lines of shell: which git commands they run, in which folder, and which words they name.

A reader, not a shell: nothing is expanded and nothing is looked up. What only mentions a command (a quoted
text, a comment, a heredoc for another program) is told apart from what runs one. No text makes it fail;
what it cannot see through, such as a script or a variable, is left to the look at the files afterwards.
"""

from __future__ import annotations

from landlane.hooks.shell_syntax.tokens import Scan, Where
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TEXT = 200_000  # of a line; behind that nothing is read
_MOST_DEPTH = 8
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "{", "}", "time")
)
# Programs that run the rest of their words, with those of their options that take the next word.
_WRAPPERS: dict[str, str] = {
    "env": "-u --unset -C --chdir -S",
    "sudo": "-u -g -h -p -C -D -r -t --user --group --chdir",
    "doas": "-u -C",
    "command": "",
    "builtin": "",
    "exec": "-a",
    "nohup": "",
    "setsid": "",
    "nice": "-n --adjustment",
    "ionice": "-c -n --class --classdata",
    "stdbuf": "-i -o -e --input --output --error",
    "timeout": "-s -k --signal --kill-after",
    "xargs": "-a -d -E -I -L -n -P -s --arg-file --delimiter --replace --max-args --max-procs --max-lines",
    "chronic": "",
    "unbuffer": "",
    "time": "-f -o --format --output",
}
_PATCHERS = ("apply_patch", "applypatch")
# Programs whose purpose is that something runs on when they have ended.
_LEAVERS = frozenset(
    ("setsid", "disown", "daemonize", "at", "batch", "screen", "tmux", "systemd-run", "start-stop-daemon")
)
_HERE = ("$PWD", "${PWD}", "$(pwd)", "`pwd`", "$(git rev-parse --show-toplevel)", ".", "./")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@value
class GitCall:
    """A call of git: the words behind it, and the folders that one went to before it.

    `is_elsewhere`: one went to a folder that cannot be told from the text.
    """

    words: tuple[str, ...]
    folders: tuple[str, ...] = ()
    is_elsewhere: bool = False


@value
class PatchCall:
    """A patch in the `*** Begin Patch` form that is applied: its text, and the folders gone to before it."""

    text: str
    folders: tuple[str, ...] = ()
    is_elsewhere: bool = False


@value
class ShellLine:
    """What a line of shell runs and names. `is_leaving`: something of it may run on when it has ended."""

    git_calls: tuple[GitCall, ...]
    words: tuple[str, ...]
    folders: tuple[str, ...]  # each one that it goes to
    patches: tuple[PatchCall, ...] = ()
    is_leaving: bool = False


def read_line(text: str) -> ShellLine:
    """Read a line, or a whole script, as a client hands it to a shell."""
    reader = _Reader()
    try:
        reader.read(text[:MOST_TEXT], Where(), 0)
    except RecursionError:
        pass  # quotes and brackets in each other without end: what was found so far has to do
    return ShellLine(
        git_calls=tuple(reader.calls),
        words=tuple(reader.words),
        folders=tuple(reader.folders),
        patches=tuple(reader.patches),
        is_leaving=reader.is_leaving,
    )


def find_git_calls(text: str) -> list[GitCall]:
    """The calls of git that a line runs, as far as its text tells."""
    return list(read_line(text).git_calls)


class _Reader:
    """Collects what a line and everything nested in it runs."""

    def __init__(self) -> None:
        self.calls: list[GitCall] = []
        self.words: list[str] = []
        self.folders: list[str] = []
        self.patches: list[PatchCall] = []
        self.is_leaving = False

    def read(self, text: str, where: Where, depth: int) -> Where:
        """Read a text as commands; tells where one stands after it."""
        if depth > _MOST_DEPTH:
            return where
        return Scan(self, text, where, depth).run()

    def run(self, words: Sequence[str], fed: str, where: Where, depth: int) -> Where:
        """One simple command. `fed` is the text that it reads from its input, where that is known."""
        rest = list(words)
        self.words += rest
        first = rest[0].rpartition("/")[2] if rest else ""
        where = self._unwrap(rest, where)
        if not rest:
            return where
        name = rest[0].rpartition("/")[2]
        self.is_leaving = self.is_leaving or first in _LEAVERS or name in _LEAVERS
        if name == "git":
            self.calls.append(
                GitCall(words=tuple(rest[1:]), folders=where.folders, is_elsewhere=where.is_elsewhere)
            )
        elif name in _PATCHERS:
            # The patch may be an argument, or what the command reads; either names what is written.
            text = "\n".join((*rest[1:], fed))
            self.patches.append(PatchCall(text=text, folders=where.folders, is_elsewhere=where.is_elsewhere))
        elif name in ("cd", "pushd"):
            return self._go(rest[1:], where)
        elif name in _SHELLS:
            self._run_shell(rest[1:], fed, where, depth)
        elif name == "eval":
            return self.read(" ".join(rest[1:]), where, depth + 1)
        elif name == "find":
            self._run_found(rest, where, depth)
        return where

    def _unwrap(self, rest: list[str], where: Where) -> Where:
        """Take off what stands before a command: keywords, settings of variables, programs that run it."""
        while rest:
            name = rest[0].rpartition("/")[2]
            if rest[0] in _KEYWORDS or _is_assignment(rest[0]):
                rest.pop(0)
            elif name in _WRAPPERS:
                rest.pop(0)
                where = _take_options(rest, _WRAPPERS[name].split(), where)
                if name == "timeout" and rest:
                    rest.pop(0)
            else:
                break
        return where

    def _go(self, words: Sequence[str], where: Where) -> Where:
        named = [word for word in words if word == "-" or not word.startswith("-")]
        target = named[0] if named else "~"
        if target in _HERE:
            return where
        if target == "-" or "$" in target or "`" in target:
            return Where(folders=where.folders, is_elsewhere=True)
        self.folders.append("/".join((*where.folders, target)) if not target.startswith("/") else target)
        return Where(folders=(*where.folders, target), is_elsewhere=where.is_elsewhere)

    def _run_shell(self, words: Sequence[str], fed: str, where: Where, depth: int) -> None:
        for index, word in enumerate(words):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                text = next((one for one in words[index + 1 :] if not one.startswith("-")), "")
                self.read(text, where, depth + 1)
                return
        is_script = any(not word.startswith("-") for word in words) and "-s" not in words
        if fed and not is_script:
            self.read(fed, where, depth + 1)

    def _run_found(self, words: Sequence[str], where: Where, depth: int) -> None:
        """What `find` runs on each file that it finds."""
        for index, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                inner: list[str] = []
                for one in words[index + 1 :]:
                    if one in (";", "+"):
                        break
                    inner.append(one)
                self.run(inner, "", where, depth + 1)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and bool(name) and _NAME.issuperset(name.removesuffix("+")) and not name[0].isdigit()


def _take_options(rest: list[str], values: Sequence[str], where: Where) -> Where:
    """Take off the options of a program that runs the rest; one of them may change the folder."""
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, text = word.partition("=")
        if word in values and rest:
            text, equals = rest.pop(0), "="
        if equals and name in ("-C", "--chdir", "-D") and "$" not in text:
            where = Where(folders=(*where.folders, text), is_elsewhere=where.is_elsewhere)
    return where
