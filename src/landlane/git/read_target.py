"""Ask git which branch is the target, and for the settings and the rules on it."""

from __future__ import annotations

from landlane.errors import RepositoryError, SettingsError
from landlane.git.run import run_in, try_git_output
from landlane.git.target import find_target, target_tip
from landlane.settings.load import merge_documents, parse_text, read_local
from landlane.settings.locate import locate_error
from landlane.settings.model import FILE_NAME, LOCAL_NAME, Settings
from landlane.settings.readers import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.git.target import TargetBranch

    Document = dict[str, Any]

_MOST_BYTES = 131_073  # of the rules: one more than they may have
_MOST_VERSIONS = 50  # of settings, in the search for the last ones that can be parsed


def read_target(
    home: Checkout,
    local_file: str,
    known: Document | None,
    marks_of: Callable[[Sequence[str]], tuple[object, ...]],
    *,
    rules_file: str,
) -> Document:
    """Return the settings and the rules of the target branch in the form in which they are cached.

    The usual branch may name another target: then the settings there count, if there are any. `marks_of` is
    asked before the refs are read, so that a change in between is noticed by the next reading.

    Raises:
        SettingsError: the settings of this clone cannot be used.
    """
    local, plain = _read_local(local_file)
    found: Document = {
        "plain": plain,
        "local": local,
        "document": {},
        "is_committed": False,
        "branch": "",
        "tip": "",
        "blob": "",
        "trouble": "",
        "refs": [],
        "rules": {},
    }
    marks = marks_of(())
    usual = _find_target(home, found["plain"])
    if usual is not None:
        found["refs"] = _refs_of(usual)
        marks = marks_of(found["refs"])
        found |= _read_branch(home, usual, local, known)
        named = _find_target(home, found["plain"]) if found["is_committed"] else None
        if named is not None and named != usual:
            found["refs"] += [ref for ref in _refs_of(named) if ref not in found["refs"]]
            marks = marks_of(found["refs"])
            there = _read_branch(home, named, local, known)
            found |= there if there["is_committed"] else {}
    name = rules_file or str(found["plain"].get("rules", {}).get("file", "")) or Settings().rules.file
    rules = read_blobs(home, found["tip"], [name]).get(name) if found["tip"] else None
    found["rules_file"] = name
    found["rules"] = (len(rules[1]), rules[1][:_MOST_BYTES]) if rules is not None else None
    return {**found, "marks": marks}


def _find_target(home: Checkout, plain: Document) -> TargetBranch | None:
    try:
        return find_target(home, Settings.from_plain(plain))
    except RepositoryError:
        return None  # there is no commit yet, or no such branch


def _refs_of(target: TargetBranch) -> list[str]:
    return [ref for ref in (target.ref, target.remote_ref) if ref]


def _read_branch(home: Checkout, target: TargetBranch, local: Document, known: Document | None) -> Document:
    """Return what a branch holds; without settings on it, only its tip."""
    tip = target_tip(home, target)
    blob, content = read_blobs(home, tip, [FILE_NAME]).get(FILE_NAME, ("", b"")) if tip else ("", b"")
    found: Document = {"branch": target.branch, "tip": tip, "blob": blob, "is_committed": bool(blob)}
    if not blob:
        return found
    if known is not None and known["blob"] == blob and known["local"] == local:
        return found | {name: known[name] for name in ("document", "plain", "trouble")}
    document, trouble = parse_good(home, tip, content)
    try:
        plain = read_plain(merge_documents(document, local))
    except SettingsError as error:  # each of them is valid, but not both together
        plain, trouble = read_plain(document), f"{LOCAL_NAME} does not fit to it: {error.message}"
    return found | {"document": document, "plain": plain, "trouble": trouble}


def _read_local(path: str) -> tuple[Document, Document]:
    """Return the settings of this clone, as they are and in plain form."""
    document = read_local(path)
    try:
        return document, read_plain(document)
    except SettingsError as error:
        with open(path, encoding="utf-8") as file:
            raise locate_error(error, LOCAL_NAME, file.read()) or error from None


def parse_good(home: Checkout, tip: str, content: bytes) -> tuple[Document, str]:
    """Return the settings of a commit, or those before them that can be used; and why, if it is those."""
    try:
        return parse_settings_file(content), ""
    except SettingsError as error:
        trouble = error.message
    words = ("log", f"--max-count={_MOST_VERSIONS}", "--format=%H", tip, "--", FILE_NAME)
    for commit in try_git_output(home, *words).split()[1:]:
        blob = read_blobs(home, commit, [FILE_NAME]).get(FILE_NAME)
        try:
            if blob is not None:
                return parse_settings_file(blob[1]), trouble
        except SettingsError:
            continue
    return {}, trouble


def parse_settings_file(content: bytes) -> Document:
    """Return the document of a settings file.

    Raises:
        SettingsError: it is not TOML, or holds an unknown or unusable key.
    """
    document = parse_text(FILE_NAME, content)
    try:
        read_plain(document)
    except SettingsError as error:
        raise locate_error(error, FILE_NAME, content.decode()) or error from None
    return document


def read_blobs(home: Checkout, commit: str, names: Iterable[str]) -> dict[str, tuple[str, bytes]]:
    """Return the ids and contents of files in a commit, without missing ones; links in it are followed."""
    wanted = [name for name in names if "\n" not in name]
    asked = "".join(f"{commit}:{name}\n" for name in wanted)
    result = run_in(home, "cat-file", "--batch", "--follow-symlinks", stdin=asked.encode())
    output = result.stdout.encode("utf-8", "surrogateescape")
    found: dict[str, tuple[str, bytes]] = {}
    for name in wanted:
        header, _, output = output.partition(b"\n")
        words = header.split(b" ")
        if len(words) == 3 and words[2].isdigit():
            size = int(words[2])
            if words[1] == b"blob":
                found[name] = (words[0].decode(), output[:size])
            output = output[size + 1 :]
        elif len(words) == 2 and words[1].isdigit():  # a link that leads out of the commit, or nowhere
            output = output[int(words[1]) + 1 :]
    return found
