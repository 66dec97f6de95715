"""The commands about the pool of workers: pool show, pause, resume."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import Desk
    from landlane.sessions.model import Session
    from landlane.tasks.worker_pool import Pool


def show(desk: Desk) -> int:
    """Show how the pool stands."""
    from landlane.tasks.worker_pool import pool_of

    desk.show_life()
    return _answer(desk, pool_of(desk.house.context))


def pause(desk: Desk, why: str) -> int:
    """Start no further work."""
    from landlane.tasks.model import check_reason
    from landlane.tasks.worker_pool import pause_pool

    return _answer(desk, pause_pool(desk.house.context, _decider(desk), check_reason(why)))


def resume(desk: Desk) -> int:
    """Start work again."""
    from landlane.tasks.worker_pool import resume_pool

    return _answer(desk, resume_pool(desk.house.context, _decider(desk)))


def _decider(desk: Desk) -> Session:
    """Whoever acts, unless a role binds it: one worker's rights do not reach to all the others."""
    from landlane.roles.model import forbidden

    session = desk.session()
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides about the whole pool")
    return session


def _answer(desk: Desk, pool: Pool) -> int:
    from landlane.tasks.to_json import pool_json, pool_lines

    lines = [in_one_line(line) for line in pool_lines(pool)]
    desk.terminal.answer({"ok": True, "pool": pool_json(pool)}, "\n".join(lines))
    return 0
