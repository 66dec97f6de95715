"""The commands that read claims: check, claims, who."""

from __future__ import annotations

from datetime import datetime
from shlex import quote

from landlane.claims.check import PathState
from landlane.claims.check import check as check_path
from landlane.claims.describe import (
    describe_holder,
    end_text,
    held_text,
    list_holdings,
    reason_text,
)
from landlane.claims.model import ClaimMode, check_pattern_count
from landlane.claims.to_json import claim_json, holding_json
from landlane.cli.arguments import read_number
from landlane.cli.claims import read_patterns
from landlane.cli.table import empty_text
from landlane.cli.terminal import in_one_line
from landlane.journal.read import find_last_claim_entry
from landlane.journal.to_json import entry_json
from landlane.patterns.pattern import LITERAL, has_special, reads_as_name
from landlane.units import rough_duration, time_ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.claims.check import PathCheck
    from landlane.claims.model import Holding
    from landlane.cli.command import CommandCall
    from landlane.patterns.pattern import Pattern
    from landlane.store.interface import Store


# For each result of a check that is a refusal: the exit code, the code and the text.
_REFUSED = {
    PathState.OTHER: (3, "CLAIM_HELD", "is claimed by another session"),
    PathState.REQUIRED: (6, "CLAIM_REQUIRED", "is not claimed, and [claims] required lists it"),
}
_COLUMNS = ("path", "holder", "for", "held", "lease ends", "waiting", "token")


def check(call: CommandCall, paths: tuple[str, ...], token: str, literal: bool) -> int:
    """Show for each path whether this session may change it now."""
    repo = call.repo
    number = read_number(token, "--token")
    wanted = _read_paths(call, paths, literal, "check")
    session = call.known_session()
    checked = [check_path(repo, session, path, number) for path in wanted]
    who = session.agent if session is not None else call.caller_name()
    items: list[dict[str, Any]] = [
        {
            "path": one.path,
            "state": one.state,
            "allowed": one.state not in _REFUSED,
            "claim": claim_json(one.claim, repo.store) if one.claim else None,
            "message": _checked_text(call, one, typed, who),
        }
        for one, typed in zip(checked, paths, strict=True)
    ]
    answer: dict[str, Any] = {"ok": True, "paths": items}
    worst = max(range(len(items)), key=lambda index: _REFUSED.get(checked[index].state, (0,))[0])
    lines = [f"{'✓' if item['allowed'] else '✗'} {in_one_line(item['message'])}" for item in items]
    if items[worst]["allowed"]:
        return call.terminal.answer(answer, "\n".join(lines))
    code, name, _ = _REFUSED[checked[worst].state]
    holder = {key: items[worst]["claim"][key] for key in ("holder", "until")} if code == 3 else {}
    hint = _claim_command(call, paths[worst], is_waiting=code == 3)
    answer |= {"ok": False, "code": name, "message": items[worst]["message"], "hint": hint, **holder}
    return call.terminal.refuse(answer, code, [f"  {line}" for line in lines] if len(lines) > 1 else ())


def _checked_text(call: CommandCall, one: PathCheck, path: str, who: str) -> str:
    if one.claim is not None and one.state == PathState.OTHER:
        return describe_holder(call.repo, path, one.claim, one.path)
    if one.state == PathState.REQUIRED:
        return f"{path} {_REFUSED[one.state][2]}"
    reason = {PathState.FREE: " (it never needs a claim)", PathState.UNCLAIMED: " (it is not claimed)"}
    return f"{who} may change {path}{reason.get(one.state, '')}"


def _claim_command(call: CommandCall, path: str, *, is_waiting: bool) -> str:
    """Return the claim command to run next, with the path as the caller typed it."""
    literal = " --literal" if has_special(path) else ""
    command = call.terminal.as_typed(f"landlane claim {quote(path)}{literal}")
    return f"wait in line: {command} --wait" if is_waiting else command


