"""Collect every error code of the package from its syntax trees.

A code is reported where an error is raised, where a table lists it, or where an answer contains it.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from landlane import api, errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GAP = "…"  # stands for text that is only known at run time
CODE = re.compile(r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*")
# What functions return that compose a sentence.
HELD = f"{GAP} is claimed by {GAP} ({GAP} ago, lease ends {GAP})"
SENTENCES = {"describe_holder": HELD, "held_text": HELD, "_held_message": HELD}
STOPPED = 130  # the one exit code that is computed; shown as for Ctrl-C


class ReportedError(NamedTuple):
    """One place where a code is reported, with its message and hint."""

    code: str
    exit: int
    message: str
    hint: str


@cache
def collect_codes(package: Path) -> tuple[ReportedError, ...]:
    """Return every code that a package can report, once for each message and hint."""
    paths = sorted(package.rglob("*.py"))
    trees = {ast.parse(path.read_text(encoding="utf-8")): path for path in paths}
    nodes = {tree: list(ast.walk(tree)) for tree in trees}
    definitions = _Definitions([node for tree in trees for node in nodes[tree]])
    found: list[ReportedError] = []
    for tree, path in trees.items():
        functions = [node for node in nodes[tree] if isinstance(node, ast.FunctionDef)]
        for root in [tree, *functions]:
            scope = _Scope(tree, root, definitions)
            for node in scope.nodes:
                if path.parent.name != "mcp" or not _is_answer(node):  # tools have no exit code
                    found += _reported_by(node, scope)
    return tuple(found)


class _Definitions:
    """Error classes, functions that make errors, all calls, and the exit codes of answers, in all modules."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        classes = {**vars(errors), **vars(api)}.items()
        self.exits: dict[str, int] = {
            name: one.exit_code
            for name, one in classes
            if isinstance(one, type) and issubclass(one, errors.LandlaneError)
        }
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.error_makers: dict[str, int] = {}
        self.answer_exits: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) in self.exits:
                self.error_makers[node.name] = self.exits[ast.unparse(node.returns)]
            if isinstance(node, ast.Dict):
                pairs = zip(map(_constant, node.keys), map(_constant, node.values), strict=True)
                self.answer_exits |= {
                    key: number
                    for key, number in pairs
                    if isinstance(key, str) and CODE.fullmatch(key) and isinstance(number, int)
                }


