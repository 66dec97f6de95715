#!/usr/bin/env python3
"""Write docs/reference/promises.md from the `promise` markers in the tests.

A promise is a sentence that users can rely on, marked on the test that proves it:

    @pytest.mark.promise("claims.one-winner", "When many processes claim the same path, exactly one gets it.")

An identifier is `<noun>.<what-holds>` and never changes its meaning. Exactly one test states the sentence;
further tests of the same promise repeat the identifier only.

The committed page is also the list of promises that must have a test. `--check` writes nothing and fails
when the page is out of date. Without it, a promise that has lost its test is still an error; to withdraw
one on purpose, name it with `--withdraw`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("docs", "reference", "promises.md")
IDENTIFIER = re.compile(r"[a-z]+(-[a-z]+)*\.[a-z0-9]+(-[a-z0-9]+)*")
ON_PAGE = re.compile(r"^  `([a-z.0-9-]+)`, ", re.MULTILINE)

ABOVE = """<!-- Written by scripts/promises.py from the tests. Change a marker, then run `make format`. -->

# Promises

You can rely on each of these sentences. Each has an identifier that keeps its meaning, and a test that
proves it; `make test` fails when that test is missing or skipped."""

# Headings of nouns whose own name would not explain itself.
HEADINGS = {
    "cli": "Command line",
    "exec": "Running commands in the sandbox",
    "fans": "Splitting and joining tasks",
    "git-hooks": "Git hooks",
    "guests": "Callers inside the sandbox",
    "hands": "Read-only workers",
    "hooks": "Client hooks",
    "house": "Source code",
    "langgraph": "LangGraph",
    "mcp": "MCP server",
    "once": "Running a command once",
    "stash": "Stashes",
    "watch": "Notifications",
}

# What an attacker, a crash or bad luck may try, and the promises that speak about it.
ATTACKS = {
    "Two stores or two repositories where there is one": (
        *(
            "store.state-folder-decides",
            "store.never-in-two",
            "store.loss-is-noticed",
            "store.moved-is-out-of-use",
        ),
    ),
    "A write after its lease has ended": ("late-writes.none", "git-hooks.late-commits"),
    "A branch that influences what another one's checks say": (
        *("landing.verdicts-are-independent", "landing.no-process-is-left"),
    ),
    "A sandboxed caller that makes something run outside": (
        "guests.run-nothing-outside",
        "guests.checks-are-sandboxed",
    ),
    "Bytes and commits that are nowhere else": (
        *(
            "workspaces.close-loses-nothing",
            "rescue.reflog",
            "rescues.byte-for-byte",
            "kills.can-be-repeated",
        ),
    ),
    "Something that waits or fails for ever": (
        *("sessions.reserved-names", "store.any-file-is-repaired", "waiting.rings-are-refused"),
        *("once.keys-that-wait-for-each-other-are-refused", "store.move-can-be-repeated"),
    ),
    "Very many who wait": ("waiting.wakes-the-next", "waiting.joining-is-short"),
    "Secrets and foreign text": ("store.secrets-stay-secret", "output.controls-nothing", "state.private"),
    "Wrong answers": ("rescues.line-ends", "landing.hot-files", "claims.again-is-renewal"),
}


class Marker(NamedTuple):
    """One `promise` marker on a test; the sentence is empty where it only repeats the identifier."""

    identifier: str
    sentence: str
    file: str
    test: str
    is_skipped: bool


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write or check the page, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail when the page is out of date"
    )
    parser.add_argument("--withdraw", action="append", default=[], metavar="ID", help="drop this promise")
    options = parser.parse_args(arguments)
    page = root / PAGE
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    markers = list(read_markers(root))
    withdrawn: list[str] = [] if options.check else options.withdraw
    if problems := [*find_problems(markers), *find_lost(before, markers, withdrawn)]:
        print("\n".join(problems), file=sys.stderr)
        return 1
    after = make_page(markers)
    if not options.check:
        if after != before:
            page.write_text(after, encoding="utf-8")
        return 0
    if after != before:
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), str(PAGE), "as marked", lineterm="", n=1
        )
        print("\n".join(lines))
        print(f"{PAGE} is out of date. Run `make format`.", file=sys.stderr)
    return int(after != before)


def read_markers(root: Path) -> Iterator[Marker]:
    """Read all `promise` markers below tests/, without importing the tests."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.promise(" not in text:
            continue
        tree = ast.parse(text)
        is_file_skipped = any(
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "pytestmark"
            and any(_name_of(one) == "skip" for one in _marks_in(node.value))
            for node in tree.body
        )
        for name, function in _find_tests(tree):
            names = {_name_of(one) for one in function.decorator_list}
            for decorator in function.decorator_list:
                if _name_of(decorator) == "promise":
                    identifier, sentence = _read_arguments(decorator)
                    file = path.relative_to(root).as_posix()
                    yield Marker(identifier, sentence, file, name, is_file_skipped or "skip" in names)


