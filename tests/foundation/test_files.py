"""Writing files whole: many at once, and where the system refuses."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from landlane.files import write_atomically
from tests.support.project import Background

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_threads_that_write_one_file_at_once_each_write_it_whole(tmp_path: Path) -> None:
    path = tmp_path / "facts"
    texts = [str(number) * 5000 for number in range(6)]
    write_atomically(str(path), texts[0])

    def write(text: str) -> None:
        for _ in range(200):
            write_atomically(str(path), text)
            assert path.read_text() in texts

    for worker in [Background(lambda text=text: write(text)) for text in texts]:
        worker.result(60)
    assert os.listdir(tmp_path) == ["facts"]


def test_a_refused_write_leaves_the_file_and_its_folder_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "facts"
    write_atomically(str(path), b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(str(path), b"new", is_durable=True)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["facts"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(str(tmp_path / "folder"), b"")
    assert sorted(os.listdir(tmp_path)) == ["facts", "folder"]


def test_a_mode_is_given_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        for name, mode in (("program", 0o755), ("secret", 0o600), ("plain", None)):
            write_atomically(str(tmp_path / name), b"", mode=mode)
    finally:
        os.umask(before)
    modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.iterdir()}
    assert modes == {"program": 0o755, "secret": 0o600, "plain": 0o600}


def test_a_text_may_hold_bytes_of_paths(tmp_path: Path) -> None:
    write_atomically(str(tmp_path / "place"), os.fsdecode(b"caf\xe9"))
    assert (tmp_path / "place").read_bytes() == b"caf\xe9"
