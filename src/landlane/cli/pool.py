"""The commands for the worker pool: pool show, pause, resume."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.roles.model import forbidden
from landlane.tasks.model import check_reason
from landlane.tasks.to_json import pool_json, pool_lines
from landlane.tasks.worker_pool import pause_pool, pool_of, resume_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command_call import CommandCall
    from landlane.sessions.model import Session
    from landlane.tasks.worker_pool import Pool


def show(call: CommandCall) -> int:
    """Show the state of the pool."""
    call.show_life()
    return _answer(call, pool_of(call.repo))


def pause(call: CommandCall, why: str) -> int:
    """Start no further work."""
    return _answer(call, pause_pool(call.repo, _decider(call), check_reason(why)))


def resume(call: CommandCall) -> int:
    """Start work again."""
    return _answer(call, resume_pool(call.repo, _decider(call)))


def _decider(call: CommandCall) -> Session:
    """Return the caller's session; refuse one with a role, which must not control the other workers."""
    session = call.session()
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides about the whole pool")
    return session


def _answer(call: CommandCall, pool: Pool) -> int:
    lines = [in_one_line(line) for line in pool_lines(pool)]
    call.terminal.answer({"ok": True, "pool": pool_json(pool)}, "\n".join(lines))
    return 0
