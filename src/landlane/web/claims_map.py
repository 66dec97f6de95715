"""The claims as a map: folders as frames, claims as cells; folders without claims are only counted."""

from __future__ import annotations

from functools import lru_cache

from landlane.claims.describe import end_text, list_holdings, reason_text
from landlane.errors import LandlaneError
from landlane.git.run import try_git_output
from landlane.git.target import commit_at, find_target
from landlane.sessions.model import SessionKind
from landlane.units import join_words, rough_duration
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.claims.model import Holding
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.web.visit import Visit

MOST_CELLS = 60
_MOST_MATCHES = 60
_UNTIL_DECIDED = (SessionKind.LANDING, SessionKind.GATE, SessionKind.REVIEW, SessionKind.HANDOFF)


@value
class Cell:
    """A claim, or the one claim that several sessions share."""

    id: str
    holder: str
    colour: int
    path: str  # below its folder
    full: str
    left: str
    until: int  # wall-clock time; 0 if an event ends it
    share: float  # of the lease that is left, from 0 to 1
    is_shared: bool
    is_held: bool  # until landed, reviewed or answered
    waiting: str
    reason: str
    task: str
    token: int


@value
class Folder:
    """A folder of the first or second level with its claims."""

    name: str
    files: int | None  # None if unknown
    cells: tuple[Cell, ...]
    folders: tuple[Folder, ...] = ()
    folded: tuple[tuple[str, int, int], ...] = ()  # holder, colour, count: where there are too many cells


@value
class ClaimMap:
    """All claims."""

    folders: tuple[Folder, ...]
    claims: int
    files: int | None
    matches: tuple[str, ...] = ()  # paths that were searched for
    other: tuple[Cell, ...] = ()  # claims on what is not a path, such as deploy:prod


def read_claim_map(visit: Visit, query: str = "") -> ClaimMap:
    """Return the claims by folder; with a query, those whose path or holder has it, and files that match."""
    repo = visit.repo
    now = repo.store.view(lambda snapshot: snapshot.now)
    holdings = list_holdings(repo)
    colours = visit.colours
    cells = [_cell(repo, holding, colours, now) for holding in holdings]
    paths = list_paths(repo)
    wanted = query.strip().lower()
    if wanted:
        cells = [cell for cell in cells if wanted in cell.full.lower() or wanted in cell.holder.lower()]
    counts = _counts(paths) if paths is not None else None
    matches = tuple(path for path in paths or () if wanted in path.lower())[:_MOST_MATCHES] if wanted else ()
    named = [cell for cell in cells if not _is_resource(cell.full)]
    return ClaimMap(
        folders=tuple(_folders(named, counts)),
        claims=len(holdings),
        files=len(paths) if paths is not None else None,
        matches=matches,
        other=tuple(cell for cell in cells if _is_resource(cell.full)),
    )


def _is_resource(pattern: str) -> bool:
    return ":" in pattern.partition("/")[0] and not pattern.startswith(":/")


def _cell(repo: Repository, holding: Holding, colours: Mapping[str, int], now: int) -> Cell:
    claim = holding.claim
    left = max(claim.until - now, 0)
    is_held = holding.kind in _UNTIL_DECIDED
    length = max(claim.until - claim.granted_at, claim.ttl_ms, 1)
    full = claim.pattern.removeprefix("./")
    return Cell(
        id=f"claim-{claim.token}",
        holder=claim.agent,
        colour=colours[claim.agent],
        path=full,
        full=full,
        left=f"until {claim.agent}" if is_held else rough_duration(left),
        until=0 if is_held else repo.store.wall_of(claim.until),
        share=0.0 if is_held else min(left / length, 1.0),
        is_shared=claim.mode == "shared",
        is_held=is_held,
        waiting=_waiting_text(holding.waiting),
        reason=f"{reason_text(holding)} ({end_text(holding, now)})".strip(),
        task=claim.task,
        token=claim.token,
    )


def _waiting_text(names: Sequence[str]) -> str:
    if not names:
        return ""
    rest = f", then {join_words(names[1:])}" if len(names) > 1 else ""
    return f"{len(names)} wait{'s' if len(names) == 1 else ''}: {names[0]}{rest}"


def list_paths(repo: Repository) -> Sequence[str] | None:
    """Return the paths of all files on the target; None without git."""
    if not repo.common_dir:
        return None
    try:
        target = find_target(repo.home, repo.settings)
        tip = commit_at(repo.home, target.remote_ref or target.ref)
    except LandlaneError:
        return None
    return _paths_at(repo.home, tip) if tip else None


@lru_cache(maxsize=2)
def _paths_at(home: Checkout, commit: str) -> tuple[str, ...]:
    listed = try_git_output(home, "ls-tree", "-r", "-z", "--name-only", commit)
    return tuple(path for path in listed.split("\0") if path)


@lru_cache(maxsize=2)
def _counts(paths: Sequence[str]) -> dict[str, int]:
    """Return how many files are below each folder."""
    counts: dict[str, int] = {}
    for path in paths:
        at = path.rfind("/")
        while at > 0:
            folder = path[:at]
            counts[folder] = counts.get(folder, 0) + 1
            at = folder.rfind("/")
        if "/" not in path:
            counts["."] = counts.get(".", 0) + 1
    return counts


def _folders(cells: Sequence[Cell], counts: Mapping[str, int] | None) -> list[Folder]:
    """Return the folders of the first level, those with the most claims first."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        head, slash, _ = cell.full.partition("/")
        groups.setdefault(head if slash and not _is_glob(head) else ".", []).append(cell)
    made = [_folder(name, group, counts) for name, group in groups.items()]
    return sorted(made, key=lambda folder: (-_size(folder), folder.name))


def _size(folder: Folder) -> int:
    return len(folder.cells) + sum(len(one.cells) + 1 for one in folder.folders)


def _is_glob(part: str) -> bool:
    return any(mark in part for mark in "*?[{")


def _folder(name: str, cells: Sequence[Cell], counts: Mapping[str, int] | None) -> Folder:
    files = counts.get(name, 0) if counts is not None else None
    prefix = "" if name == "." else f"{name}/"
    if len(cells) > MOST_CELLS:
        holders: dict[tuple[str, int], int] = {}
        for cell in cells:
            holders[cell.holder, cell.colour] = holders.get((cell.holder, cell.colour), 0) + 1
        folded = tuple((holder, colour, number) for (holder, colour), number in holders.items())
        return Folder(name=f"{name}/", files=files, cells=(), folded=folded)
    below: dict[str, list[Cell]] = {}
    direct: list[Cell] = []
    for cell in cells:
        rest = cell.full.removeprefix(prefix)
        head, slash, _ = rest.partition("/")
        if slash and not _is_glob(head) and name != ".":
            below.setdefault(head, []).append(cell)
        else:
            direct.append(_shown_as(cell, rest))
    inner: list[Folder] = []
    for head, group in below.items():
        if len(group) == 1 and not group[0].full.endswith("**"):
            direct.append(_shown_as(group[0], group[0].full.removeprefix(prefix)))
            continue
        folder = f"{prefix}{head}"
        shown = tuple(_shown_as(cell, cell.full.removeprefix(f"{folder}/")) for cell in group)
        inner.append(
            Folder(name=f"{head}/", files=counts.get(folder, 0) if counts is not None else None, cells=shown)
        )
    return Folder(name=f"{name}/", files=files, cells=tuple(direct), folders=tuple(inner))


def _shown_as(cell: Cell, path: str) -> Cell:
    return replace(cell, path=path)
