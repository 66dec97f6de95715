"""Find the git commands and patches that shell text runs, in which folder, and the words that it names.

Nothing is expanded or looked up. Text that only mentions a command (quoted text, a comment, a heredoc for
another program) does not count as running it. No text makes the parser fail. What it cannot know, such as
the contents of a script or a variable, is found afterwards by comparing the files.
"""

from __future__ import annotations

from itertools import takewhile

from landlane.hooks.shell_syntax.tokens import ShellScanner, WorkingFolder
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TEXT = 200_000  # characters; the rest is not parsed
_MOST_DEPTH = 8
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "{", "}", "time")
)
# Programs that run the rest of their words as a command, and their options that take the next word.
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
_PATCH_PROGRAMS = ("apply_patch", "applypatch")
# Programs that leave processes running when they end.
_DETACHERS = frozenset(
    ("setsid", "disown", "daemonize", "at", "batch", "screen", "tmux", "systemd-run", "start-stop-daemon")
)
_CURRENT_FOLDER = ("$PWD", "${PWD}", "$(pwd)", "`pwd`", "$(git rev-parse --show-toplevel)", ".", "./")


@value
class GitCall:
    """A call of git: the words after `git`, and where it runs."""

    words: tuple[str, ...]
    folder: WorkingFolder = WorkingFolder()


@value
class PatchCall:
    """A patch in the `*** Begin Patch` form, and where it is applied."""

    text: str
    folder: WorkingFolder = WorkingFolder()


@value
class ShellLine:
    """What shell text runs and names."""

    git_calls: tuple[GitCall, ...]
    words: tuple[str, ...]
    folders: tuple[str, ...]  # each one that `cd` goes to
    patches: tuple[PatchCall, ...] = ()
    may_leave_processes: bool = False  # that still run when the command has ended


def parse_shell(text: str) -> ShellLine:
    """Parse a line or a script as a client passes it to a shell."""
    collector = _GitCallCollector()
    try:
        collector.parse(text[:MOST_TEXT], WorkingFolder(), 0)
    except RecursionError:
        pass  # nested too deep: what was found so far is returned
    return ShellLine(
        git_calls=tuple(collector.calls),
        words=tuple(collector.words),
        folders=tuple(collector.folders),
        patches=tuple(collector.patches),
        may_leave_processes=collector.may_leave_processes,
    )


class _GitCallCollector:
    """Collects what a text and everything nested in it runs."""

    def __init__(self) -> None:
        self.calls: list[GitCall] = []
        self.words: list[str] = []
        self.folders: list[str] = []
        self.patches: list[PatchCall] = []
        self.may_leave_processes = False

    def parse(self, text: str, folder: WorkingFolder, depth: int) -> WorkingFolder:
        """Parse a text as commands; return the folder after it."""
        if depth > _MOST_DEPTH:
            return folder
        return ShellScanner(self, text, folder, depth).run()

    def handle(self, words: Sequence[str], stdin: str, folder: WorkingFolder, depth: int) -> WorkingFolder:
        """Record a simple command, and what it runs itself; `stdin` is its input where that is known."""
        rest = list(words)
        self.words += rest
        first = rest[0].rpartition("/")[2] if rest else ""
        folder = self._unwrap(rest, folder)
        if not rest:
            return folder
        name = rest[0].rpartition("/")[2]
        self.may_leave_processes = self.may_leave_processes or first in _DETACHERS or name in _DETACHERS
        if name == "git":
            self.calls.append(GitCall(words=tuple(rest[1:]), folder=folder))
        elif name in _PATCH_PROGRAMS:
            # The patch is an argument or the input of the command.
            self.patches.append(PatchCall(text="\n".join((*rest[1:], stdin)), folder=folder))
        elif name in ("cd", "pushd"):
            return self._change_folder(rest[1:], folder)
        elif name in _SHELLS:
            self._handle_shell(rest[1:], stdin, folder, depth)
        elif name == "eval":
            return self.parse(" ".join(rest[1:]), folder, depth + 1)
        elif name == "find":
            self._handle_find(rest, folder, depth)
        return folder

    def _unwrap(self, rest: list[str], folder: WorkingFolder) -> WorkingFolder:
        """Remove what comes before a command: keywords, variable assignments, programs that run it."""
        while rest:
            name = rest[0].rpartition("/")[2]
            if rest[0] in _KEYWORDS or _is_assignment(rest[0]):
                rest.pop(0)
            elif name in _WRAPPERS:
                rest.pop(0)
                folder = _take_options(rest, _WRAPPERS[name].split(), folder)
                if name == "timeout" and rest:
                    rest.pop(0)
            else:
                break
        return folder

    def _change_folder(self, words: Sequence[str], folder: WorkingFolder) -> WorkingFolder:
        named = [word for word in words if word == "-" or not word.startswith("-")]
        target = named[0] if named else "~"
        if target in _CURRENT_FOLDER:
            return folder
        if target == "-" or "$" in target or "`" in target:
            return replace(folder, is_unknown=True)
        self.folders.append("/".join((*folder.folders, target)) if not target.startswith("/") else target)
        return replace(folder, folders=(*folder.folders, target))

    def _handle_shell(self, words: Sequence[str], stdin: str, folder: WorkingFolder, depth: int) -> None:
        for index, word in enumerate(words):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                text = next((one for one in words[index + 1 :] if not one.startswith("-")), "")
                self.parse(text, folder, depth + 1)
                return
        is_script = any(not word.startswith("-") for word in words) and "-s" not in words
        if stdin and not is_script:
            self.parse(stdin, folder, depth + 1)

    def _handle_find(self, words: Sequence[str], folder: WorkingFolder, depth: int) -> None:
        """Handle the commands that `find` runs on the files it finds."""
        for index, word in enumerate(words):
            if word in ("-exec", "-execdir", "-ok", "-okdir"):
                inner = takewhile(lambda one: one not in (";", "+"), words[index + 1 :])
                self.handle(list(inner), "", folder, depth + 1)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isascii() and name.removesuffix("+").isidentifier()


def _take_options(rest: list[str], values: Sequence[str], folder: WorkingFolder) -> WorkingFolder:
    """Remove the options of a program that runs the rest; one of them may change the folder."""
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, text = word.partition("=")
        if word in values and rest:
            text, equals = rest.pop(0), "="
        if equals and name in ("-C", "--chdir", "-D") and "$" not in text:
            folder = replace(folder, folders=(*folder.folders, text))
    return folder