def claims(call: CommandCall, paths: tuple[str, ...]) -> int:
    """List live claims, with who waits for them."""
    repo = call.repo
    call.renew_session()
    holdings = list_holdings(repo, read_patterns(call, paths, False, "claims"))
    now = repo.store.view(lambda snapshot: snapshot.now)
    items = [holding_json(holding, repo.store, now) for holding in holdings]
    rows = [_row(same, repo.store, now, is_verbose=call.terminal.is_verbose) for same in _grouped(holdings)]
    table = call.terminal.table("", _COLUMNS, rows, cut="FOR")
    return call.terminal.answer({"ok": True, "claims": items}, table or empty_text("claim"))


def _grouped(holdings: Sequence[Holding]) -> list[list[Holding]]:
    """Return the claims by row: the shared claims on one pattern are shown together."""
    rows: dict[object, list[Holding]] = {}
    for holding in holdings:
        claim = holding.claim
        rows.setdefault(claim.pattern if claim.mode is ClaimMode.SHARED else claim.token, []).append(holding)
    return list(rows.values())


def _row(same: Sequence[Holding], store: Store, now: int, *, is_verbose: bool) -> list[str]:
    first, last = same[0], max(same, key=lambda holding: holding.claim.until)
    shared = " (shared)" if first.claim.mode is ClaimMode.SHARED else ""
    reasons = dict.fromkeys(reason_text(holding) for holding in same)
    return [
        first.claim.pattern + shared,
        ", ".join(dict.fromkeys(holding.claim.agent for holding in same)),
        ", ".join(reason for reason in reasons if reason),
        rough_duration(max(now - first.claim.granted_at, 0)),
        end_text(last, now),
        ", ".join(dict.fromkeys(agent for holding in same for agent in holding.waiting)),
        ", ".join(str(holding.claim.token) for holding in same) if is_verbose else "",
    ]


def who(call: CommandCall, path: str) -> int:
    """Show who holds a path, who waits for it and who last changed it."""
    repo = call.repo
    call.renew_session()
    (pattern,) = _read_paths(call, (path,), command="who")
    holdings = list_holdings(repo, (pattern,))
    now = repo.store.view(lambda snapshot: snapshot.now)
    entry = find_last_claim_entry(repo, pattern)
    change: dict[str, Any] = repo.git.last_change(pattern.text) if pattern.kind is LITERAL else {}
    lines = [in_one_line(path), *(_held_line(holding, pattern, repo.store, now) for holding in holdings)]
    if not holdings:
        lines.append(_fact("not claimed", ""))
    waiting = dict.fromkeys(agent for holding in holdings for agent in holding.waiting)
    if waiting:
        lines.append(_fact("waiting", ", ".join(waiting)))
    if change:
        lines.append(_fact("last change", _change_text(change, call.wall_now())))
    answer = {"ok": True, "path": pattern.text}
    answer |= {"claims": [holding_json(holding, repo.store, now) for holding in holdings]}
    answer |= {"waiting": list(waiting), "last_entry": entry_json(entry) if entry is not None else None}
    return call.terminal.answer({**answer, "last_change": change or None}, "\n".join(lines))


def _fact(name: str, text: str) -> str:
    return f"  {name:<11}  {in_one_line(text)}".rstrip()


def _held_line(holding: Holding, pattern: Pattern, store: Store, now: int) -> str:
    """Return the usual sentence about a claim without its path."""
    text = held_text("", holding, store, now, pattern.text)
    before, _, rest = text.partition(" is ")
    kind, _, rest = rest.partition(" ")
    below = before.removeprefix(" overlaps ").removesuffix(", which")
    return _fact(kind, f"{below} {rest}".lstrip())


def _change_text(change: dict[str, Any], now: int) -> str:
    at = round(datetime.fromisoformat(change["at"]).timestamp() * 1000)
    by = [change["task"], change["agent"] or change["author"], time_ago(at, now)]
    return f"{change['commit'][:8]} {change['subject']} ({', '.join(filter(None, by))})"


def _read_paths(
    call: CommandCall, texts: tuple[str, ...], is_literal: bool = False, command: str = ""
) -> tuple[Pattern, ...]:
    """Return literal path patterns; no character is special, and `deploy:prod` is a path here."""
    check_pattern_count(len(texts))
    return tuple(
        read_patterns(call, (text,), is_literal or not reads_as_name(text), command)[0] for text in texts
    )
