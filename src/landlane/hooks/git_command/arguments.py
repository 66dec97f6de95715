"""The words of a git command, read as git reads them: its own options, the verb's, and which are paths.

Options may be bundled, shortened, and have a value of their own. No list of words makes the reading fail.
"""

from __future__ import annotations

from shlex import split

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

# Options of git itself that take the next word.
_GLOBAL_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix")
_MAGIC = frozenset(("top", "literal", "glob", "icase"))
_WILD = "*?[\\"


@value
class Call:
    """The words behind a verb: its options, plain words, and what stands behind `--`."""

    short: frozenset[str]
    long: Mapping[str, str]
    plain: tuple[str, ...]
    behind: tuple[str, ...]
    has_dashes: bool

    def has(self, letters: str = "", *names: str) -> bool:
        """Whether one of these options is given; git takes a long one shortened, too."""
        return any(letter in self.short for letter in letters) or any(
            name == given or (len(given) > 2 and name.startswith(given))
            for name in names
            for given in self.long
        )

    @property
    def paths(self) -> tuple[str, ...]:
        """All words that are no options."""
        return self.plain + self.behind


def read_globals(words: Sequence[str]) -> tuple[tuple[str, ...], str, dict[str, str], list[str]]:
    """The folders, the working tree and the aliases that options of git itself name, and the other words."""
    folders: list[str] = []
    aliases: dict[str, str] = {}
    work_tree = ""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, text = word.partition("=")
        if word in _GLOBAL_VALUES:
            name, text = word, rest.pop(0) if rest else ""
        elif not equals:
            continue
        if name == "-C":
            folders.append(text)
        elif name == "--work-tree":
            work_tree = text
        elif name == "-c" and text.lower().startswith("alias."):
            key, _, meant = text[6:].partition("=")
            aliases[key.lower()] = meant
    return tuple(folders), work_tree, aliases, rest


def split_line(text: str) -> list[str]:
    """The words of an alias."""
    try:
        return split(text)
    except ValueError:  # an open quote: git would not run it either
        return text.split()


def read_call(words: list[str], values: str) -> Call:
    """Read the words behind a verb; `values` lists the options of it that take the next word."""
    letters = {name[1] for name in values.split() if not name.startswith("--")}
    names = [name[2:] for name in values.split() if name.startswith("--")]
    short: set[str] = set()
    long: dict[str, str] = {}
    plain: list[str] = []
    rest = iter(words)
    has_dashes = False
    for word in rest:
        if word == "--":
            has_dashes = True
            break
        if word.startswith("--"):
            name, equals, text = word[2:].partition("=")
            if not equals and any(one == name or (len(name) > 2 and one.startswith(name)) for one in names):
                text = next(rest, "")
            long[name] = text
        elif word.startswith("-") and len(word) > 1:
            _read_letters(word, letters, short, rest)
        else:
            plain.append(word)
    return Call(
        short=frozenset(short), long=long, plain=tuple(plain), behind=tuple(rest), has_dashes=has_dashes
    )


def _read_letters(word: str, letters: set[str], short: set[str], rest: Iterator[str]) -> None:
    for index, letter in enumerate(word[1:], start=1):
        short.add(letter)
        if letter in letters:
            if index == len(word) - 1:
                next(rest, "")
            return


def covers_all(path: str) -> bool:
    """Whether a pathspec means everything, or something that cannot be told from its text."""
    if path.startswith(":"):
        magic, path = _without_magic(path)
        if not magic:
            return True
    head = path.rstrip("/")
    while head.startswith("./"):
        head = head[2:].lstrip("/")
    first = head.partition("/")[0]
    return head in ("", ".", "..") or any(letter in first for letter in _WILD)


def _without_magic(path: str) -> tuple[bool, str]:
    """A pathspec without its magic, and whether it still names something."""
    if path.startswith(":/"):
        return bool(path[2:]), path[2:]
    words, closed, rest = path[2:].partition(")")
    is_plain = path.startswith(":(") and bool(closed) and _MAGIC.issuperset(words.split(","))
    return is_plain and bool(rest), rest


def reach(path: str) -> str:
    """The file or folder that a pathspec cannot leave: what stands before its first wildcard."""
    start = ""
    if path.startswith(":"):
        is_from_top = path.startswith(":/") or "top" in path.partition(")")[0]
        start, path = ":/" if is_from_top else "", _without_magic(path)[1]
    head: list[str] = []
    for part in path.split("/"):
        if any(letter in part for letter in _WILD):
            break
        head.append(part)
    return start + "/".join(head)
