"""Which programs a shell text calls for certain: the basis for naming hooks whose program is missing (pure).

A call counts only if nothing outside the text decides about it: it is unconditional, or depends only on
variables that the text itself sets to fixed values. So a call behind `command -v`, `[ -x … ]`, `||` or
`else`, in a loop or after an early `exit` does not count, nor does a program that a variable names.
"""

from __future__ import annotations

import re

from landlane.hooks.shell_syntax.tokens import ShellScanner, WorkingFolder
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_TEXT = 100_000
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_INTERPRETER = re.compile(r"(python|node|ruby|perl|bash|sh|dash|zsh|ksh)[0-9.]*")
_FLAGS = frozenset(("-I", "-P", "-S", "-E", "-s", "-u", "-B", "-O", "-q"))  # of Python, without a value
_ARRAY = re.compile(r"\w\+?=\(")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?=)(.*)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_OPENERS, _CLOSERS = ("if", "while", "until", "case", "for", "select", "{"), ("fi", "done", "esac", "}")
_HARMLESS = frozenset(("cd", "set", "export", "unset", ":", "true", "umask"))  # before an &&
_LISTS = ("&&", "||")
_LEAVING = frozenset(("exit", "return", "exec"))
_SPECIAL = frozenset("$`*?[]{}\\\n")
_BUILTIN_NAMES = (
    ". : [ [[ alias bg break builtin cd command continue coproc declare echo enable eval exec exit export "
    "false fc fg getopts hash help history in jobs kill let local logout popd printf pushd pwd read "
    "readonly return set shift shopt source suspend test times trap true type typeset ulimit umask "
    "unalias unset wait "
)
_BUILTINS = frozenset(_BUILTIN_NAMES.split())
_FUNCTION = re.compile(r"(?:function\s+([\w-]+)|([\w-]+)\s*\(\s*\))")
_OTHER_PATH = re.compile(r"(^|[\s;&|(])(PATH\+?=|\.\s|source\s|eval\s|alias\s)")


@value
class _Call:
    """A simple command: its words, the operator before it, and whether it was read late, behind a heredoc."""

    words: tuple[str, ...]
    operator: str
    is_late: bool


def programs_called(text: str) -> list[str]:
    """Return the programs and scripts that a shell text calls for certain: paths, or names for PATH."""
    if len(text) > _MOST_TEXT or _ARRAY.search(text):
        return []
    collector = _ProgramCollector()
    try:
        collector.parse(text, WorkingFolder(), 0)
    except RecursionError:
        return []
    functions = {name for names in _FUNCTION.findall(text) for name in names if name}
    found: list[str] = []
    for words in _certain(collector.calls, functions):
        found += _programs_in(words)
    if _OTHER_PATH.search(text):  # the text changes PATH, so names may resolve elsewhere
        functions |= {name for name in found if "/" not in name}
    return [name for name in dict.fromkeys(found) if name not in functions]


def programs_in_words(words: Sequence[str]) -> list[str]:
    """Return the same for a program that is started without a shell."""
    return _programs_in(list(words))


def programs_in_shebang(line: str) -> list[str]:
    """Return the interpreter that the first line of a script names, or nothing if it has none."""
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    return _programs_in(words[:2])


def is_shell_script(line: str) -> bool:
    """Return whether the first line of a script names a shell."""
    words = line.removeprefix("#!").split() if line.startswith("#!") else []
    names = [word.rpartition("/")[2] for word in words[:2]]
    return bool(names) and (names[0] in _SHELLS or (names[0] == "env" and names[-1] in _SHELLS))


