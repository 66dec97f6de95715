"""Disks that are full or read-only: a call fails with a plain code, and nothing acknowledged is lost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.api import Landlane, Taken
from landlane.app.open import open_repository
from landlane.app.plain_files import journal_path, read_journal
from landlane.app.verify_journal import verify_journal
from landlane.errors import LandlaneError
from tests.support.store_stress import Replay, all_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(90)]

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
SECONDS = 60


def mount(*words: str) -> None:
    done = subprocess.run(["mount", *words], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        pytest.skip(f"no mounting here: {done.stderr.strip()}")


@contextlib.contextmanager
def mounted(folder: Path, *words: str) -> Iterator[Path]:
    mount(*words, str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, timeout=SECONDS)


def make_repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", "--template=", str(folder)], check=True, timeout=SECONDS)
    return folder


def fill(folder: Path, *, leaving: int = 0) -> Path:
    """Use up the disk, but for so many bytes."""
    filler = folder / "filler"
    file = os.open(filler, os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        while True:
            os.write(file, bytes(4096))
    os.close(file)
    if leaving:
        os.truncate(filler, max(0, filler.stat().st_size - leaving))
    return filler


def claim_until_it_fails(agent: Landlane, most: int = 20_000) -> tuple[set[int], LandlaneError]:
    acknowledged: set[int] = set()
    for number in range(most):
        try:
            outcome = agent.claim(f"src/{number}.py", note="x" * 500)
        except LandlaneError as error:
            return acknowledged, error
        assert isinstance(outcome, Taken)
        acknowledged.update(claim.token for claim in outcome.granted)
    raise AssertionError("the disk never became full")


def assert_all_there(repository: Path, acknowledged: set[int]) -> None:
    repo = open_repository(str(repository))
    entries = all_entries(repo.store)
    replay = Replay().walk(entries)
    assert acknowledged <= set(replay.taken)
    assert replay.trouble == []
    assert repo.store.find_damage() == ""
    assert verify_journal(repo).trouble == ()
    assert list(read_journal(journal_path(repo))) == all_entries(repo.store)
    repo.close()


@needs_mount
def test_a_full_disk_fails_the_claim_and_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=2m", "tmpfs"):
        repository = make_repository(disk / "repository")
        ann = Landlane(repository, agent="ann")
        acknowledged, error = claim_until_it_fails(ann)
        print(f"{len(acknowledged)} claims, then {error.code}: {error.message}")
        assert acknowledged
        assert error.code in ("STORE_FULL", "STORE_IO")
        for _ in range(3):  # it stays so, and nothing gets worse by trying
            with pytest.raises(LandlaneError) as again:
                ann.claim("one/more.py", note="x" * 1000)
            assert again.value.code in ("STORE_FULL", "STORE_IO")
        assert acknowledged <= {claim.token for claim in ann.claims()}

        mount("-o", "remount,size=8m", str(disk))
        outcome = ann.claim("one/more.py")
        assert isinstance(outcome, Taken)
        assert outcome.granted[0].token > max(acknowledged)
        ann.close()
        assert_all_there(repository, acknowledged)


@needs_mount
@pytest.mark.parametrize("left", [0, 4096, 8192, 16_384, 65_536])
def test_a_disk_that_fills_up_at_any_point_harms_nothing(tmp_path: Path, left: int) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=3m", "tmpfs"):
        repository = make_repository(disk / "repository")
        ann = Landlane(repository, agent="ann")
        before = ann.claim("src/before.py")
        assert isinstance(before, Taken)
        filler = fill(disk, leaving=left)
        acknowledged, error = claim_until_it_fails(ann)
        assert error.code in ("STORE_FULL", "STORE_IO")
        bob_error = join_error(repository, "bob")
        assert bob_error in ("", "STORE_FULL", "STORE_IO"), bob_error
        filler.unlink()
        acknowledged |= {before.granted[0].token}
        bob = Landlane(repository, agent="bob")
        assert isinstance(bob.claim("free/again.py"), Taken)
        bob.close()
        ann.close()
        assert_all_there(repository, acknowledged)


def join_error(repository: Path, name: str) -> str:
    try:
        Landlane(repository, agent=name).close()
    except LandlaneError as error:
        return error.code
    return ""


LIMITED = """
import json, resource, sys
from landlane.api import Landlane
from landlane.errors import LandlaneError

agent = Landlane(sys.argv[1], agent="limited")
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
tokens, codes = [], []
for number in range(400):
    try:
        tokens += [claim.token for claim in agent.claim(f"src/{number}.py", note="x" * 500).granted]
    except LandlaneError as error:
        codes.append(error.code)
        if len(codes) > 5:
            break
print(json.dumps({"tokens": tokens, "codes": codes}))
"""


def test_a_file_that_may_not_grow_fails_the_claim_and_keeps_what_was_acknowledged(repository: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(repository), str(400 * 1024)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["tokens"]
    assert answer["codes"]
    assert set(answer["codes"]) <= {"STORE_FULL", "STORE_IO"}
    assert_all_there(repository, set(answer["tokens"]))


@needs_mount
def test_a_store_on_a_read_only_disk_says_so_and_works_again_when_it_is_writable(repository: Path) -> None:
    ann = Landlane(repository, agent="ann")
    before = ann.claim("src/a.py")
    assert isinstance(before, Taken)
    state = repository / ".git" / "landlane"
    with mounted(state, "--bind", str(state)):
        mount("-o", "remount,bind,ro", str(state))
        for attempt in (
            lambda: Landlane(repository, agent="bob"),
            lambda: Landlane(repository, agent="ann"),
        ):
            with pytest.raises(LandlaneError) as refused:
                attempt()
            assert refused.value.code == "STORE_READONLY"
    after = ann.claim("src/b.py")
    assert isinstance(after, Taken)
    ann.close()
    assert_all_there(repository, {before.granted[0].token, after.granted[0].token})


STRANGER = """
import os, sys, tempfile
from landlane.api import Landlane
from landlane.errors import LandlaneError

Landlane(sys.argv[1], agent="bob").claim("warm/up.py")  # so that everything is imported
if os.geteuid() == 0:  # root may write everything
    os.setgid(65534), os.setuid(65534)
try:
    Landlane(sys.argv[2], agent="bob").claim("src/b.py")
except LandlaneError as error:
    print(error.code)
"""


def test_a_store_that_this_user_may_not_write_says_so(repository: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="landlane-test-") as base:
        os.chmod(base, 0o755)  # root's other tests lie where nobody else may look
        closed = make_repository(Path(base, "repository"))
        ann = Landlane(closed, agent="ann")
        assert isinstance(ann.claim("src/a.py"), Taken)
        ann.close()
        state = closed / ".git" / "landlane"
        for path in (state, *state.iterdir()):
            path.chmod(0o555 if path.is_dir() else 0o444)
        done = subprocess.run(
            [sys.executable, "-c", STRANGER, str(repository), str(closed)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        state.chmod(0o755)
    code = "STORE_READONLY" if os.geteuid() else "STORE_FORBIDDEN"  # root's files belong to another user
    assert (done.stdout, done.stderr) == (f"{code}\n", "")
