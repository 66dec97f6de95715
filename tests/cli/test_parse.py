"""Every call is read from the table of commands; a mistake is answered with a call that works."""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landlane.cli.parse import parse
from landlane.cli.specs.table import COMMON, HEADINGS, LISTED_ALONE, all_commands
from landlane.errors import Malformed

if TYPE_CHECKING:
    from landlane.cli.specs.model import Command, Option

pytestmark = pytest.mark.unit

COMMANDS = tuple(all_commands())


def read(text: str) -> tuple[str, dict[str, Any]]:
    """Return the command and what was given, without what was not."""
    call = parse(shlex.split(text))
    absent = {option.key: option.value_if_absent for option in (*COMMON, *call.command.options)}
    return call.command.path, {key: item for key, item in call.given.items() if item != absent.get(key, "")}


def refuse(text: str) -> tuple[str, str]:
    with pytest.raises(Malformed) as refused:
        parse(shlex.split(text))
    assert refused.value.code == "BAD_CALL"
    return refused.value.message, refused.value.hint


@pytest.mark.parametrize(
    ("text", "path", "given"),
    [
        ("claim a.py --as ann", "claim", {"patterns": ("a.py",), "as": "ann"}),
        ("--json --as=ann claim a.py", "claim", {"patterns": ("a.py",), "as": "ann", "json": True}),
        ("claim a b --wait 5m", "claim", {"patterns": ("a", "b"), "wait": "5m"}),
        ("claim --wait a.py", "claim", {"patterns": ("a.py",), "wait": "forever"}),
        ("claim a.py --wait -v", "claim", {"patterns": ("a.py",), "wait": "forever", "verbose": True}),
        ("claim --note=--json a", "claim", {"patterns": ("a",), "note": "--json"}),
        ("claim -- --odd-name", "claim", {"patterns": ("--odd-name",)}),
        ("commit -m one -mtwo a.py", "commit", {"m": ("one", "two"), "paths": ("a.py",)}),
        ("task", "task list", {}),
        ("task --force add x", "task add", {"title": "x", "force": True}),
        ("gate --all", "gate list", {"all": True}),
        ("queue -q", "queue list", {"quiet": True}),
        ("rules", "rules show", {}),
        ("handoff", "handoff list", {}),
        ("handoff T12 --to bob", "handoff", {"task": "T12", "to": "bob"}),
        ("handoff accept T12", "handoff accept", {"task": "T12"}),
        ("run", "run", {"command": ()}),
        ("run -- ./do.sh -x", "run", {"command": ("./do.sh", "-x")}),
        ("run pause", "run pause", {}),
        ("run ./pause", "run", {"plan": "./pause", "command": ()}),
        ("number list migration", "number list", {"kind": "migration"}),
        ("once deps -- npm ci --json", "once", {"key": "deps", "command": ("npm", "ci", "--json")}),
        ("usage add --cost -5", "usage add", {"cost": "-5"}),
        ("", "", {}),
    ],
)
def test_calls_are_read(text: str, path: str, given: dict[str, Any]) -> None:
    assert read(text) == (path, given)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("clam src/api.py", "unknown command clam", "landlane claim src/api.py"),
        ("task shwo T12", "task has no command shwo", "landlane task show T12"),
        ("task list extra", "task list takes no arguments; extra is too much", "landlane help task list"),
        ("claim src/api.py --wiat 5m", "claim has no option --wiat", "landlane claim src/api.py --wait 5m"),
        ("gate --all show x", "gate show has no option --all", "landlane help gate show"),
        (
            "claim",
            "claim needs at least one path",
            "for example: landlane claim src/api.py --note 'new endpoint'",
        ),
        ("claim 'a b' --note", "--note needs a value", "landlane claim 'a b' --note TEXT"),
        ("claim a --note --json", "--note needs a value", "landlane claim a --note TEXT --json"),
        ("claim a --as ''", "--as needs a value", "landlane help claim"),
        ("claim a --ttl 1h --ttl 2h", "--ttl is given twice", "landlane help claim"),
        ("claims --json=1", "--json takes no value", "landlane claims --json"),
        ("once deps", "once needs a command after --", "for example: landlane once deps -- npm ci"),
        ("plan", "plan needs a command: check", "landlane help plan"),
        ("state release", "state has no command release", "landlane help state"),
        ("journal --last 5", "unknown command journal", "landlane log --last 5"),
        ("accept T5", "unknown command accept", "landlane handoff accept T5"),
        ("pool pause", "unknown command pool", "landlane run pause"),
        ("worker", "unknown command worker", "landlane run --forever"),
        ("xyzzy", "unknown command xyzzy", "landlane help --all"),
        ("--bogus", "landlane has no option --bogus", "landlane help"),
    ],
)
def test_a_mistake_is_answered_with_a_call_that_works(text: str, message: str, hint: str) -> None:
    assert refuse(text) == (message, hint)


@pytest.mark.parametrize(
    ("text", "words"), [("-h", ()), ("claim -h", ("claim",)), ("task --help", ("task",))]
)
def test_help_can_be_asked_for_anywhere(text: str, words: tuple[str, ...]) -> None:
    call = parse(shlex.split(text))

    assert (call.command.path, call.given["words"]) == ("help", words)
    assert parse(["task", "add", "--help"]).given["words"] == ("task", "add")


