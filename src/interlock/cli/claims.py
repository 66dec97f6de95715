"""The commands about claims: claim, renew, release, check, claims, who."""

from __future__ import annotations

from interlock.cli.numbers import read_number
from interlock.clock import parse_duration
from interlock.domain.claims import EXCLUSIVE, SHARED, Request, check_pattern_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from interlock.cli.main import Desk
    from interlock.domain.claims import Refused
    from interlock.domain.patterns import Pattern


def claim(
    desk: Desk,
    patterns: tuple[str, ...],
    ttl: str,
    wait: str,
    partial: bool,
    shared: bool,
    literal: bool,
    task: str,
    note: str,
) -> int:
    """Take claims and show them, or show who is in the way."""
    from interlock.operations.claims import make_request  # noqa: PLC0415

    house = desk.house
    request = make_request(
        house.context,
        _patterns(desk, patterns, literal),
        mode=SHARED if shared else EXCLUSIVE,
        ttl_ms=parse_duration(ttl, what="--ttl") if ttl else None,
        task=task,
        note=note,
        is_partial=partial,
    )
    wait_ms = parse_duration(wait, what="--wait")
    session = desk.session()
    outcome = _take(desk, session, request, wait_ms)
    house.settle()
    from interlock.views.claims import outcome_json  # noqa: PLC0415

    answer, code = outcome_json(outcome, house.store)
    if code and not desk.terminal.is_json:
        _complain(desk, answer)
    else:
        desk.terminal.answer(answer, _granted_text(answer))
    return code


def _take(desk: Desk, session: Any, request: Request, wait_ms: int) -> Any:
    if wait_ms <= 0:
        from interlock.operations.claims import take  # noqa: PLC0415

        return take(desk.house.context, session, request)
    from interlock.operations.waiting import take_or_wait  # noqa: PLC0415

    def on_wait(refused: Refused) -> None:
        first = refused.refused[0]
        desk.terminal.note(f"waiting for {first.holder}, who holds {first.held} …")

    return take_or_wait(desk.house.context, session, request, wait_ms, on_wait)


def _patterns(desk: Desk, texts: tuple[str, ...], is_literal: bool) -> tuple[Pattern, ...]:
    check_pattern_count(len(texts))
    return tuple(desk.house.context.repository.pattern(text, is_literal=is_literal) for text in texts)


def _granted_text(answer: dict[str, Any]) -> str:
    lines = [
        f"granted {item['pattern']}  ({item['mode']}, token {item['token']}, until {item['until']})"
        for item in answer["granted"]
    ]
    lines += [f"refused {item['pattern']}  {_in_the_way(item)}" for item in answer["refused"]]
    return "\n".join(lines)


def _complain(desk: Desk, answer: dict[str, Any]) -> None:
    desk.terminal.complain(answer["message"], "", answer["code"])
    for item in answer["refused"]:
        desk.terminal.note(f"  {item['pattern']}: {_in_the_way(item)}")
    desk.terminal.note(f"hint: {answer['hint']}")


def _in_the_way(item: dict[str, Any]) -> str:
    verb = "waits for" if item["waiting"] else "holds"
    task = f", task {item['task']}" if item["task"] else ""
    note = f", “{item['note']}”" if item["note"] else ""
    return f"{item['holder']} {verb} {item['held']} for {item['age']}{task}{note}, until {item['until']}"


def renew(desk: Desk, patterns: tuple[str, ...], literal: bool) -> int:
    """Renew leases and show until when."""
    from interlock.operations.held import renew as renew_claims  # noqa: PLC0415
    from interlock.views.claims import claim_json  # noqa: PLC0415

    house = desk.house
    wanted = _patterns(desk, patterns, literal) if patterns else None
    taken = renew_claims(house.context, desk.session(), wanted)
    house.settle()
    claims = [claim_json(item, house.store) for item in taken.granted]
    text = "\n".join(f"renewed {item['pattern']}  (token {item['token']}, until {item['until']})" for item in claims)
    answer = {"ok": True, "renewed": [item["pattern"] for item in claims], "claims": claims}
    desk.terminal.answer(answer, text or "nothing is held")
    return 0


