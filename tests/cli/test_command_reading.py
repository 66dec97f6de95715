"""The two readers of a call agree: the quick one on the table of commands, and click on the same table."""

from __future__ import annotations

import importlib
import inspect
import keyword
import shlex
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from landlane.cli import click_app as full
from landlane.cli.fast_parse import read_call
from landlane.cli.specs.table import COMMANDS, COMMON

if TYPE_CHECKING:
    from landlane.cli.specs.table import Command, Option

pytestmark = pytest.mark.integration

Call = tuple[str, dict[str, Any]]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """What click would have run."""
    calls: list[Call] = []

    def run_command(command: Command, given: dict[str, Any]) -> int:
        calls.append((command.path, given))
        return 0

    monkeypatch.setattr(full, "run_command", run_command)
    return calls


def read_quickly(words: list[str]) -> Call | None:
    call = read_call(list(words))
    return (call[0].path, plain(call[1])) if call else None


def plain(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters as every handler takes them: what was not said is empty."""
    return {key: value or (() if isinstance(value, tuple) else "") for key, value in given.items()}


# Texts that look like everything a command line can hold.
TEXTS = st.text("ab1 -=/.:*'\"$é\n", min_size=0, max_size=8)
WORDS = TEXTS.filter(lambda text: not text.startswith("-"))


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    """A well-formed call of some command, spelled in one of the ways it can be spelled."""
    command = draw(st.sampled_from(COMMANDS))
    before, behind = [], []
    for option in draw(st.lists(st.sampled_from(COMMON), unique=True)):
        (before if draw(st.booleans()) else behind).append(draw(spellings(option)))
    behind += [draw(spellings(option)) for option in command.options if draw(st.booleans())]
    rest: list[str] = []
    for argument in command.arguments:
        if argument.is_rest:
            rest = ["--", *draw(st.lists(TEXTS, min_size=1, max_size=3))]
        else:
            at_least = 0 if argument.is_optional else 1
            most = 3 if argument.is_many else 1
            behind += [[word] for word in draw(st.lists(WORDS, min_size=at_least, max_size=most))]
    behind = draw(st.permutations(behind))
    flat = [word for group in before for word in group]
    return [*flat, *command.path.split(), *(word for group in behind for word in group), *rest]


@st.composite
def spellings(draw: st.DrawFn, option: Option) -> list[str]:
    if option.is_flag:
        return [option.name]
    value = draw(TEXTS)
    return draw(st.sampled_from([[f"{option.name}={value}"], [option.name, value]]))


@pytest.mark.promise(
    "cli.readers-agree",
    "The fast argument parser and click parse every command line the same way.",
)
@pytest.mark.slow
@given(words=calls())
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_readers_hear_the_same(words: list[str], heard: list[Call]) -> None:
    quickly = read_quickly(words)
    if quickly is None:
        return  # left to click
    heard.clear()

    code = full.run_with_click(words)

    assert (code, len(heard)) == (0, 1), words
    path, parameters = heard[0]
    assert (path, plain(parameters)) == quickly


ODDMENTS = ["claim", "store", "info", "--json", "--as", "x", "-", "--", "--ttl=1s", "-h"]


@given(words=st.lists(st.sampled_from(ODDMENTS)))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_the_quick_reader_takes_click_takes_too(words: list[str], heard: list[Call]) -> None:
    quickly = read_quickly(words)
    if quickly is None:
        return
    heard.clear()

    assert full.run_with_click(words) == 0, words
    assert (heard[0][0], plain(heard[0][1])) == quickly


def test_frequent_calls_need_no_click() -> None:
    for words in (
        ["claim", "src/api.py", "--as", "ann", "--json"],
        ["--json", "release", "--all", "--as=ann"],
        ["check", "a", "b", "--token", "5"],
        ["store", "info"],
        ["claims"],
    ):
        assert read_call(words) is not None, words


def test_a_forgotten_value_is_not_taken_from_the_next_option(heard: list[Call]) -> None:
    assert read_call(["claim", "x", "--note", "--json"]) is None
    assert full.run_with_click(["claim", "x", "--note", "--json"]) == 2
    assert not heard


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path.replace(" ", "-"))
def test_every_command_explains_itself_with_examples_that_can_be_read(command: Command) -> None:
    shown = CliRunner().invoke(full.build(), [*command.path.split(), "--help"])

    assert shown.exit_code == 0
    assert command.summary.split(";")[0][:40] in " ".join(shown.output.split())
    assert command.examples
    for example in command.examples:
        assert example.split("\n")[0][:60] in shown.output.replace("\n    ", "\n")
        if not set(example) & set("|><;&`"):  # a shell's own words are not ours to read
            words = shlex.split(example.replace("$$", "4711"))
            assert words[0] == "landlane"
            call = read_call(words[1:])
            assert call is not None, example
            assert call[0].path == command.path
    for option in (*command.options, *COMMON):
        assert option.name in shown.output
        assert option.help


def test_the_table_holds_no_contradiction() -> None:
    paths = [command.path for command in COMMANDS]

    assert len(paths) == len(set(paths))
    for command in COMMANDS:
        names = [option.name for option in (*command.options, *COMMON)]
        keys = [option.key for option in (*command.options, *COMMON)] + [one.key for one in command.arguments]
        assert len(names) == len(set(names)), command.path
        assert len(keys) == len(set(keys)), command.path


def test_every_handler_is_there_and_takes_what_the_table_says() -> None:
    for command in COMMANDS:
        module, _, function = command.handler.partition(":")
        handler = getattr(importlib.import_module(f"landlane.cli.{module}"), function)
        wanted = {option.key for option in command.options} | {one.key for one in command.arguments}
        taken = inspect.signature(handler).parameters
        named = {name for name, one in taken.items() if one.kind is not one.VAR_KEYWORD}

        # What Python keeps for itself, such as --with, has no name there.
        assert named == {"call"} | {key for key in wanted if not keyword.iskeyword(key)}, command.path


def test_click_knows_every_command() -> None:
    root = full.build()
    for command in COMMANDS:
        group: click.Command = root
        for word in command.path.split():
            assert isinstance(group, click.Group)
            found = group.commands.get(word)
            assert found is not None, command.path
            group = found
