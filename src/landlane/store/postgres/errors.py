"""PostgreSQL's errors in words a person can act on, never with a password in them."""

from __future__ import annotations

from landlane.errors import LandlaneError, StoreError, StoreTransient

TYPE_CHECKING = False
if TYPE_CHECKING:
    import psycopg

# The last but one: it was frozen in its transaction for too long, which was taken back.
_RETRIABLE = ("40001", "40P01", "57P01", "57P02", "57P03", "25P03", "08")
_WORDS: dict[str, tuple[str, str, str]] = {
    "25006": ("STORE_READONLY", "takes no changes: it is read-only", "point at the primary server"),
    "28": ("STORE_FORBIDDEN", "refused this user or password", "check the user and password in the URL"),
    "3D000": ("STORE_UNOPENABLE", "does not exist", "create the database first: createdb NAME"),
    "42501": (
        "STORE_FORBIDDEN",
        "refused this user",
        "grant it the right to create and use the schema landlane",
    ),
    "53100": ("STORE_FULL", "has no room: its disk is full", "free some space; nothing was changed"),
    "53300": (
        "STORE_CROWDED",
        "has no connection left",
        "raise max_connections, or use a pooler in session mode",
    ),
}


def is_retriable(error: psycopg.Error) -> bool:
    """Whether running the same transaction again may help."""
    state = error.sqlstate or ""
    return state.startswith(_RETRIABLE) or (not state and error.__class__.__name__ == "OperationalError")


def translate(error: psycopg.Error, url: str) -> LandlaneError:
    """Our error for one of PostgreSQL's."""
    state = error.sqlstate or _state_in_words(error)
    place = without_password(url)
    if state == "55P03":
        busy = StoreTransient(
            f"the store {place} stayed locked by another program",
            code="STORE_BUSY",
            hint="try again; if it lasts, look into pg_stat_activity for who holds it",
        )
        busy.exit_code = 5
        return busy
    for start in (state, state[:2]):
        if start in _WORDS:
            code, words, hint = _WORDS[start]
            return StoreError(f"the store {place} {words}", code=code, hint=hint)
    # The driver repeats an address that it cannot read, with all that is in it.
    told = str(error).strip().splitlines()[0].replace(url, place)[:200] if str(error).strip() else "no answer"
    if not state or state.startswith(("08", "57P")):
        return StoreTransient(
            f"the store {place} cannot be reached: {told}",
            code="STORE_UNREACHABLE",
            hint="check that the server runs and that the URL names it",
        )
    return StoreError(
        f"the store {place} failed: {told} ({state})", code="STORE_FAILED", hint="run `landlane doctor`"
    )


def _state_in_words(error: psycopg.Error) -> str:
    """What kept a connection from being made: of that the driver knows the server's words only."""
    words = str(error)
    if 'database "' in words and '" does not exist' in words:
        return "3D000"
    return "28P01" if "authentication failed" in words else ""


def without_password(url: str) -> str:
    """A database URL that may be shown."""
    scheme, _, rest = url.partition("://")
    account, at, place = rest.rpartition("@")
    if at and ":" in account:
        account = account.partition(":")[0] + ":…"
    place, question, query = place.partition("?")
    shown = "&".join(part for part in query.split("&") if part and not part.startswith("password="))
    return f"{scheme}://{account}{at}{place}{question if shown else ''}{shown}"
