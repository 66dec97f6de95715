"""Every attempt to escape fails where the sandbox keeps its promise, and succeeds where it does not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.sandbox.bubblewrap import BWRAP_VARIABLE
from landlane.sandbox.model import BackendKind, GuaranteeState, Promise
from tests.sandbox.escapes import CONTROL, OLD_LANDLOCK, Attempt, chosen_attempts
from tests.support.tools import find_tool

if TYPE_CHECKING:
    from collections.abc import Callable

    Matrix = dict[str, Any]

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk, pytest.mark.soak]

NOBODY = 65534
ROOT = Path(__file__).resolve().parents[2]
AS_ROOT, AS_PLAIN_USER = "root", "plain user"
SANDBOXES = ("worker", "ports", "tight")


def find_python(user: int | None) -> str:
    """Return an interpreter that this user may run; ours may be in a private home."""
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        try:
            done = subprocess.run([program, "-I", "-c", check], user=user, capture_output=True, timeout=20)
        except OSError:
            continue
        if not done.returncode:
            return program
    pytest.skip("no Python 3.11 or newer that a plain user may run")


def run_matrix(backend: str, sandbox: str, person: str) -> Matrix:
    """Make all attempts as this user against this sandbox and backend."""
    user = NOBODY if person == AS_PLAIN_USER and os.geteuid() == 0 else None
    python = find_python(user)
    folder = tempfile.mkdtemp(prefix="landlane-escapes-")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": folder,
        BWRAP_VARIABLE: find_tool("bubblewrap"),
    }
    environment.pop("GIT_CONFIG_GLOBAL", None)
    if user is not None:
        os.chown(folder, user, user)
    try:
        done = subprocess.run(
            [python, str(ROOT / "tests" / "sandbox" / "escapes.py"), folder, backend, sandbox],
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(folder + "-hidden", ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def matrices() -> Callable[[str, str, str], Matrix]:
    """Return a function that makes all attempts of a matrix once and returns the results."""
    known: dict[tuple[str, str, str], Matrix] = {}

    def find(backend: str, sandbox: str, person: str) -> Matrix:
        if person == AS_ROOT and os.geteuid() != 0:
            pytest.skip("these tests are not run by root")
        if (backend, sandbox, person) not in known:
            known[backend, sandbox, person] = run_matrix(backend, sandbox, person)
        found = known[backend, sandbox, person]
        if "missing" in found:
            pytest.skip(f"no {backend}: {found['missing']}")
        return found

    return find


def cases(backend: str, sandbox: str, person: str) -> list[object]:
    """Return a test case for every attempt that this user can make."""
    name = f"{backend}-{sandbox}-{person}"
    # One test process makes all attempts of a matrix, since they share a scene.
    group = pytest.mark.xdist_group(f"escapes {name}")
    return [
        pytest.param(attempt, backend, sandbox, person, marks=group, id=f"{name}-{attempt.name}")
        for attempt in chosen_attempts()
        if person == AS_ROOT or not attempt.needs_root
    ]


HOLDING = [
    case
    for backend in (BackendKind.BUBBLEWRAP_LANDLOCK, BackendKind.LANDLOCK, OLD_LANDLOCK)
    for sandbox in SANDBOXES
    for person in (AS_ROOT, AS_PLAIN_USER)
    # The limits of an old kernel are the same for every user, and it may close ways around an open port.
    if backend != OLD_LANDLOCK or (sandbox != "ports" and person == AS_PLAIN_USER)
    for case in cases(backend, sandbox, person)
]
UNSANDBOXED = [case for person in (AS_ROOT, AS_PLAIN_USER) for case in cases(CONTROL, "tight", person)]


@pytest.mark.promise(
    "sandbox.held-as-said",
    "The sandbox blocks everything it reports as blocked, for root and for normal users; everything it "
    "reports as open is open.",
)
@pytest.mark.parametrize(("attempt", "backend", "sandbox", "person"), HOLDING)
def test_an_attempt_is_stopped_exactly_where_the_sandbox_guarantees_it(
    attempt: Attempt,
    backend: str,
    sandbox: str,
    person: str,
    matrices: Callable[[str, str, str], Matrix],
    record_property: Callable[[str, object], None],
) -> None:
    matrix = matrices(backend, sandbox, person)
    state, by, why = matrix["held"][attempt.promise]

    record_property("held by", by or f"nothing: {why}")
    is_through = matrix["through"][attempt.name]
    assert is_through == (state != GuaranteeState.HELD), f"{attempt.promise} is {state}: {by or why}"


@pytest.mark.parametrize(("attempt", "backend", "sandbox", "person"), UNSANDBOXED)
def test_without_a_sandbox_every_attempt_gets_through(
    attempt: Attempt, backend: str, sandbox: str, person: str, matrices: Callable[[str, str, str], Matrix]
) -> None:
    matrix = matrices(backend, sandbox, person)

    assert matrix["through"][attempt.name]
    assert attempt.promise == Promise.DESCRIPTORS or matrix["held"][attempt.promise][0] != GuaranteeState.HELD
