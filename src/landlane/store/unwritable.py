"""The error for a state folder or a store that this user cannot write."""

from __future__ import annotations

import os
import pwd

from landlane.errors import StoreError
from landlane.text import shell_path, short_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def unwritable_error(path: str, why: str | None = None) -> StoreError:
    """Return the error for a folder or a store; it names the owner of what belongs to another user."""
    folder = path
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    shown = short_path(folder)
    owner = next(_foreign_owners(folder), "")
    if owner:
        return StoreError(
            f"cannot write {shown}: it belongs to {owner}",
            code="STORE_FORBIDDEN",
            hint=f'sudo chown -R "$USER" {shell_path(folder)}',
            place=path,
        )
    return StoreError(
        f"cannot write {shown}: {(why or 'permission denied').lower()}",
        code="STORE_READONLY",
        hint=f"make it writable: chmod -R u+rwX {shell_path(folder)}",
        place=path,
    )


def _foreign_owners(folder: str) -> Iterator[str]:
    """Yield the owners of what belongs to other users and cannot be written by this one."""
    for name in ("", *sorted(os.listdir(folder) if os.access(folder, os.R_OK) else ())):
        path = os.path.join(folder, name) if name else folder
        try:
            uid = os.stat(path).st_uid
        except OSError:
            continue
        if uid != os.geteuid() and not os.access(path, os.W_OK):
            yield _user_name(uid)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
