"""The command `ui`: start the web page and sign a browser in by a one-time link."""

from __future__ import annotations

import itertools
import os
import webbrowser
from importlib.util import find_spec

from landlane.app.open import person_name
from landlane.cli.arguments import read_number
from landlane.cli.person import person_at
from landlane.errors import LandlaneError, Malformed
from landlane.version import install_command
from landlane.web.site import LOOPBACK, read_site, ui_folder
from landlane.web.start import ensure_server, is_serving, make_code, make_link, stop_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.cli.command import CommandCall
    from landlane.web.site import Site

_NEEDS = ("starlette", "uvicorn", "jinja2")
_HIGHEST_PORT = 65_535
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def ui(
    call: CommandCall,
    no_open: bool,
    port: str,
    host: str,
    tls_cert: str,
    tls_key: str,
    read_only: bool,
    link: bool,
    stop: bool,
) -> int:
    """Start the page and show its link, give out a code, or end the page."""
    person_at(call, "open the page")
    repo = call.repo
    if stop:
        was_running = stop_server(repo.state_folder)
        text = "✓ the page has ended" if was_running else "The page is not running."
        return call.terminal.answer({"ok": True, "running": False, "ended": was_running}, text)
    missing = [name for name in _NEEDS if find_spec(name) is None]
    if missing:
        raise LandlaneError(
            f"the page needs {', '.join(missing)}", code="WEB_MISSING", hint=install_command("web")
        )
    options = _options(call, port, host, tls_cert, tls_key, read_only=read_only)
    if _must_restart(repo.state_folder, options):
        stop_server(repo.state_folder)
    site = ensure_server(repo.state_folder, repo.home.root or repo.checkout.root, options)
    if link:
        return _show_code(call, site)
    url = make_link(repo.state_folder, site, person_name())
    if not (no_open or call.terminal.is_json):
        _open(url)
    lines = [f"✓ the page of {os.path.basename(repo.checkout.root)} is open: {url}"]
    lines += ["! read-only: it shows everything and changes nothing"] if site.is_read_only else []
    lines += ["The link works once, for 10 minutes. End the page: landlane ui --stop"]
    answer = {
        "ok": True,
        "running": True,
        "url": url,
        "host": site.host,
        "port": site.port,
        "read_only": site.is_read_only,
    }
    return call.terminal.answer(answer, "\n".join(lines), quiet=url)


def _options(
    call: CommandCall, port: str, host: str, tls_cert: str, tls_key: str, *, read_only: bool
) -> list[str]:
    """Return the options of the server; also what `[web]` says."""
    number = read_number(port, "--port") if port else None
    if number is not None and number > _HIGHEST_PORT:
        raise Malformed(f"there is no port {number}", code="BAD_NUMBER", hint="0 to 65535")
    if bool(tls_cert) != bool(tls_key):
        raise Malformed(
            "--tls-cert and --tls-key belong together",
            code="BAD_CALL",
            hint="landlane ui --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
        )
    words = ["--port", str(number)] if number is not None else []
    words += ["--host", host] if host and host not in (*LOOPBACK, "localhost") else []
    for name, file in (("--tls-cert", tls_cert), ("--tls-key", tls_key)):
        if file:
            path = os.path.join(call.cwd, file)
            if not os.path.isfile(path):
                raise Malformed(f"no file {file}", code="UNREADABLE_FILE", hint="name a file in PEM format")
            words += [name, path]
    words += ["--read-only"] if read_only else []
    url = call.repo.settings.web.url
    return [*words, *(["--url", url] if url else [])]


def _must_restart(state_folder: str, options: Sequence[str]) -> bool:
    """Return whether the page runs in another way than it is asked for now."""
    site = read_site(ui_folder(state_folder))
    if site is None or not is_serving(state_folder):
        return False
    given = dict(itertools.pairwise(options))
    wanted_port = given.get("--port", "")
    return (
        (wanted_port not in ("", "0", str(site.port)))
        or given.get("--host", LOOPBACK[0]) != site.host
        or ("--read-only" in options) != site.is_read_only
        or ("--tls-cert" in options) != site.has_tls
        or given.get("--url", "").rstrip("/") != site.url
    )


def _show_code(call: CommandCall, site: Site) -> int:
    code = make_code(call.repo.state_folder, person_name())
    url = f"{site.origin}/sign-in"
    answer = {"ok": True, "running": True, "url": url, "code": code, "port": site.port, "host": site.host}
    answer |= {"read_only": site.is_read_only}
    text = f"✓ open {url} in the other browser and type: {code}\nThe code works once, for 10 minutes."
    return call.terminal.answer(answer, text, quiet=code)


def _open(url: str) -> None:
    """Open a browser, where there is one that does not take over the terminal."""
    if any(os.environ.get(name) for name in (*_DISPLAYS, "BROWSER")):
        webbrowser.open(url)
