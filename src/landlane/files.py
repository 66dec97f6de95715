"""Read regular files without waiting; write files atomically; compute digests and stamps; judge paths."""

from __future__ import annotations

import errno
import os

FileVersion = tuple[str, str]  # the content's digest, and the stamp that identifies an unchanged file quickly
GONE: FileVersion = ("", "")
_MOST_BYTES = 64 * 1024 * 1024  # above this only the stamp counts: reading on every edit would be slow


_SHARED = 0o2070  # a folder that belongs to a group, as git makes them in a shared repository
_KIND_OF_FILE, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG, without importing `stat`


def open_regular(path: str, flags: int = os.O_RDONLY) -> int:
    """Open a regular file and return its descriptor; anything else could block, such as a named pipe.

    It has the form of an `opener`, so `open(path, opener=open_regular)` works.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    descriptor = open_beside(path, flags | os.O_NONBLOCK)
    if os.fstat(descriptor).st_mode & _KIND_OF_FILE != _REGULAR:
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return descriptor


def open_beside(path: str, flags: int) -> int:
    """Open a file and return its descriptor; a new one has the rights of its folder, whatever the umask.

    So what is in the state folder is private, or shared with a group as the folder is.
    """
    if not flags & os.O_CREAT:
        return os.open(path, flags | os.O_CLOEXEC)
    mode = file_mode(os.path.dirname(path))
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(path, flags | os.O_CLOEXEC, mode)  # it may be deleted in between
    os.fchmod(descriptor, mode)
    return descriptor


def file_mode(folder: str) -> int:
    """Return the permissions of a new file in a folder: those of the folder, and always for its owner."""
    return os.stat(folder or ".").st_mode & 0o666 | 0o600


def make_folder_beside(folder: str) -> None:
    """Make a folder with the rights of the one that it is in, unless it exists."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        return
    os.chmod(folder, os.stat(os.path.dirname(folder)).st_mode & 0o2777)


def read_regular(path: str, most_bytes: int = 1 << 30) -> bytes:
    """Return the content of a regular file, at most so many bytes.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with open(path, "rb", opener=open_regular) as file:
        return file.read(most_bytes)


def write_atomically(
    path: str, data: bytes | str, *, mode: int | None = None, is_durable: bool = False
) -> None:
    """Write a file atomically; of concurrent writers, the last one wins.

    Without a mode the umask decides, whatever mode the file had before; in a private folder the file is
    private, and in one that is shared with a group it is shared. The text may contain path bytes.

    Raises:
        OSError: the write failed; the file is unchanged and no temporary file is left.
    """
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    scratch = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    if mode is None:
        folder = os.stat(os.path.dirname(path) or ".").st_mode
        mode = folder & 0o666 | 0o600 if folder & _SHARED == _SHARED or not folder & 0o077 else None
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


def is_inside(path: str) -> bool:
    """Return whether a path stays within a working tree and out of its `.git`."""
    parts = path.split("/")
    return (
        "\0" not in path and parts[0].lower() != ".git" and not any(part in {"", ".", ".."} for part in parts)
    )


def sync_folder(folder: str) -> None:
    """Make the directory entries of a folder durable."""
    handle = os.open(folder or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        return  # some file systems do not support it, and need not
    finally:
        os.close(handle)


def is_at_or_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or something in it, by their names alone."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def read_first_line(path: str) -> str:
    """Return the first line of a file, without its end; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", opener=open_regular) as file:
            return file.readline().rstrip("\n")
    except (OSError, ValueError):
        return ""


def read_file_version(path: str) -> FileVersion:
    """Return the digest of a file's content and its stamp; `GONE` if it does not exist. Follows links.

    `hook_entry/client_fast_path.py` computes the same, without these imports.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return GONE
    try:
        stamp = stamp_of(os.fstat(descriptor))
        if os.fstat(descriptor).st_size > _MOST_BYTES:
            return stamp, stamp
        # Not from hashlib: that loads OpenSSL, which takes longer than the rest of a hook.
        from _blake2 import blake2b  # noqa: PLC0415 - a library that most hooks do not need

        content_digest = blake2b(digest_size=16)
        while block := os.read(descriptor, 1 << 20):
            content_digest.update(block)
        return content_digest.hexdigest(), stamp
    except OSError:  # a folder, for example
        return GONE
    finally:
        os.close(descriptor)


def stamp_of(found: os.stat_result) -> str:
    """Return a stamp that changes whenever the file is written or replaced."""
    return f"{found.st_mtime_ns}:{found.st_ctime_ns}:{found.st_size}:{found.st_ino}"
