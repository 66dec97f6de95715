"""The matrix of escapes: what a sandbox says it holds is stopped, and what it says is open is open."""

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
from landlane.sandbox.model import BUBBLEWRAP_LANDLOCK, DESCRIPTORS, HELD, LANDLOCK
from tests.sandbox.escapes import ATTEMPTS, CONTROL, OLD_LANDLOCK, Attempt
from tests.support.bubblewrap import find_bubblewrap

if TYPE_CHECKING:
    from collections.abc import Callable

    Matrix = dict[str, Any]

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

NOBODY = 65534
ROOT = Path(__file__).resolve().parents[2]
AS_ROOT, AS_PLAIN_USER = "root", "plain user"
SANDBOXES = ("worker", "ports", "tight")


def find_python(user: int | None) -> str:
    """An interpreter that this user may run: ours can lie in somebody's home."""
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
    """All attempts, by this person, against this sandbox as this backend holds it."""
    user = NOBODY if person == AS_PLAIN_USER and os.geteuid() == 0 else None
    python = find_python(user)
    place = tempfile.mkdtemp(prefix="landlane-escapes-")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": place,
        BWRAP_VARIABLE: find_bubblewrap(),
    }
    environment.pop("GIT_CONFIG_GLOBAL", None)
    if user is not None:
        os.chown(place, user, user)
    try:
        done = subprocess.run(
            [python, str(ROOT / "tests" / "sandbox" / "escapes.py"), place, backend, sandbox],
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
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(place + "-hidden", ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def matrices() -> Callable[[str, str, str], Matrix]:
    """The outcome of all attempts, tried once and asked for one by one."""
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
    """Every attempt that this person can try."""
    name = f"{backend}-{sandbox}-{person}"
    # One worker does a whole matrix: the attempts of one share a scene.
    group = pytest.mark.xdist_group(f"escapes {name}")
    return [
        pytest.param(attempt, backend, sandbox, person, marks=group, id=f"{name}-{attempt.name}")
        for attempt in ATTEMPTS
        if person == AS_ROOT or not attempt.needs_root
    ]


HOLDING = [
    case
    for backend in (BUBBLEWRAP_LANDLOCK, LANDLOCK, OLD_LANDLOCK)
    for sandbox in SANDBOXES
    for person in (AS_ROOT, AS_PLAIN_USER)
    # What an old kernel lacks does not depend on who asks, and ways around an open port may well be closed.
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
def test_an_attempt_is_stopped_where_the_sandbox_says_so_and_nowhere_else(
    attempt: Attempt,
    backend: str,
    sandbox: str,
    person: str,
    matrices: Callable[[str, str, str], Matrix],
    record_property: Callable[[str, object], None],
) -> None:
    matrix = matrices(backend, sandbox, person)
    state, by, why = matrix["held"][attempt.promise]

    record_property("held by", by or f"nobody: {why}")
    is_through = matrix["through"][attempt.name]
    assert is_through == (state != HELD), f"{attempt.promise} is {state}: {by or why}"


@pytest.mark.parametrize(("attempt", "backend", "sandbox", "person"), UNSANDBOXED)
def test_without_a_sandbox_every_attempt_gets_through(
    attempt: Attempt, backend: str, sandbox: str, person: str, matrices: Callable[[str, str, str], Matrix]
) -> None:
    matrix = matrices(backend, sandbox, person)

    assert matrix["through"][attempt.name]
    assert attempt.promise == DESCRIPTORS or matrix["held"][attempt.promise][0] != HELD
