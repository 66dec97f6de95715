"""The commands for cost: usage, usage add, usage import, usage list."""

from __future__ import annotations

from landlane.cli.arguments import read_bytes
from landlane.clock import rfc3339
from landlane.errors import Malformed
from landlane.ids import new_uuid
from landlane.stats.calculate import period_of
from landlane.tasks.records import task_titles
from landlane.text import check_text
from landlane.units import count, money, money_limit
from landlane.usage.add import book
from landlane.usage.import_records import import_usage
from landlane.usage.model import (
    UsageEntry,
    add_up,
    add_up_by,
    money_words,
    read_money,
    read_tokens,
    total_words,
)
from landlane.usage.period import DAY_MS, Period, read_instant
from landlane.usage.to_json import dollars, imported_json, total_json, totals_json, usage_json
from landlane.usage.totals import list_usage, totals_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.cli.command import CommandCall


_MOST_TASKS = 3  # in the table; the others are one row
_GROUPS = ("task", "lineage", "agent", "client", "model", "day")
_MOST_BYTES = 256_000_000


def show(call: CommandCall, since: str, until: str, by: str) -> int:
    """Show what was spent: today, or in a period."""
    if by and by not in _GROUPS:
        raise Malformed(f"--by {by[:40]!r} is unknown", code="BAD_GROUP", hint=f"one of {', '.join(_GROUPS)}")
    call.renew_session()
    entries = list_usage(call.repo, _period(call, since, until) or _today(call))
    totals = totals_of(entries)
    answer: dict[str, Any] = {"ok": True, **totals_json(totals), "budgets": _budgets_json(call)}
    groups = _groups(entries, by)
    if by:
        answer["by"] = by
        answer["groups"] = {name: total_json(add_up(group)) for name, group in groups.items()}
    if not entries:
        period = "" if since or until else " today"
        return call.terminal.answer(answer, f"No spending is recorded{period}.")
    rows = [_usage_row(name, group) for name, group in _shown_groups(call, groups, is_by_task=not by)]
    rows.append(_usage_row(*_whole(call, entries, since, until)))
    columns = [by or "task", "attempts", "tokens in", "tokens out", "cost"]
    right = ("ATTEMPTS", "TOKENS IN", "TOKENS OUT")
    return call.terminal.answer(answer, call.terminal.table("", columns, rows, right=right, gap="   "))


def _today(call: CommandCall) -> Period:
    """Return the current day, from midnight UTC."""
    now = call.wall_now()
    return Period(since=now - now % DAY_MS, until=now + 1)


def _groups(entries: Sequence[UsageEntry], by: str) -> dict[str, list[UsageEntry]]:
    """Return the entries by task or by another field, the most expensive group first, unnamed ones last."""
    field = {"": "task", "day": "state"}.get(by, by)
    unnamed = "no task" if field in ("task", "lineage") else "unknown"
    order = add_up_by(entries, lambda entry: str(getattr(entry, field)))
    found: dict[str, list[UsageEntry]] = {
        name or unnamed: [] for name in sorted(order, key=lambda name: not name)
    }
    for entry in entries:
        found[str(getattr(entry, field)) or unnamed].append(entry)
    return found


def _shown_groups(
    call: CommandCall, groups: Mapping[str, list[UsageEntry]], *, is_by_task: bool
) -> list[tuple[str, list[UsageEntry]]]:
    """Return the groups to show: of tasks the most expensive ones with their titles, the others together."""
    if not is_by_task:
        return list(groups.items())
    titles = task_titles(call.repo, groups)
    named = [(f"{task} {titles.get(task, '')}".strip(), group) for task, group in groups.items()]
    if len(named) <= _MOST_TASKS + 1 or call.terminal.is_verbose:
        return named
    others = [entry for _, group in named[_MOST_TASKS:] for entry in group]
    return [*named[:_MOST_TASKS], (f"{len(named) - _MOST_TASKS} other tasks", others)]


def _whole(
    call: CommandCall, entries: list[UsageEntry], since: str, until: str
) -> tuple[str, list[UsageEntry], int | None]:
    """Return the last row: the whole period, and today also the budget of a day."""
    if since or until:
        return "total", entries, None
    return "today (UTC)", entries, call.repo.settings.budgets.day_micros


def _usage_row(name: str, entries: Sequence[UsageEntry], limit: int | None = None) -> list[str]:
    total = add_up(entries)
    cost = money(total.cost_micros, has_unknown=not total.is_known)
    cost += "" if limit is None else f" of {money_limit(limit)}"
    attempts = len({(entry.task, entry.attempt or entry.key) for entry in entries})
    missing = "≥ " if total.unknown_tokens else ""
    tokens = [f"{missing}{number:,}" for number in (total.input_tokens, total.output_tokens)]
    if total.unknown_tokens == total.entries:
        tokens = ["unknown", "unknown"]
    return [name, f"{attempts:,}", *tokens, cost]


