"""Start and stop the page's server, which is a process of its own: one for each state folder.

It is not the resident: a browser that is left open must not keep a broker of sandboxed agents alive, and the
libraries of the web must not be loaded there.
"""

from __future__ import annotations

import http.client
import os
import sys
import time

from landlane.clients.model import VARIABLE_PREFIXES
from landlane.errors import LandlaneError, TimedOut
from landlane.git.run import LOCATION_VARIABLES
from landlane.processes.child import start_detached
from landlane.resident.single_instance import is_locked
from landlane.web.keys import Keys
from landlane.web.site import (
    LOCK_FILE,
    LOG_FILE,
    LOOPBACK,
    STOP_FILE,
    Site,
    read_site,
    ui_folder,
    write_private,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_START_SECONDS = 30.0
_STOP_SECONDS = 15.0
_POLL_SECONDS = 0.05
_MOST_LOG = 1_000_000
_WITHOUT = ("LANDLANE_", *VARIABLE_PREFIXES, "ANTHROPIC_", "OPENAI_")
_TRIED = 400  # characters of the log that an error shows


def is_serving(state_folder: str) -> bool:
    """Return whether a server holds the lock of this state folder."""
    return is_locked(os.path.join(ui_folder(state_folder), LOCK_FILE))


def ensure_server(state_folder: str, root: str, options: Sequence[str]) -> Site:
    """Return the address of the running server, which is started if need be.

    Raises:
        LandlaneError: it does not start; the message has the end of its log.
    """
    folder = ui_folder(state_folder)
    log = os.path.join(folder, LOG_FILE)
    deadline = time.monotonic() + _START_SECONDS
    started = False
    while time.monotonic() < deadline:
        site = read_site(folder)
        is_running = is_serving(state_folder)
        if site is not None and is_running and _answers(site):
            return site
        if not is_running and started and _log_end(log):
            break
        if not is_running and not started:
            _empty_log(log)
            command = [sys.executable, "-P", "-m", "landlane.web.serve", root, *options]
            without = [name for name in os.environ if name.startswith(_WITHOUT) and name != "LANDLANE_STORE"]
            start_detached(command, cwd=root, log=log, without=(*LOCATION_VARIABLES, *without))
            started = True
        time.sleep(_POLL_SECONDS)
    raise LandlaneError(
        f"the page did not start: {_log_end(log) or 'no answer'}",
        code="UI_NOT_STARTED",
        hint="is the port free? Let one be chosen: landlane ui --port 0",
    )


def _answers(site: Site) -> bool:
    """Return whether this very page answers at the port."""
    host = site.host if site.host not in ("0.0.0.0", "::", "localhost") else LOOPBACK[0]  # noqa: S104 - compared
    connection = http.client.HTTPConnection(host, site.port, timeout=2.0)
    try:
        if site.has_tls:
            connection.connect()
            return True
        connection.request("GET", "/health", headers={"Host": _probe_name(site, host)})
        return connection.getresponse().read(200).decode("utf-8", "replace") == f"landlane {site.name}\n"
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _probe_name(site: Site, host: str) -> str:
    """Return the host name of a request to the page on this machine."""
    if site.is_local:
        return f"{site.name}:{site.port}"
    return (
        site.origin.partition("://")[2]
        if site.url
        else f"[{host}]:{site.port}"
        if ":" in host
        else f"{host}:{site.port}"
    )


def stop_server(state_folder: str) -> bool:
    """End the server; return whether there was one.

    Raises:
        TimedOut: it does not end.
    """
    if not is_serving(state_folder):
        return False
    write_private(os.path.join(ui_folder(state_folder), STOP_FILE), "")
    deadline = time.monotonic() + _STOP_SECONDS
    while is_serving(state_folder):
        if time.monotonic() > deadline:
            raise TimedOut("the page does not end", code="UI_NOT_STOPPED", hint="landlane ui --stop")
        time.sleep(_POLL_SECONDS)
    return True


def make_link(state_folder: str, site: Site, person: str, path: str = "") -> str:
    """Return a one-time link for a person; its secret is in the fragment, which no server is sent."""
    keys = Keys(ui_folder(state_folder))
    return f"{site.origin}/sign-in{path}#{keys.make_link(person)}"


def make_code(state_folder: str, person: str) -> str:
    """Return a one-time code for another browser."""
    return Keys(ui_folder(state_folder)).make_code(person)


def _empty_log(log: str) -> None:
    try:
        if os.path.getsize(log) > 0:
            os.truncate(log, 0)
    except OSError:
        return


def _log_end(log: str) -> str:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file.read(_MOST_LOG).splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][-_TRIED:] if lines else ""