# Texts that look like everything a command line can hold.
TEXTS = st.text("ab1 -=/.:*'\"$é\n", min_size=1, max_size=8)
WORDS = TEXTS.filter(lambda text: not text.startswith("-"))


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[str], str, dict[str, Any]]:
    """Draw a well-formed call, spelled in one of the possible ways, and what it means."""
    command = draw(st.sampled_from(COMMANDS))
    groups: list[list[str]] = []
    given: dict[str, Any] = {}
    for option in (*command.options, *COMMON[:-1]):
        if draw(st.booleans()):
            item, words = draw(spellings(option))
            given[option.key] = (item,) if option.is_repeated else item
            groups.append(words)
    rest: list[str] = []
    arguments: list[list[str]] = []
    for argument in command.arguments:
        if argument.is_rest:
            rest = draw(st.lists(TEXTS, min_size=1, max_size=3))
            given[argument.name] = tuple(rest)
        else:
            words = draw(st.lists(WORDS, min_size=1, max_size=3 if argument.is_many else 1))
            given[argument.name] = tuple(words) if argument.is_many else words[0]
            arguments.append(words)
    # Options may stand between arguments; the order of the arguments counts.
    for words in arguments:
        groups.insert(draw(st.integers(0, len(groups))) if len(arguments) == 1 else len(groups), words)
    flat = [word for group in groups for word in group]
    return [*command.path.split(), *flat, *(["--", *rest] if rest else [])], command.path, given


@st.composite
def spellings(draw: st.DrawFn, option: Option) -> tuple[Any, list[str]]:
    if option.is_flag:
        return True, [option.name]
    texts = TEXTS.filter(lambda text: not text.startswith("-") and "=" not in text)
    item = draw(st.sampled_from(["5m", "1h30m", "3d"]) if option.metavar == "TIME" else texts)
    if option.alone or not option.name.startswith("--") or draw(st.booleans()):
        joined = f"{option.name}={item}" if option.name.startswith("--") else f"{option.name}{item}"
        return item, [joined]
    return item, [option.name, item]


@given(drawn=calls())
@settings(max_examples=200)
def test_every_spelling_of_a_call_is_read_the_same(drawn: tuple[list[str], str, dict[str, Any]]) -> None:
    words, path, given_values = drawn
    call = parse(words)

    if call.command.path != path:  # a drawn argument was the name of a verb
        assert call.command.path.startswith(path.split()[0])
        return
    assert {key: call.given[key] for key in given_values} == given_values


ODDMENTS = [
    "claim",
    "store",
    "info",
    "--json",
    "--as",
    "x",
    "-",
    "--",
    "--ttl=1s",
    "-h",
    "",
    "--wait",
    "5m",
    "-x",
    "é",
]


@pytest.mark.promise(
    "cli.corrected-call",
    "A call that cannot be read changes nothing and is answered with a hint, whatever its words are.",
)
@given(words=st.lists(st.sampled_from(ODDMENTS) | TEXTS, max_size=6))
@settings(max_examples=300)
def test_any_words_are_a_call_or_a_mistake_with_a_hint(words: list[str]) -> None:
    call, refused = None, None
    try:
        call = parse(words)
    except Malformed as error:
        refused = error
    if call is not None:
        assert set(call.given) >= {argument.name for argument in call.command.arguments}
    if refused is not None:
        is_time = refused.message.endswith((" needs a unit", " is not a duration"))
        assert refused.code == ("BAD_DURATION" if is_time else "BAD_CALL")
        assert re.match(r"(for example: |\S+ minutes: |\S+ seconds: |use [^:]*: )?landlane", refused.hint)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path.replace(" ", "-"))
def test_examples_are_calls_of_their_command(command: Command) -> None:
    assert command.examples
    for example in command.examples:
        inner = example.partition('"$(')[2].partition(')"')[0] or example.partition(" <")[0]
        words = shlex.split(inner.replace("$$", "4711"), comments=True)
        assert words[0] == "landlane"
        assert parse(words[1:]).command.path == command.path, example


def test_the_table_has_every_command_once_under_its_heading() -> None:
    paths = [command.path for command in COMMANDS]
    assert len(paths) == len(set(paths))
    assert {path.partition(" ")[0] for path in paths} == {name for one in HEADINGS for name in one.lines}
    assert set(LISTED_ALONE.values()) <= set(paths)
    for command in COMMANDS:
        keys = [option.key for option in (*command.options, *COMMON)]
        keys += [argument.name for argument in command.arguments]
        assert len(keys) == len(set(keys)), command.path


def test_help_texts_follow_one_form() -> None:
    for command in COMMANDS:
        assert command.summary[0].isupper(), command.path
        assert command.summary.endswith("."), command.path
        assert len(command.summary) <= 66, command.path
        for option in command.options:
            assert option.help[0].isupper() or option.help.startswith(("approve", "worktree")), option.help
            assert not option.help.endswith("."), option.help
            assert len(option.help) <= 64, option.help


def test_every_handler_takes_what_the_table_says() -> None:
    for command in COMMANDS:
        module, _, function = command.handler.partition(":")
        handler = getattr(importlib.import_module(f"landlane.cli.{module}"), function)
        wanted = {option.key for option in command.options} | {one.name for one in command.arguments}
        taken = inspect.signature(handler).parameters
        named = {name for name, one in taken.items() if one.kind is not one.VAR_KEYWORD}

        # Python's own words, such as --with, cannot be parameter names.
        assert named == {"call"} | {key for key in wanted if not keyword.iskeyword(key)}, command.path