def add(
    call: CommandCall,
    task: str,
    key: str,
    cost: str,
    input_tokens: str,
    output_tokens: str,
    model: str,
    client: str,
    agent: str,
    attempt: str,
    at: str,
) -> int:
    """Record usage."""
    for text, what in ((model, "model"), (client, "client"), (agent, "agent")):
        check_text(text, what, 400)
    if not any((task, key, cost, input_tokens, output_tokens, model, client, attempt, at)):
        raise Malformed(
            "there is nothing to record; give a cost, tokens or a task",
            code="NOTHING_TO_RECORD",
            hint="for example: landlane usage add --task T12 --cost 0.42",
        )
    session = call.session()
    booked = book(
        call.repo,
        UsageEntry(
            key=key or f"hand/{new_uuid()}",
            task=task,
            attempt=read_tokens(attempt, "--attempt") or 0,
            agent=agent or session.agent,
            client=client,
            model=model,
            input_tokens=read_tokens(input_tokens, "--input-tokens"),
            output_tokens=read_tokens(output_tokens, "--output-tokens"),
            cost_micros=read_money(cost, "--cost") if cost else None,
            at=read_instant(at, "--at") if at else 0,
        ),
        session,
    )
    entry = booked.entry
    answer = {"ok": True, "usage": usage_json(entry), "is_new": booked.is_new, "differs": booked.differs}
    amount = money_words(entry.cost_micros) if entry.cost_micros is not None else "an unknown cost"
    about = f" for {entry.task}" if entry.task else ""
    text = f"✓ recorded {amount}{about}"
    if not booked.is_new:
        text = f"{amount[:1].upper()}{amount[1:]}{about} was recorded before; nothing was changed"
        text += ", though it comes with another cost now" if booked.differs else ""
    return call.terminal.answer(answer, text, quiet=entry.id)


def read_in(call: CommandCall, file: str) -> int:
    """Import usage records of another tool."""
    text = _read_file(call, file)
    session = call.session()
    done = import_usage(call.repo, session, text)
    lines = [f"booked {done.booked}: {total_words(done.total)}" if done.booked else "booked nothing new"]
    lines += [f"{done.unattributed} of them belong to no task"] if done.unattributed else []
    lines += [f"{done.known} were booked before"] if done.known else []
    lines += (
        [f"{done.differing} of those come with another cost now; nothing was changed"]
        if done.differing
        else []
    )
    if done.unknown_tasks:
        shown = ", ".join(done.unknown_tasks[:5]) + (" …" if len(done.unknown_tasks) > 5 else "")
        lines.append(f"unknown tasks: {shown}")
    return call.terminal.answer({"ok": True, **imported_json(done)}, "\n".join(lines))


def _read_file(call: CommandCall, file: str) -> str:
    try:
        raw = read_bytes(file, _MOST_BYTES + 1, call.cwd)
        if len(raw) > _MOST_BYTES:
            raise Malformed(
                f"{file} is larger than {_MOST_BYTES:,} bytes", code="FILE_TOO_LARGE", hint="split it"
            )
        return raw.decode("utf-8")
    except OSError as error:
        hint = "name a file of JSON lines, or - for stdin"
        raise Malformed(f"{file}: {error.strerror}", code="FILE_UNREADABLE", hint=hint) from error
    except UnicodeDecodeError as error:
        hint = "write one JSON object on each line"
        raise Malformed(f"{file} is not UTF-8 text", code="FILE_NOT_TEXT", hint=hint) from error


def list_all(call: CommandCall, task: str, since: str, until: str) -> int:
    """List usage entries."""
    call.renew_session()
    found = list_usage(call.repo, _period(call, since, until), task)
    own = [entry for entry in found if not task or entry.task == task]
    refer = [entry for entry in found if task and entry.task != task]
    columns = ["id", "at", "task", "agent", "client", "model", "in", "out", "cost"]
    title = f"{count(len(own), 'record')}: {total_words(add_up(own))}" if own else "No spending is recorded."
    text = call.terminal.table(title, columns, [_row(entry) for entry in own])
    if refer:
        elsewhere = f"{count(len(refer), 'record')} of other tasks refer to {task} and count there"
        text += "\n" + call.terminal.table(elsewhere, columns, [_row(entry) for entry in refer])
    answer = {"ok": True, "usage": [usage_json(entry) for entry in own], "total": total_json(add_up(own))}
    return call.terminal.answer(answer | {"elsewhere": [usage_json(entry) for entry in refer]}, text)


def _row(entry: UsageEntry) -> list[str]:
    def count(tokens: int | None) -> str:
        return "?" if tokens is None else f"{tokens:,}"

    cost = "unknown" if entry.cost_micros is None else money_words(entry.cost_micros)
    cost = f"at least {cost}" if entry.is_least else cost
    cost += "" if entry.is_final else " so far"
    words = [entry.id, rfc3339(entry.at), entry.task or "none", entry.agent, entry.client, entry.model]
    return [*words, count(entry.input_tokens), count(entry.output_tokens), cost]


def _period(call: CommandCall, since: str, until: str) -> Period | None:
    """Return the requested period; all time by default."""
    return period_of(call.repo, since, until, default="all") if since or until else None


def _budgets_json(call: CommandCall) -> dict[str, Any]:
    settings = call.repo.settings
    return {
        "task_usd": dollars(settings.budgets.task_micros),
        "run_usd": dollars(settings.budgets.run_micros),
        "day_usd": dollars(settings.budgets.day_micros),
    }