class _ProgramCollector:
    """Collects the simple commands of a text, in order, without those in substitutions."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.may_leave_processes = False
        self.operator = "\n"
        self.is_late = False
        self.calls: list[_Call] = []

    def parse(self, text: str, folder: WorkingFolder, depth: int) -> WorkingFolder:
        return _Scanner(self, text, folder, depth).run() if depth == 0 else folder

    def handle(self, words: Sequence[str], stdin: str, folder: WorkingFolder, depth: int) -> WorkingFolder:
        del stdin, depth
        self.calls.append(_Call(words=tuple(words), operator=self.operator, is_late=self.is_late))
        return folder


class _Scanner(ShellScanner):
    """Tracks for the collector which operator precedes a command."""

    def __init__(self, collector: _ProgramCollector, text: str, folder: WorkingFolder, depth: int) -> None:
        super().__init__(collector, text, folder, depth)
        self._collector = collector

    def _end_command(self, *, is_pipe: bool = False) -> None:
        is_empty = not self._words and not self._is_word
        super()._end_command(is_pipe=is_pipe)
        ended = self._text[self._at : self._at + 2]
        operator = ended if ended in _LISTS else ended[:1] or "\n"
        # The second letter of an operator, a line break behind one, or a subshell: the first one counts.
        if not (is_empty and self._collector.operator in (*_LISTS, "|") and operator in "|&\n("):
            self._collector.operator = operator

    def _read_heredocs(self) -> None:
        self._collector.is_late = bool(self._waiting)
        super()._read_heredocs()
        self._collector.is_late = False


class _Block:
    """A compound command: whether what is in it runs for certain."""

    def __init__(self, keyword: str, *, is_certain: bool, is_function: bool = False) -> None:
        self.keyword = keyword
        self.is_certain = is_certain
        self.is_function = is_function
        self.is_condition = keyword in ("if", "while", "until")


def _certain(calls: Sequence[_Call], functions: set[str]) -> Iterator[list[str]]:
    """Yield the words of every call that runs for certain, without keywords and assignments."""
    fixed = _fixed_variables(calls)
    blocks = [_Block("", is_certain=True)]
    is_list_certain = True  # false behind && and ||
    before: list[str] = []
    for index, call in enumerate(calls):
        words = list(call.words)
        if call.operator == "||" or (call.operator == "&&" and before[:1] and before[0] not in _HARMLESS):
            is_list_certain = False
        elif call.operator in ("\n", ";", "&"):
            is_list_certain = True
        _follow_keywords(words, call.operator, blocks, is_certain=is_list_certain)
        before = words
        block = blocks[-1]
        if block.is_condition:
            block.is_certain = block.is_certain and _is_fixed(words, fixed)
            continue
        words = _without_assignments(words)
        is_certain = is_list_certain and block.is_certain and not call.is_late
        if words and is_certain and not _has_fallback(calls[index + 1 :], functions):
            yield words
        if words and words[0] in _LEAVING and not any(block.is_function for block in blocks):
            return  # the text may end here, so later calls are not certain


def _has_fallback(following: Sequence[_Call], functions: set[str]) -> bool:
    """Return whether another program is called if this one fails."""
    if not following or following[0].operator != "||":
        return False
    words = [word for word in following[0].words if word not in ("{", "!")]
    return bool(words) and words[0] not in _BUILTINS and words[0] not in functions


def _follow_keywords(words: list[str], operator: str, blocks: list[_Block], *, is_certain: bool) -> None:
    """Enter and leave compound commands, and take their keywords off."""
    while words:
        word = words[0]
        block = blocks[-1]
        if word in _OPENERS:
            is_function = word == "{" and operator == ")"
            is_open = block.is_certain and is_certain and word in ("if", "{") and not is_function
            blocks.append(_Block(word, is_certain=is_open, is_function=is_function))
        elif word in _CLOSERS:
            if len(blocks) > 1:
                blocks.pop()
        elif word in ("then", "do"):
            block.is_condition = False
        elif word in ("else", "elif"):
            block.is_certain = block.is_condition = False
        elif word == "function":
            blocks.append(_Block("{", is_certain=False, is_function=True))
            words.clear()
            return
        elif word not in ("!", "time"):
            return
        words.pop(0)


def _fixed_variables(calls: Sequence[_Call]) -> set[str]:
    """Return the variables that the text sets to fixed values only."""
    fixed: set[str] = set()
    other: set[str] = set()
    for call in calls:
        for word in call.words:
            if assigned := _ASSIGNED.fullmatch(word):
                name, _, text = assigned.groups()
                (other if "$" in text or "`" in text else fixed).add(name)
        if call.words[:1] == ("read",):
            other.update(call.words[1:])
    return fixed - other


def _is_fixed(words: Sequence[str], fixed: set[str]) -> bool:
    """Return whether a condition depends on fixed variables only."""
    if words[:1] not in (["["], ["test"]) or any(re.fullmatch(r"-[a-mo-yA-Z]", word) for word in words):
        return False  # all tests of files; -n and -z are of texts
    named = {name for word in words for name in _VARIABLE.findall(word)}
    count = sum(word.count("$") + word.count("`") for word in words)
    return named <= fixed and count == sum(len(_VARIABLE.findall(word)) for word in words)


def _without_assignments(words: list[str]) -> list[str]:
    while words and _ASSIGNED.fullmatch(words[0]):
        words = words[1:]
    return words


def _programs_in(words: list[str]) -> list[str]:
    """Return the program of a simple command, and the script that it is given, as far as both are plain."""
    if words[:1] == ["exec"]:
        words = _without_assignments(words[1:])
    if not words or not _is_plain(words[0]):
        return []
    program, rest = words[0], words[1:]
    name = program.rpartition("/")[2]
    if name == "env" and rest and _is_plain(rest[0]) and "=" not in rest[0]:
        return [program, *_programs_in(rest)]
    if name in _SHELLS and rest[:1] == ["-c"] and len(rest) > 1:
        return [program, *programs_called(rest[1])]
    found = [] if program in _BUILTINS else [program]
    if _INTERPRETER.fullmatch(name):
        while rest and rest[0] in _FLAGS:
            rest = rest[1:]
        if rest and rest[0].startswith(("/", "~/")) and _is_plain(rest[0]):
            found.append(rest[0])
    return found


def _is_plain(word: str) -> bool:
    return bool(word) and not word.startswith("-") and _SPECIAL.isdisjoint(word)