def _find_tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}::{item.name}", item


def _marks_in(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def _name_of(mark: ast.expr) -> str:
    """Return `name` for `pytest.mark.name` and `pytest.mark.name(…)`, otherwise nothing."""
    called = mark.func if isinstance(mark, ast.Call) else mark
    if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "pytest.mark":
        return called.attr
    return ""


def _read_arguments(mark: ast.expr) -> tuple[str, str]:
    values = [ast.literal_eval(one) for one in mark.args] if isinstance(mark, ast.Call) else []
    identifier, sentence = [*map(str, values), "", ""][:2]
    return identifier, sentence


def find_problems(markers: Iterable[Marker]) -> list[str]:
    """Return what is wrong with the markers: a bad identifier, no or a second sentence, a skipped test."""
    problems: list[str] = []
    by_identifier: dict[str, list[Marker]] = defaultdict(list)
    by_sentence: dict[str, str] = {}
    for marker in markers:
        by_identifier[marker.identifier].append(marker)
        if marker.is_skipped:
            problems.append(f"{marker.identifier}: its test {marker.test} in {marker.file} is skipped")
        if marker.sentence:
            other = by_sentence.setdefault(marker.sentence, marker.identifier)
            if other != marker.identifier:
                problems.append(f"{marker.identifier} promises the same as {other}")
    for identifier, found in by_identifier.items():
        sentences = [marker.sentence for marker in found if marker.sentence]
        if not IDENTIFIER.fullmatch(identifier):
            problems.append(f"{identifier!r} is not a valid identifier: write <noun>.<what-holds>")
        if len(sentences) != 1:
            problems.append(f"{identifier}: {len(sentences)} tests state its sentence; exactly one must")
        problems += [f"{identifier}: its sentence has no full stop" for text in sentences if text[-1] != "."]
    return problems


def find_lost(page: str, markers: Iterable[Marker], withdrawn: Iterable[str] = ()) -> list[str]:
    """Return a line for each promise of the page that has no test any more and was not withdrawn."""
    marked = {marker.identifier for marker in markers}
    lost = [one for one in ON_PAGE.findall(page) if one not in marked and one not in withdrawn]
    hint = "restore its test, or withdraw it with `scripts/promises.py --withdraw"
    return [f"{one} has no test any more: {hint} {one}`" for one in lost]


def make_page(markers: Sequence[Marker]) -> str:
    """Return the page: the kinds of attacks, then the promises by noun with their identifiers and tests."""
    groups: dict[str, dict[str, list[Marker]]] = defaultdict(lambda: defaultdict(list))
    for marker in markers:
        noun = marker.identifier.partition(".")[0]
        groups[HEADINGS.get(noun, noun.capitalize())][marker.identifier].append(marker)
    known = {marker.identifier for marker in markers}
    rows = [
        f"- {attack}: {', '.join(f'`{one}`' for one in identifiers if one in known)}"
        for attack, identifiers in ATTACKS.items()
        if known.intersection(identifiers)
    ]
    parts = [ABOVE, "## What was attacked", "\n".join(rows)] if rows else [ABOVE]
    for heading, promises in sorted(groups.items()):
        parts.append(f"## {heading}")
        parts.append("\n".join(_item(identifier, found) for identifier, found in sorted(promises.items())))
    return "\n\n".join(parts) + "\n"


def _item(identifier: str, markers: list[Marker]) -> str:
    sentence = next(marker.sentence for marker in markers if marker.sentence)
    tests = ", ".join(f"[{one.test}](../../{one.file})" for one in markers)
    return f"- {sentence}\n  `{identifier}`, tested by {tests}"


if __name__ == "__main__":
    sys.exit(main())
