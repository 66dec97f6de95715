"""Who may use the page: one-time links and codes, and the browsers that have signed in.

The folder holds only digests of links, codes and cookies: who reads it cannot sign in. A browser has a
cookie, and each of its tabs a key that is never sent: the tab signs its requests with it (`check_signature`).
So neither a server that is sent our cookie, nor one that records a whole request, can do anything with it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
import time

from landlane.files import read_regular
from landlane.values import value
from landlane.web.site import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

LINK, CODE = "link", "code"
LINK_SECONDS = 600
BROWSER_SECONDS = 14 * 86_400  # without use
IDLE_SECONDS = 12 * 3600  # after which the server ends
_LINKS, _BROWSERS, _SECRET = "links", "browsers", "secret"
_MOST_KEYS = 40  # tabs of one browser; the oldest are forgotten
_MOST_BYTES = 65_536
_WRONG_CODES, _LOCK_SECONDS = 5, 60.0
_CODE_LETTERS = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_CODE_LENGTH = 10
_SKEW_SECONDS = 120  # between the clocks of a browser and of the server
_SCRYPT = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


@value
class Browser:
    """A browser that has signed in."""

    id: str  # the digest of its cookie
    person: str
    keys: tuple[str, ...]


@value
class SignedIn:
    """What a browser gets when it signs in: a cookie, and a key for the tab."""

    cookie: str
    key: str
    browser: Browser


class Locked(Exception):
    """Too many wrong codes were given; `seconds` is how long none is accepted."""

    def __init__(self, seconds: float) -> None:
        super().__init__("too many wrong codes")
        self.seconds = seconds


class Keys:
    """The links, codes and browsers of one page, in its private folder."""

    def __init__(self, folder: str, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._wall = wall
        self._guard = threading.Lock()
        self._seen: dict[str, float] = {}  # signatures of the last minutes: each counts once
        self._wrong: list[float] = []
        for name in (_LINKS, _BROWSERS):
            os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
        self._secret = self._read_secret()

    def _read_secret(self) -> bytes:
        path = os.path.join(self._folder, _SECRET)
        try:
            return bytes.fromhex(read_regular(path, _MOST_BYTES).decode())
        except (OSError, ValueError):
            write_private(path, secrets.token_hex(32))
            return bytes.fromhex(read_regular(path, _MOST_BYTES).decode())

    # ------------------------------------------------------------------------------------- links and codes

    def make_link(self, person: str) -> str:
        """Return the secret part of a new one-time link for a person."""
        token = secrets.token_urlsafe(32)
        self._keep_link(_digest(token), LINK, person)
        return token

    def make_code(self, person: str) -> str:
        """Return a new one-time code that a person can type in another browser."""
        letters = [secrets.choice(_CODE_LETTERS) for _ in range(_CODE_LENGTH)]
        half = _CODE_LENGTH // 2
        code = "".join(letters[:half]) + "-" + "".join(letters[half:])
        self._keep_link(self._code_digest(code), CODE, person)
        return code

    def _code_digest(self, code: str) -> str:
        """Return a digest that takes long to find a code for: codes are short."""
        plain = "".join(letter for letter in code.upper() if letter in _CODE_LETTERS)
        return hashlib.scrypt(plain.encode(), salt=self._secret, **_SCRYPT).hex()

    def _keep_link(self, digest: str, kind: str, person: str) -> None:
        self.remove_old()
        document = {"kind": kind, "person": person, "until": self._wall() + LINK_SECONDS}
        write_private(os.path.join(self._folder, _LINKS, digest), json.dumps(document))

    def use_link(self, token: str, cookie: str = "") -> SignedIn | None:
        """Sign a browser in by the secret part of a link, once; None if the link is not valid any more."""
        return self._use(_digest(token[:200]), LINK, cookie)

    def use_code(self, code: str, cookie: str = "") -> SignedIn | None:
        """Sign a browser in by a code, once; None if the code is wrong.

        Raises:
            Locked: too many wrong codes were given.
        """
        with self._guard:
            now = time.monotonic()
            self._wrong = [at for at in self._wrong if now - at < _LOCK_SECONDS]
            if len(self._wrong) >= _WRONG_CODES:
                raise Locked(_LOCK_SECONDS - (now - self._wrong[0]))
            found = self._use(self._code_digest(code[:40]), CODE, cookie)
            if found is None:
                self._wrong.append(now)
            return found

    def _use(self, digest: str, kind: str, cookie: str) -> SignedIn | None:
        path = os.path.join(self._folder, _LINKS, digest)
        document = _read(path)
        if not document or document["kind"] != kind:
            return None
        try:
            os.unlink(path)  # of two that use it at once, one succeeds
        except OSError:
            return None
        return self._sign_in(str(document["person"]), cookie) if document["until"] > self._wall() else None

    def _sign_in(self, person: str, cookie: str) -> SignedIn:
        key = secrets.token_hex(32)
        known = self.find_browser(cookie) if cookie else None
        if known is None or known.person != person:
            cookie = secrets.token_urlsafe(32)
            known = Browser(id=_digest(cookie), person=person, keys=())
        browser = Browser(id=known.id, person=person, keys=(*known.keys, key)[-_MOST_KEYS:])
        document = {"person": person, "keys": list(browser.keys), "at": self._wall()}
        write_private(self._browser_path(browser.id), json.dumps(document))
        return SignedIn(cookie=cookie, key=key, browser=browser)

    # ------------------------------------------------------------------------------------------- browsers

    def find_browser(self, cookie: str) -> Browser | None:
        """Return the browser that has this cookie; None if it has not signed in, or too long ago."""
        if not cookie or len(cookie) > 200:
            return None
        browser = _digest(cookie)
        path = self._browser_path(browser)
        document = _read(path)
        if not document or self._wall() - _age_mark(path) > BROWSER_SECONDS:
            return None
        return Browser(id=browser, person=str(document["person"]), keys=tuple(document["keys"]))

    def note_use(self, browser: Browser) -> None:
        """Record that a browser is in use now."""
        try:
            os.utime(self._browser_path(browser.id), (self._wall(), self._wall()))
        except OSError:
            return  # it was signed out meanwhile

    def sign_out(self, browser: Browser) -> None:
        """Forget a browser with all its tabs."""
        _remove(self._browser_path(browser.id))

    def sign_all_out(self) -> None:
        """Forget all browsers and links."""
        for name in (_LINKS, _BROWSERS):
            for entry in os.scandir(os.path.join(self._folder, name)):
                _remove(entry.path)

    def remove_old(self) -> None:
        """Remove links that are too old, and browsers that have not come back."""
        for name, seconds in ((_LINKS, LINK_SECONDS), (_BROWSERS, BROWSER_SECONDS)):
            for entry in os.scandir(os.path.join(self._folder, name)):
                if self._wall() - _age_mark(entry.path) > seconds:
                    _remove(entry.path)

    def idle_seconds(self) -> float:
        """Return for how long no browser has used the page."""
        used = [_age_mark(entry.path) for entry in os.scandir(os.path.join(self._folder, _BROWSERS))]
        return self._wall() - max(used, default=0.0)

    def _browser_path(self, browser: str) -> str:
        return os.path.join(self._folder, _BROWSERS, browser)

    # ----------------------------------------------------------------------------------------- signatures

    def csrf_token(self, browser: Browser) -> str:
        """Return the token that pages of this browser carry, and that each action repeats."""
        return hmac.new(self._secret, f"csrf {browser.id}".encode(), hashlib.sha256).hexdigest()

    def is_csrf_token(self, browser: Browser, token: str) -> bool:
        """Return whether a token is that of this browser's pages."""
        return hmac.compare_digest(self.csrf_token(browser).encode(), token.encode("utf-8", "replace"))

    def check_signature(
        self, browser: Browser, method: str, target: str, body: bytes, signature: str
    ) -> bool:
        """Return whether a tab of this browser has signed this request just now; a signature counts once.

        It has the form `milliseconds.nonce.digest`. The digest is HMAC-SHA256, under the tab's key, of the
        method, the path with its query, the milliseconds, the nonce and the body, each on a line.
        """
        sent_at, _, rest = signature[:300].partition(".")
        nonce, _, digest = rest.partition(".")
        if not (sent_at.isdecimal() and nonce and len(nonce) <= 64 and nonce.isalnum()):
            return False
        if abs(int(sent_at) / 1000 - self._wall()) > _SKEW_SECONDS:
            return False
        message = f"{method}\n{target}\n{sent_at}\n{nonce}\n".encode() + body
        made = [hmac.new(key.encode(), message, hashlib.sha256).hexdigest() for key in browser.keys]
        given = digest.encode("utf-8", "replace")
        if not any(hmac.compare_digest(one.encode(), given) for one in made):  # a list: no early end
            return False
        with self._guard:
            now = self._wall()
            self._seen = {one: at for one, at in self._seen.items() if now - at < 2 * _SKEW_SECONDS}
            if nonce in self._seen:
                return False
            self._seen[nonce] = now
        return True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _read(path: str) -> Mapping[str, Any]:
    try:
        return json.loads(read_regular(path, _MOST_BYTES))
    except (OSError, ValueError):
        return {}


def _age_mark(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
