"""Where the page of a repository is: its host name and port, and the private folder with its files.

The host name is random, so that no other server on this machine shares cookies with the page. Name and port
are kept over a restart; if another program has taken the port, both change and every browser signs in again.
"""

from __future__ import annotations

import json
import os
import secrets
import socket

from landlane.files import read_regular, write_atomically
from landlane.values import value

FOLDER = "ui"
SITE_FILE = "site.json"
LOCK_FILE = "server.lock"
STOP_FILE = "stop"
LOG_FILE = "server.log"
LOOPBACK = ("127.0.0.1", "::1")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
_MOST_BYTES = 65_536
_PRIVATE = 0o600


@value
class Site:
    """The address of the page, and how it is served."""

    name: str  # the host name that only this page has
    port: int
    host: str = LOOPBACK[0]  # the address it listens on
    url: str = ""  # what browsers on other machines use: `[web] url`, or the address with TLS
    is_read_only: bool = False
    has_tls: bool = False

    @property
    def is_local(self) -> bool:
        """Return whether only this machine can reach it directly."""
        return self.host in (*LOOPBACK, "localhost")

    @property
    def origin(self) -> str:
        """Return the origin that a link leads to."""
        if self.url:
            return self.url
        scheme = "https" if self.has_tls else "http"
        host = socket.gethostname() if self.host in _ANY else self.host
        named = self.name if self.is_local else f"[{host}]" if ":" in host else host
        return f"{scheme}://{named}:{self.port}"


def ui_folder(state_folder: str) -> str:
    """Return the private folder of the page, which is made if it is missing."""
    folder = os.path.join(state_folder, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    return folder


def new_name() -> str:
    """Return a new random host name below `localhost`, which browsers resolve to this machine."""
    return f"landlane-{secrets.token_hex(5)}.localhost"


def read_site(folder: str) -> Site | None:
    """Return the address that was used last; None if there is none."""
    try:
        return Site(**json.loads(read_regular(os.path.join(folder, SITE_FILE), _MOST_BYTES)))
    except (OSError, ValueError, TypeError):
        return None


def write_site(folder: str, site: Site) -> None:
    """Keep the address for the next start, and for the commands that make links."""
    fields = {
        "name": site.name,
        "port": site.port,
        "host": site.host,
        "url": site.url,
        "is_read_only": site.is_read_only,
        "has_tls": site.has_tls,
    }
    write_private(os.path.join(folder, SITE_FILE), json.dumps(fields))


def write_private(path: str, text: str) -> None:
    """Write a file that only its owner can read."""
    write_atomically(path, text, mode=_PRIVATE)
