"""Every promise names a test that exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.promises import PROMISES, Promise

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).resolve().parents[2]


def _test_names(path: Path) -> set[str]:
    """The node ids below a test file, as `function` or `Class::method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inside = (item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}::{item.name}" for item in inside}
    return names


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES.keys())
def test_the_test_of_a_promise_exists(promise: Promise) -> None:
    file, _, name = promise.test.partition("::")
    without_parameters = name.partition("[")[0]

    assert (ROOT / file).is_file(), f"there is no {file}"
    assert without_parameters in _test_names(ROOT / file), f"{file} has no {without_parameters}"


@pytest.mark.parametrize("identifier", PROMISES)
def test_a_promise_is_a_sentence_with_a_lasting_name(identifier: str) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*\.[a-z0-9]+(-[a-z0-9]+)*", identifier)
    assert PROMISES[identifier].sentence.endswith(".")


def test_no_two_promises_say_the_same() -> None:
    sentences = [promise.sentence for promise in PROMISES.values()]

    assert len(sentences) == len(set(sentences))
