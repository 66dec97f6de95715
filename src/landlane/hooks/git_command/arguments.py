"""Parse the words of a git command as git does: global options, the options of the verb, and paths.

Options may be bundled, abbreviated and have values. No list of words makes the parser fail.
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
class VerbArguments:
    """The words after a verb: short and long options, other words, and the words after `--`."""

    short: frozenset[str]
    long: frozenset[str]
    plain: tuple[str, ...]
    after_dashes: tuple[str, ...]
    has_dashes: bool

    def has(self, options: str) -> bool:
        """Return whether one of these options is given, as in `f force`; long ones may be abbreviated."""
        return any(
            name in self.short if len(name) == 1 else any(_is_meant(given, name) for given in self.long)
            for name in options.split()
        )

    @property
    def first(self) -> str:
        """The first word that is not an option; empty without one."""
        return self.plain[0] if self.plain else ""

    @property
    def paths(self) -> tuple[str, ...]:
        """All words that are not options."""
        return self.plain + self.after_dashes


def _is_meant(given: str, option: str) -> bool:
    """Return whether a long option is this one, or an abbreviation of it."""
    return given == option or (len(given) > 2 and option.startswith(given))


@value
class GlobalOptions:
    """The options of git itself: folders (-C), working tree and aliases (-c); and the words after them."""

    folders: tuple[str, ...]
    work_tree: str
    aliases: Mapping[str, str]
    rest: list[str]


def parse_globals(words: Sequence[str]) -> GlobalOptions:
    """Parse the options before the verb."""
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
            key, _, expansion = text[6:].partition("=")
            aliases[key.lower()] = expansion
    return GlobalOptions(folders=tuple(folders), work_tree=work_tree, aliases=aliases, rest=rest)


def split_alias(text: str) -> list[str]:
    """Return the words of an alias."""
    try:
        return split(text)
    except ValueError:  # an open quote: git would not run it either
        return text.split()


def parse_arguments(words: list[str], value_options: str) -> VerbArguments:
    """Parse the words after a verb; `value_options` lists its options that take the next word."""
    letters = {name[1] for name in value_options.split() if not name.startswith("--")}
    names = [name[2:] for name in value_options.split() if name.startswith("--")]
    short: set[str] = set()
    long: set[str] = set()
    plain: list[str] = []
    rest = iter(words)
    has_dashes = False
    for word in rest:
        if word == "--":
            has_dashes = True
            break
        if word.startswith("--"):
            name, equals, _ = word[2:].partition("=")
            if not equals and any(_is_meant(name, option) for option in names):
                next(rest, "")
            long.add(name)
        elif word.startswith("-") and len(word) > 1:
            _parse_letters(word, letters, short, rest)
        else:
            plain.append(word)
    return VerbArguments(
        short=frozenset(short),
        long=frozenset(long),
        plain=tuple(plain),
        after_dashes=tuple(rest),
        has_dashes=has_dashes,
    )


def _parse_letters(word: str, letters: set[str], short: set[str], rest: Iterator[str]) -> None:
    for index, letter in enumerate(word[1:], start=1):
        short.add(letter)
        if letter in letters:
            if index == len(word) - 1:
                next(rest, "")
            return


def matches_everything(path: str) -> bool:
    """Return whether a pathspec may match the full tree, as far as its text shows."""
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
    """Return whether a pathspec with magic still names something, and its text without the magic."""
    if path.startswith(":/"):
        return bool(path[2:]), path[2:]
    words, closed, rest = path[2:].partition(")")
    is_plain = path.startswith(":(") and bool(closed) and _MAGIC.issuperset(words.split(","))
    return is_plain and bool(rest), rest


def fixed_prefix(path: str) -> str:
    """Return the file or folder that contains all matches of a pathspec: its text before a wildcard."""
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
