"""Writing a small file so that whoever reads it finds the old one or the new one, and never half of it."""

from __future__ import annotations

import os


def write_whole(path: str, data: bytes | str, *, mode: int | None = None, is_durable: bool = False) -> None:
    """Write a file in one step; of processes and threads that do so at once, the last one's stays.

    Without a mode it gets what the umask leaves, whatever it had before. A text may hold the bytes of paths.

    Raises:
        OSError: the system refuses; the file is as it was, and nothing lies beside it.
    """
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(scratch, flags, 0o666 if mode is None else mode & 0o600)
    try:
        with open(handle, "wb") as file:
            if mode is not None:
                os.fchmod(handle, mode)
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(handle)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