def release(
    desk: Desk, patterns: tuple[str, ...], all: bool, commit: str, token: str, literal: bool  # noqa: A002
) -> int:
    """Release claims and show which."""
    from interlock.errors import Malformed  # noqa: PLC0415
    from interlock.operations.held import release as release_claims  # noqa: PLC0415

    if bool(patterns) == all:
        raise Malformed(
            "name what to release, or say --all",
            code="NOTHING_NAMED" if not patterns else "BOTH_NAMED",
            hint="interlock release src/api.py, or interlock release --all",
        )
    house = desk.house
    wanted = None if all else _patterns(desk, patterns, literal)
    commit_id = house.context.repository.commit_id(commit) if commit else ""
    released = release_claims(
        house.context, desk.session(), wanted, commit=commit_id, token=read_number(token, "--token")
    )
    house.settle()
    text = "\n".join(f"released {pattern}" for pattern in released) or "nothing was held"
    desk.terminal.answer({"ok": True, "released": list(released), "commit": commit_id or None}, text)
    return 0


_STANDINGS = {
    "held": (0, "", "is yours to change"),
    "free": (0, "", "never needs a claim"),
    "unclaimed": (0, "", "is held by nobody"),
    "other": (3, "CLAIM_HELD", "is held by another session"),
    "required": (6, "CLAIM_REQUIRED", "must be claimed before it is changed"),
}


def check(desk: Desk, paths: tuple[str, ...], token: str) -> int:
    """Tell for each path whether this session may change it now."""
    from interlock.operations.held import check as check_path  # noqa: PLC0415
    from interlock.views.claims import claim_json  # noqa: PLC0415

    house = desk.house
    session = desk.known_session()
    number = read_number(token, "--token")
    found = [check_path(house.context, session, one, number) for one in _patterns(desk, paths, True)]
    rows = [
        {
            "path": one.path,
            "state": one.state,
            "allowed": _STANDINGS[one.state][0] == 0,
            "claim": claim_json(one.claim, house.store) if one.claim else None,
        }
        for one in found
    ]
    worst = max(found, key=lambda one: _STANDINGS[one.state][0])
    code, name, words = _STANDINGS[worst.state]
    answer: dict[str, Any] = {"ok": code == 0, "paths": rows}
    if code:
        claim_row = rows[found.index(worst)]["claim"]
        holder = {"holder": claim_row["holder"], "until": claim_row["until"]} if claim_row else {}
        hint = f"interlock claim {worst.path}" + (" --wait 10m" if code == 3 else "")
        answer |= {"code": name, "message": f"{worst.path} {words}", "hint": hint, **holder}
    desk.terminal.answer(answer, "\n".join(f"{row['path']} {_STANDINGS[row['state']][2]}" for row in rows))
    return code


def claims(desk: Desk, paths: tuple[str, ...]) -> int:
    """List live claims."""
    from interlock.operations.held import list_claims  # noqa: PLC0415
    from interlock.views.claims import claim_json  # noqa: PLC0415

    house = desk.house
    wanted = _patterns(desk, paths, False)
    rows = [claim_json(item, house.store) for item in list_claims(house.context, wanted)]
    columns = ["pattern", "holder", "mode", "token", "until", "task", "note"]
    cells = [[str(row[column] or "") for column in columns] for row in rows]
    title = f"{len(rows)} live claim{'' if len(rows) == 1 else 's'}"
    desk.terminal.answer({"ok": True, "claims": rows}, desk.terminal.table(title, columns, cells))
    return 0


def who(desk: Desk, path: str) -> int:
    """Tell who holds a path and who last changed it."""
    from interlock.operations.held import list_claims  # noqa: PLC0415
    from interlock.operations.journal import last_word_on  # noqa: PLC0415
    from interlock.views.claims import claim_json  # noqa: PLC0415
    from interlock.views.journal import entry_json  # noqa: PLC0415

    house = desk.house
    pattern = house.context.repository.pattern(path, is_literal=True)
    rows = [claim_json(item, house.store) for item in list_claims(house.context, (pattern,))]
    entry = last_word_on(house.context, pattern)
    change = house.context.repository.last_change(pattern.branches[0].key)
    lines = [f"{row['holder']} holds {row['pattern']} until {row['until']}" for row in rows] or ["nobody holds it"]
    if entry is not None:
        last = entry_json(entry)
        lines.append(f"last in the journal: {last['kind']} by {last['agent']} at {last['at']}")
    if change:
        by = change["agent"] or change["author"]
        lines.append(f"last changed by {by} at {change['at']}: {change['commit'][:12]} {change['subject']}")
    answer = {
        "ok": True,
        "path": pattern.text,
        "claims": rows,
        "last_entry": entry_json(entry) if entry else None,
        "last_change": change or None,
    }
    desk.terminal.answer(answer, "\n".join(lines))
    return 0
