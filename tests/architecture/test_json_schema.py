"""The JSON Schema of `--json` answers: up to date, one for each command, and an answer that differs fails."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from landlane.cli.specs.table import all_commands
from scripts import json_schemas
from tests.support.answer_schema import check_answer

pytestmark = pytest.mark.architecture

RELEASED = {"ok": True, "released": ["a.py"], "commit": None, "next": {}}
FAILED = {"ok": False, "code": "NOT_HELD", "message": "a.py is not claimed", "hint": "", "pattern": "a.py"}
STALE = {**FAILED, "key": "k", "expected": 1, "version": 2, "value": {"a": 1}, "agent": "ann", "at": None}
del STALE["pattern"]


def test_the_schema_and_its_page_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_schemas.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.promise(
    "json.schema", "Every command with `--json` has a JSON Schema that the package contains."
)
def test_every_command_has_a_schema_that_is_valid_itself() -> None:
    document = json_schemas.make_schema()
    paths = {"", *(command.path for command in all_commands())} - set(json_schemas.WITHOUT)

    assert document["commands"].keys() == paths
    Draft202012Validator.check_schema({"$defs": {**document["$defs"], **document["commands"]}})


def test_every_reference_of_the_schema_is_defined() -> None:
    document = json_schemas.make_schema()

    assert _references(document) == {f"#/$defs/{name}" for name in document["$defs"]}


def _references(part: object) -> set[str]:
    if isinstance(part, list):
        return {name for one in part for name in _references(one)}
    if isinstance(part, dict):
        return {str(part["$ref"])} if "$ref" in part else _references(list(part.values()))
    return set()


def test_an_answer_in_one_of_its_forms_passes() -> None:
    check_answer(["release", "a.py"], RELEASED)
    check_answer(["release", "a.py"], FAILED)
    check_answer(["state", "set", "k", "1"], STALE)


@pytest.mark.parametrize(
    "answer",
    [
        {**RELEASED, "surprise": 1},
        {**RELEASED, "released": "a.py"},
        {"ok": True, "released": []},
        {**FAILED, "surprise": 1},
        {**FAILED, "code": None},
        {**FAILED, "pattern": ["a.py"]},
        STALE,  # only `state set` fails so
    ],
)
def test_an_answer_that_differs_from_its_type_fails(answer: dict[str, object]) -> None:
    with pytest.raises(AssertionError, match="no form of the answer to landlane release"):
        check_answer(["release", "a.py"], answer)
