"""Code that knows the operating system stands in platform/; other modules that still do are listed here."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from scripts.module_map import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.architecture, pytest.mark.slow]

PACKAGE = ROOT / "src" / "landlane"

# platform/ is the place for it, and sandbox/ is about the kernel. The fast paths of the hooks cannot afford
# the imports, so they hold a copy of the few lines that they need.
EXEMPT = ("platform/", "sandbox/", "hook_entry/client_fast_path.py", "hook_entry/git_fast_path.py")

# Modules outside of platform/ that read /proc or ask for the platform, with what they use. This list only
# gets shorter: move the code into platform/ and remove its line here. Do not add to it.
KNOWN: dict[str, set[str]] = {
    "clients/as_worker/child.py": {"/proc", "os.pidfd_open"},
    "clock.py": {"/proc"},
    "demo/scratch.py": {"/proc"},
    "doctor/examine.py": {"/proc"},
    "git/hooks/scripts.py": {"/proc"},
    "git/run.py": {"ctypes"},
    "hook_entry/git_full_path.py": {"/proc"},
    "processes/child.py": {"os.pidfd_open"},
    "processes/reaper.py": {"/proc", "ctypes", "os.pidfd_open"},
    "processes/fork_server.py": {"os.pidfd_open", "signal.pidfd_send_signal"},
    "processes/tree.py": {"os.pidfd_open", "signal.pidfd_send_signal"},
    "rescue/block_gc.py": {"os.uname"},
    "resident/server.py": {"os.memfd_create"},
    "store/sqlite/lock_holder.py": {"/proc"},
    "store/wake.py": {"/proc"},
    "workers/admit.py": {"/proc"},
    "workers/run_worker.py": {"os.pidfd_open"},
}

SYSTEM_FOLDER = re.compile(r"(?<!\w)/(?:proc|sys)\b")
QUESTIONS = {"sys.platform", "os.name", "os.uname", "sys.getwindowsversion"}
LINUX_CALLS = {
    "os.eventfd",
    "os.memfd_create",
    "os.pidfd_open",
    "os.sched_getaffinity",
    "os.setns",
    "os.unshare",
    "signal.pidfd_send_signal",
    "socket.SO_PEERCRED",
}


def _docstrings(tree: ast.Module) -> set[int]:
    """The ids of the string nodes that are docstrings."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    first = [node.body[0] for node in ast.walk(tree) if isinstance(node, kinds) and node.body]
    return {id(node.value) for node in first if isinstance(node, ast.Expr)}


def _platform_uses(source: str) -> Iterator[str]:
    """What a module uses of the operating system, each use by a short name."""
    tree = ast.parse(source)
    docstrings = _docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from SYSTEM_FOLDER.findall(text)
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                if f"{module}.{name}" in QUESTIONS | LINUX_CALLS:
                    yield f"{module}.{name}"
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name in {"ctypes", "platform"})
            case ast.ImportFrom(module=str(module), names=names):
                found = {module, *(f"{module}.{name.name}" for name in names)}
                yield from found & (QUESTIONS | LINUX_CALLS | {"ctypes", "platform"})
            case _:
                pass


def _modules() -> list[Path]:
    return sorted(
        path for path in PACKAGE.rglob("*.py") if not path.relative_to(PACKAGE).as_posix().startswith(EXEMPT)
    )


def _found() -> dict[str, set[str]]:
    found = {
        path.relative_to(PACKAGE).as_posix(): set(_platform_uses(path.read_text(encoding="utf-8")))
        for path in _modules()
    }
    return {name: uses for name, uses in found.items() if uses}


def test_no_further_module_outside_of_platform_knows_the_operating_system() -> None:
    new = {name: uses - KNOWN.get(name, set()) for name, uses in _found().items()}

    assert {name: uses for name, uses in new.items() if uses} == {}, "put this code into platform/"


def test_the_list_names_only_what_is_still_there() -> None:
    found = _found()
    gone = {name: uses - found.get(name, set()) for name, uses in KNOWN.items()}

    assert {name: uses for name, uses in gone.items() if uses} == {}, "remove it from the list"


@pytest.mark.parametrize(
    ("source", "use"),
    [
        ('open(f"/proc/{pid}/stat")', "/proc"),
        ('PATH = "/sys/fs/cgroup"', "/sys"),
        ('PATH = "/proc/sys/kernel"', "/proc"),
        ("import sys\nif sys.platform == 'linux': pass", "sys.platform"),
        ("from sys import platform", "sys.platform"),
        ("import platform", "platform"),
        ("import os\nos.pidfd_open(1)", "os.pidfd_open"),
        ("import ctypes", "ctypes"),
    ],
)
def test_a_use_is_found(source: str, use: str) -> None:
    assert set(_platform_uses(source)) == {use}


def test_a_docstring_may_mention_the_system() -> None:
    assert not set(_platform_uses('"""What /proc says."""\ndef read():\n    """From /proc."""\n'))
