"""The process that serves the page of one repository: `python -m landlane.web.serve ROOT [OPTIONS]`.

It binds its port before it says that it is there, and ends when it is asked to, when its state folder is
gone, or when no browser was in use for twelve hours. All state is in the store and in the folder, so it
can be killed at any moment.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import sys
import threading
import time

import uvicorn

from landlane.app.open import open_repository
from landlane.errors import LandlaneError
from landlane.values import replace
from landlane.web.app import make_app
from landlane.web.keys import IDLE_SECONDS, Keys
from landlane.web.live import Feed
from landlane.web.site import LOCK_FILE, LOOPBACK, STOP_FILE, Site, new_name, read_site, ui_folder, write_site
from landlane.web.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_TICK_SECONDS = 0.25
_CHECK_SECONDS = 30.0
_BACKLOG = 128
_OPTIONS = ("--port", "--host", "--url", "--tls-cert", "--tls-key")


def main(words: Sequence[str]) -> int:
    """Serve until there is a reason to end."""
    root, options = _read_options(words)
    repo = open_repository(root, caller=0, is_person=True)
    folder = ui_folder(repo.state_folder)
    lock = os.open(os.path.join(folder, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0  # another process was faster
    _remove(os.path.join(folder, STOP_FILE))
    site, sockets = _bind(folder, options)
    keys = Keys(folder)
    known = read_site(folder)
    if known is None or known.name != site.name:
        keys.sign_all_out()  # another program may have been sent their cookies at the old port
    write_site(folder, site)
    source = Source(repo)
    feed = Feed(source)
    server = uvicorn.Server(
        uvicorn.Config(
            make_app(source, site, keys, feed),
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=500,
            timeout_graceful_shutdown=2,
            ssl_certfile=options["--tls-cert"] or None,
            ssl_keyfile=options["--tls-key"] or None,
        )
    )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    feed.start()
    threading.Thread(target=_watch, args=(server, folder, lock, keys), daemon=True).start()
    server.run(sockets=sockets)
    feed.stop()
    source.close()
    return 0


def _read_options(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    options: dict[str, str] = dict.fromkeys((*_OPTIONS, "--read-only"), "")
    root, *rest = words
    while rest:
        name = rest.pop(0)
        options[name] = "yes" if name == "--read-only" else rest.pop(0)
    return root, options


def _bind(folder: str, options: dict[str, str]) -> tuple[Site, list[socket.socket]]:
    """Bind the port of the last time, or another one with another host name.

    Raises:
        LandlaneError: a port that was asked for is taken.
    """
    known = read_site(folder)
    host = options["--host"] or LOOPBACK[0]
    wanted = int(options["--port"] or 0) or (known.port if known is not None and not options["--port"] else 0)
    sockets = _listen(host, wanted)
    is_same = known is not None and bool(sockets) and known.port == wanted
    if not sockets and options["--port"] not in ("", "0"):
        raise LandlaneError(f"port {wanted} is taken", code="UI_PORT_TAKEN", hint="landlane ui --port 0")
    while not sockets:
        sockets = _listen(host, 0)
    name = known.name if known is not None and is_same else new_name()
    site = Site(
        name=name,
        port=sockets[0].getsockname()[1],
        host=host,
        url=options["--url"].rstrip("/"),
        has_tls=bool(options["--tls-cert"]),
        is_read_only=bool(options["--read-only"]),
    )
    if not site.is_local and not site.url and not site.has_tls:
        site = replace(site, is_read_only=True)
    return site, sockets


def _listen(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets at a port; none if it is taken.

    On loopback both addresses are bound: a browser tries both, so another program must not get either.
    """
    hosts = LOOPBACK if host in (*LOOPBACK, "localhost") else (host,)
    found: list[socket.socket] = []
    for one in hosts:
        family = socket.AF_INET6 if ":" in one else socket.AF_INET
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue  # this machine has no IPv6
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind((one, found[0].getsockname()[1] if found else port))
            made.listen(_BACKLOG)
        except OSError as error:
            made.close()
            if found and _is_missing(error):
                continue
            for other in found:
                other.close()
            return []
        made.set_inheritable(False)
        found.append(made)
    return found


def _is_missing(error: OSError) -> bool:
    return error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def _watch(server: uvicorn.Server, folder: str, lock: int, keys: Keys) -> None:
    """End the server on request, without its folder, or after `IDLE_SECONDS` without a browser."""
    started_at = checked_at = time.monotonic()
    while not server.should_exit:
        time.sleep(_TICK_SECONDS)
        if os.path.lexists(os.path.join(folder, STOP_FILE)) or not _is_in_place(folder, lock):
            break
        if time.monotonic() - checked_at > _CHECK_SECONDS:
            checked_at = time.monotonic()
            if min(keys.idle_seconds(), checked_at - started_at) > IDLE_SECONDS:
                break
    server.should_exit = True


def _is_in_place(folder: str, lock: int) -> bool:
    try:
        found, held = os.stat(os.path.join(folder, LOCK_FILE)), os.fstat(lock)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LandlaneError as error:
        sys.exit(f"{error.message}")