class _Scope:
    """A function, or the top level of a module: its nodes, the values of its names, and its exit codes."""

    def __init__(
        self, module: ast.Module, scope: ast.Module | ast.FunctionDef, definitions: _Definitions
    ) -> None:
        self.definitions = definitions
        self.nodes = list(_nodes_of(scope))
        self._scope = scope
        self._constants = [node for node in module.body if isinstance(node, ast.Assign)]
        self._assigned = [node for node in self.nodes if isinstance(node, ast.Assign)]

    def text(self, node: ast.AST | None) -> str:
        """Return a sentence, with a gap for each part that is not constant."""
        return re.sub(f"{GAP}+", GAP, self._text(node))

    def _text(self, node: ast.AST | None) -> str:
        match node:
            case None:
                return ""
            case ast.Constant(value=str() | int()):
                return str(node.value)
            case ast.JoinedStr(values=values):
                return "".join(self._text(one) for one in values)
            case ast.FormattedValue(value=ast.Name() as name):
                return self._text(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text(left) + self._text(right)
            case ast.Call() if _name_of(node.func) in SENTENCES:
                return SENTENCES[_name_of(node.func)]
            case ast.Name(id=name):
                return self._text(self._assigned_to(name, node.lineno))
            case _:
                return GAP

    def _assigned_to(self, name: str, line: int) -> ast.AST:
        """Return what was last assigned to a name above this line."""
        found: ast.AST = ast.Pass()
        for node in [*self._constants, *(one for one in self._assigned if one.lineno < line)]:
            if [_name_of(target) for target in node.targets] == [name]:
                found = node.value
        return found

    def exit_of(self, call: ast.Call, default: int) -> int:
        """Return the exit code of an error, which a line such as `error.exit_code = 5` may change."""
        names = [_name_of(node.targets[0]) for node in self._assigned if node.value is call]
        for node in self._assigned:
            match node.targets:
                case [ast.Attribute(value=ast.Name(id=name), attr="exit_code")] if name in names:
                    number = _constant(node.value)
                    return number if isinstance(number, int) else STOPPED
                case _:
                    pass
        return default

    def exit_of_answer(self) -> int:
        """Return the only exit code above zero that a handler returns, or 1."""
        returned = [node for node in self.nodes if isinstance(node, ast.Return)]
        numbers = {_constant(one) for node in returned for one in ast.walk(node)}
        above = [number for number in numbers if type(number) is int and number > 0]
        return above[0] if len(above) == 1 else 1

    def codes(self, node: ast.AST | None) -> list[str]:
        """Return the codes that an expression can have as its value."""
        match node:
            case ast.Constant(value=str(code)) if CODE.fullmatch(code):
                return [code]
            case ast.IfExp(body=one, orelse=other):
                return [*self.codes(one), *self.codes(other)]
            case ast.JoinedStr() if isinstance(self._scope, ast.FunctionDef):
                return self._codes_from_calls(node, self._scope)
            case _:
                return []

    def _codes_from_calls(self, template: ast.JoinedStr, function: ast.FunctionDef) -> list[str]:
        """Return the codes that are made from a parameter, one for each constant that a call passes."""
        parameters = [one.arg for one in function.args.args]
        names = {node.id for node in ast.walk(template) if isinstance(node, ast.Name)}
        expression = compile(ast.fix_missing_locations(ast.Expression(template)), "code", "eval")
        made: list[str] = []
        for call in self.definitions.calls:
            if _name_of(call.func) != function.name:
                continue
            given = dict(zip(parameters, map(_constant, call.args), strict=False))
            if all(isinstance(given.get(one), str) for one in names):
                made.append(eval(expression, {name: given[name] for name in names}))
        return made


def _nodes_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope without those of the functions in it."""
    waiting = [*ast.iter_child_nodes(scope)][::-1]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting += [*ast.iter_child_nodes(node)][::-1]


def _reported_by(node: ast.AST, scope: _Scope) -> Iterator[ReportedError]:
    """Yield what a node reports: an error, a row of a table, or an answer."""
    definitions = scope.definitions
    match node:
        case ast.Call(args=[message, *_]) if _name_of(node.func) in definitions.exits:
            given = {one.arg: one.value for one in node.keywords}
            exit_code = scope.exit_of(node, definitions.exits[_name_of(node.func)])
            for code in scope.codes(given.get("code")):
                yield ReportedError(code, exit_code, scope.text(message), scope.text(given.get("hint")))
        case ast.Call(args=[code, message, hint]) if _is_answer(node):
            for one in scope.codes(code):
                exit_code = definitions.answer_exits.get(one) or scope.exit_of_answer()
                yield ReportedError(one, exit_code, scope.text(message), scope.text(hint))
        case ast.Call(args=[_, why, code, hint]) if _name_of(node.func) in definitions.error_makers:
            for one in scope.codes(code):
                message = f"{GAP} {scope.text(why)}"
                yield ReportedError(
                    one, definitions.error_makers[_name_of(node.func)], message, scope.text(hint)
                )
        case ast.Call() if {"reason", "code"} <= {one.arg for one in node.keywords}:
            given = {one.arg: one.value for one in node.keywords}  # why a landing was rejected
            for code in scope.codes(given["code"]):
                yield ReportedError(code, 1, scope.text(given["reason"]), scope.text(given.get("hint")))
        case ast.Tuple(elts=[code, words, hint]) if scope.codes(code) and not scope.codes(words):
            message = f"the store {GAP} {scope.text(words)}"
            yield ReportedError(scope.codes(code)[0], errors.StoreError.exit_code, message, scope.text(hint))
        case ast.Tuple(elts=[ast.Constant(value=int(number)), code, words]):
            yield from (
                ReportedError(one, number, f"{GAP} {scope.text(words)}", "") for one in scope.codes(code)
            )
        case ast.Dict():
            yield from _reported_by_answer(node, scope)
        case _:
            pass


def _is_answer(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name_of(node.func) == "failure_json"


def _reported_by_answer(node: ast.Dict, scope: _Scope) -> Iterator[ReportedError]:
    given = {_constant(key): value for key, value in zip(node.keys, node.values, strict=True)}
    if "message" in given:
        for code in scope.codes(given.get("code")):
            message, hint = scope.text(given["message"]), scope.text(given.get("hint"))
            yield ReportedError(code, scope.exit_of_answer(), message, hint)
    for key, words in given.items():
        if (
            isinstance(key, str)
            and key in scope.definitions.answer_exits
            and isinstance(_constant(words), str)
        ):
            yield ReportedError(key, scope.definitions.answer_exits[key], f"{GAP}: {_constant(words)}", "")


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None
