"""Show the memory of a project at the start of a session: the files of `[memory]`, each cut to size."""

from __future__ import annotations

import os

from landlane.errors import LandlaneError
from landlane.patterns.pattern import covers_alternative, parse
from landlane.settings.named_files import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.repository import Repository

_MOST_FILES = 20
_MOST_LOOKED_AT = 5000
_MAGIC = frozenset("*?[")


def describe_memory(repo: Repository, room: int, *, is_short: bool) -> str:
    """Return the memory files, as many as there is room for; with `is_short` only their paths."""
    wanted = repo.settings.memory.files
    if not wanted:
        return ""
    paths, missing = _find(repo.checkout.root, wanted)
    if is_short:
        shown = ", ".join(paths[:_MOST_FILES])
        return f"Memory of this project, read it again when in doubt: {shown}." if shown else ""
    parts: list[str] = []
    for at, path in enumerate(paths):
        if room <= 0 or at >= _MOST_FILES:
            parts.append(f"(not shown, read them yourself: {', '.join(paths[at : at + _MOST_FILES])})")
            break
        parts.append(_read(repo, path, min(room, repo.settings.memory.max_bytes)))
        room -= len(parts[-1])
    parts += [f"({name}: there is no such memory file)" for name in missing]
    return "Memory of this project. Read it before you act:\n\n" + "\n\n".join(parts)


def _read(repo: Repository, path: str, most_bytes: int) -> str:
    try:
        found = read_text(repo.checkout.root, path, most_bytes)
    except LandlaneError as error:
        return f"({error.message})"
    if found is None:
        return f"({path}: there is no such memory file)"
    note = f"\n… ({path} has {found.size:,} bytes; read the rest there)" if found.is_cut else ""
    return f"--- {path}\n{found.text.strip() or '(empty)'}{note}"


def _find(root: str, wanted: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the files that the settings name, in their order and each once, and names without a file."""
    paths: dict[str, None] = {}
    missing: list[str] = []
    for name in wanted:
        if _MAGIC.isdisjoint(name):
            paths[name] = None
            continue
        try:
            found = sorted(_matching(root, name))
        except LandlaneError:  # it leads out of the repository, or is not a valid glob
            found = []
        paths.update(dict.fromkeys(found))
        if not found:
            missing.append(name)
    return list(paths), missing


def _matching(root: str, pattern: str) -> Iterator[str]:
    """Yield the plain files below `root` that a glob matches, without following links out of it."""
    alternatives = parse(pattern).alternatives
    looked_at = 0
    # Only where the glob can match: below the folders that come before its first special character.
    fixed = pattern.split("/")
    start = "/".join(fixed[: next((at for at, part in enumerate(fixed) if _MAGIC & set(part)), 0)])
    for folder, names, files in os.walk(os.path.join(root, start)):
        names[:] = sorted(name for name in names if name != ".git")
        for file in sorted(files):
            looked_at += 1
            if looked_at > _MOST_LOOKED_AT:
                return
            path = os.path.relpath(os.path.join(folder, file), root)
            try:
                (name,) = parse(path, literal=True).alternatives
            except LandlaneError:
                continue
            if any(covers_alternative(one, name) for one in alternatives):
                yield path
