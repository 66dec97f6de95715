"""Three analysers: each looks at the same commit with other eyes, and answers with a verdict and findings."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from landlane.worker import Failure, Work, WorkComplete, serve

PATH = "src/upload.py"
BOARD = ("security", "speed", "style")


def unlimited_reads(tree: ast.AST) -> list[int]:
    """Lines with a `.read()` that takes whatever comes."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and not node.args]
    return [one.lineno for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr == "read"]


def security(tree: ast.AST) -> list[dict[str, Any]]:
    """An upload must not be able to fill the memory."""
    return [finding(line, "blocker", "the body is read without a limit") for line in unlimited_reads(tree)]


def speed(tree: ast.AST) -> list[dict[str, Any]]:
    """Memory that is not needed costs time. It means the same as security, and says it in other words."""
    return [finding(line, "major", "the body is read without a limit") for line in unlimited_reads(tree)]


def style(tree: ast.AST) -> list[dict[str, Any]]:
    """Short and explained is well. It knows nothing of memory."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = [finding(one.lineno, "minor", "no docstring") for one in functions if not ast.get_docstring(one)]
    return found + [finding(one.body[1].lineno, "praise", "short and plain") for one in functions]


def finding(line: int, severity: str, text: str) -> dict[str, Any]:
    """What a reviewer found, by the contract of verdicts."""
    return {"path": PATH, "line": line, "severity": severity, "text": text}


def meet(work: Work, name: str) -> None:
    """Wait until all three are at the table: they work side by side, and none sees another's notes."""
    key = f"board/{(work.assignment.base or '')[:12]}"
    shared("append", key, name, "--with", "union")
    for _ in range(200):
        if len(shared("get", key)["value"]) == len(BOARD):
            return
        time.sleep(0.05)
    raise Failure("the others did not come")


def shared(*words: str) -> dict[str, Any]:
    """Ask for shared state."""
    return json.loads(subprocess.check_output(["landlane", "state", *words, "--json"]))


def analyse(work: Work) -> WorkComplete:
    """Look at the commit in the checkout, which is thrown away afterwards."""
    name = sys.argv[1]
    meet(work, name)
    tree = ast.parse(Path(work.assignment.folder, PATH).read_text(encoding="utf-8"))
    findings = {"security": security, "speed": speed, "style": style}[name](tree)
    is_bad = any(one["severity"] in ("blocker", "major") for one in findings)
    summary = f"{name} looked at {(work.assignment.base or '')[:12]}"
    return work.complete(summary, verdict="reject" if is_bad else "approve", findings=findings)


if __name__ == "__main__":
    serve(analyse)
