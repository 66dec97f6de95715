"""Sum up what the doctor found: problems with their fix, what is not enforced, and what held when tried."""

from __future__ import annotations

from landlane.clients.model import CLIENTS
from landlane.doctor.try_git_hooks import NO_REMOTE
from landlane.setup.install_git_hooks import COMMITS, PUSHES, TARGET
from landlane.units import join_words
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.doctor.check import Check


_WAYS = {"edits": "edits", "shell": "shell writes", "subagents": "subagents"}
_GIT_HOOKS = {COMMITS: "commits", PUSHES: "pushes", TARGET: "moves of the target branch"}
_ALWAYS_ADVISORY = "guards"  # a limit of every installation, shown only in full lists


@value
class Finding:
    """Checks with the same result, which is shown once."""

    names: tuple[str, ...]
    found: str
    hint: str

    @property
    def subject(self) -> str:
        """What the finding is about: a check, or a client if several of its checks agree."""
        return self.names[0] if len(self.names) == 1 else self.names[0].partition(":")[0]


def group(checks: Iterable[Check]) -> list[Finding]:
    """Return the checks, with those of one subject that say the same in one finding."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for check in checks:
        key = (check.name.partition(":")[0], check.found, check.hint)
        names.setdefault(key, []).append(check.name)
    return [Finding(names=tuple(rows), found=found, hint=hint) for (_, found, hint), rows in names.items()]


def limits(checks: Sequence[Check]) -> list[Check]:
    """Return the checks that passed although nothing enforces what they are about."""
    return [
        check for check in checks if check.is_ok and not check.is_enforced and check.name != _ALWAYS_ADVISORY
    ]


def summarize(checks: Sequence[Check]) -> dict[str, str]:
    """Return one line each about clients, git hooks, the sandbox, the store and absent extras."""
    known = {check.name: check for check in checks}
    lines = {"clients": _clients(checks), "git": _git_hooks(known)}
    if "sandbox" in known:
        lines["sandbox"] = known["sandbox"].found
    if "store" in known:
        journal = f"; journal {known['journal'].found}" if "journal" in known else ""
        lines["store"] = known["store"].found + journal
    if "extras" in known and known["extras"].hint:
        lines["extras"] = f"{known['extras'].found} ({known['extras'].hint})"
    return {topic: line for topic, line in lines.items() if line}


def _clients(checks: Sequence[Check]) -> str:
    held: dict[str, list[str]] = {}
    for check in checks:
        client, colon, way = check.name.partition(": ")
        if colon and client in CLIENTS and way in _WAYS:
            held.setdefault(CLIENTS[client].title, []).extend([_WAYS[way]] if check.is_enforced else [])
    titles: dict[str, list[str]] = {}
    for title, ways in held.items():
        text = f"{join_words(ways)} were refused when tried" if ways else "not protected"
        titles.setdefault(text, []).append(title)
    lines = [f"{join_words(names)}: {text}" for text, names in titles.items()]
    lines += [check.found for check in checks if check.name == "clients"]
    return "; ".join(lines)


def _git_hooks(known: dict[str, Check]) -> str:
    names = {name: text for name, text in _GIT_HOOKS.items() if name in known}
    refused = [text for name, text in names.items() if "was refused" in known[name].found]
    without_remote = [text for name, text in names.items() if NO_REMOTE in known[name].found]
    others = [text for text in names.values() if text not in (*refused, *without_remote)]
    if not refused:
        return "commits and pushes are not guarded" if others else ""
    rest = f"; not guarded: {join_words(others)}" if others else ""
    rest += f"; {NO_REMOTE}" if without_remote else ""
    return f"{join_words(refused)} were refused when tried{rest}"
