"""The commands for cost: usage, usage add, usage import, usage list."""

from __future__ import annotations

from landlane.cli.arguments import read_bytes
from landlane.clock import rfc3339
from landlane.errors import Malformed
from landlane.ids import new_uuid
from landlane.stats.calculate import period_of
from landlane.text import check_text
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
from landlane.usage.period import read_instant
from landlane.usage.to_json import dollars, imported_json, total_json, totals_json, usage_json
from landlane.usage.totals import list_usage, spent_today, totals_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.usage.model import Total
    from landlane.usage.period import Period


_GROUPS = ("task", "lineage", "agent", "client", "model", "day")
_MOST_BYTES = 256_000_000


def show(call: CommandCall, since: str, until: str, by: str) -> int:
    """Show what was spent."""
    if by and by not in _GROUPS:
        raise Malformed(f"--by {by[:40]!r} is unknown", code="BAD_GROUP", hint=f"one of {', '.join(_GROUPS)}")
    call.renew_session()
    entries = list_usage(call.repo, _period(call, since, until))
    totals = totals_of(entries)
    field = {"": "task", "day": "state"}.get(by, by)
    groups = add_up_by(entries, lambda entry: str(getattr(entry, field)))
    unnamed = "unattributed" if field in ("task", "lineage") else "unknown"
    named = {name or unnamed: total for name, total in sorted(groups.items(), key=lambda item: not item[0])}
    rows = [_total_row(name, total) for name, total in named.items()]
    answer: dict[str, Any] = {"ok": True, **totals_json(totals), "budgets": _budgets_json(call)}
    if by:
        answer["by"] = by
        answer["groups"] = {name: total_json(total) for name, total in named.items()}
    title = _counted(len(entries))
    columns = [by or "task", "cost", "bookings", "tokens in", "tokens out"]
    text = call.terminal.table(title, columns, rows)
    if rows:
        text += f"\nin all: {total_words(totals.grand)}"
    return call.terminal.answer(answer, "\n".join([text, *_budget_lines(call)]))


def _counted(count: int) -> str:
    return f"{count:,} booking{'' if count == 1 else 's'}" if count else "nothing is booked"


def _total_row(name: str, total: Total) -> list[str]:
    missing = "+" if total.unknown_tokens else ""
    are_unknown = total.unknown_tokens == total.entries
    tokens = (
        ["?", "?"]
        if are_unknown
        else [f"{total.input_tokens:,}{missing}", f"{total.output_tokens:,}{missing}"]
    )
    return [name, total_words(total), str(total.entries), *tokens]


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
    text = f"{entry.id}: booked {amount} to {entry.task or 'no task'}"
    if not booked.is_new:
        text = f"{entry.id} was booked before: {amount} to {entry.task or 'no task'}; nothing was changed"
        text += ", though it comes with another cost now" if booked.differs else ""
    return call.terminal.answer(answer, text)


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
        lines.append(f"tasks that nobody knows here: {shown}")
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
    title = f"{_counted(len(own))}: {total_words(add_up(own))}" if own else _counted(0)
    text = call.terminal.table(title, columns, [_row(entry) for entry in own])
    if refer:
        elsewhere = f"{len(refer)} booked elsewhere refer to {task}, and count there"
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


def _budget_lines(call: CommandCall) -> list[str]:
    """Return how much of the daily budget is used; the other budgets belong to tasks and runs."""
    limit = call.repo.settings.budgets.day_micros
    if limit is None:
        return []
    today = spent_today(call.repo)
    is_over = today.cost_micros >= limit
    used = ", and used up: no attempt begins before midnight UTC" if is_over else ""
    return [f"today: {total_words(today)}; the budget of a day is {money_words(limit)}{used}"]
