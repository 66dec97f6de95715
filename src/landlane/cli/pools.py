"""The commands about the pool of workers: pool show, pause, resume."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.main import Desk
    from landlane.domain.agents import Session
    from landlane.domain.pools import Pool


def show(desk: Desk) -> int:
    """Show how the pool stands."""
    from landlane.operations.pools import pool_of

    desk.show_life()
    return _answer(desk, pool_of(desk.house.context))


def pause(desk: Desk, why: str) -> int:
    """Start no further work."""
    from landlane.operations.pools import pause_pool
    from landlane.operations.tasks import check_reason

    return _answer(desk, pause_pool(desk.house.context, _decider(desk), check_reason(why)))


def resume(desk: Desk) -> int:
    """Start work again."""
    from landlane.operations.pools import resume_pool

    return _answer(desk, resume_pool(desk.house.context, _decider(desk)))


def _decider(desk: Desk) -> Session:
    """Whoever acts, unless a role binds it: one worker's rights do not reach to all the others."""
    from landlane.domain.roles import forbidden

    session = desk.session()
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides about the whole pool")
    return session


def _answer(desk: Desk, pool: Pool) -> int:
    from landlane.views.pools import pool_json, pool_lines

    lines = [in_one_line(line) for line in pool_lines(pool)]
    desk.terminal.answer({"ok": True, "pool": pool_json(pool)}, "\n".join(lines))
    return 0
