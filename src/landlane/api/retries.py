"""Bounded retries for Python agents: `Landlane.retries`, with the budget of a lineage and the pool."""

from __future__ import annotations

from landlane.api.session_view import Duration, SessionView, milliseconds
from landlane.state.steps import find_step
from landlane.tasks.lineage import lineage_of
from landlane.tasks.records import get_task, task_history
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd, RetryDecision, RetryOutcome
from landlane.tasks.worker_pool import get_pool, pause_pool, resume_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.api.task_values import Decision, Lineage, Pool


class Retries(SessionView):
    """The outcome of attempts, and whether another one is allowed."""

    def end(
        self,
        task: str,
        feedback: str,
        *,
        code: str = "failed",
        change: str = "",
        took: Duration = 0,
        cost_usd: float | None = None,
        could_not_begin: bool = False,
        may_retry: bool = True,
        retry_after: Duration = 0,
        at_once: bool = False,
        key: str = "",
        memo: Callable[[Decision], str] = lambda _: "",
    ) -> Decision:
        """End an unfinished attempt; the outcome is retry, escalate, abort, or returned uncharged.

        `change` identifies the diff, such as its digest; `code` may be `rate_limited`, `stopped` or
        `no_change` where that applies. `at_once` skips the back-off, for failures that waiting does
        not fix. With a `key` the attempt ends once: the same key again returns the first outcome.
        `memo` is kept with it in the same change; see `Landlane.steps`.

        Example:
            `ann.retries.end("T1", "two tests fail: …", change=digest).outcome == "retry"`

        Raises:
            Stale: the task no longer belongs to this session.
        """
        repo, session = self._repo, self._session
        found = get_task(repo, task)
        done = find_step(repo, key) if key else None
        if done is not None:
            decided = RetryDecision(outcome=RetryOutcome(done.about), task=found, why=found.why)
            return self._public(decided)
        end = AttemptEnd(
            code=code,
            feedback=feedback,
            change=change,
            took_ms=milliseconds(took),
            cost_micros=None if cost_usd is None else round(cost_usd * 1_000_000),
            is_infrastructure=could_not_begin,
            may_retry=may_retry,
            retry_after_ms=milliseconds(retry_after),
        )
        also = self._step_recorder(key, task, lambda decision: decision.outcome, memo)
        immediate_retries = found.failures + 1 if at_once else 0
        return self._settled(
            end_attempt(repo, session, task, end, immediate_retries=immediate_retries, also=also)
        )

    def feedback(self, task: str) -> tuple[str, ...]:
        """Return the feedback on every failed attempt, oldest first; a retry gets all of it."""
        failed = [entry.facts() for entry in task_history(self._repo, task) if entry.kind == "task.failed"]
        return tuple(str(facts.get("feedback") or facts["why"]) for facts in failed)

    def budget(self, task: str) -> Lineage:
        """Return what a task has used, with its retries, children and follow-ups."""
        return self._public(lineage_of(self._repo, get_task(self._repo, task)))

    def pool(self) -> Pool:
        """Return the worker pool: whether workers are started, and what prevents it."""
        return self._public(get_pool(self._repo))

    def pause(self, why: str) -> Pool:
        """Start no further work until the pool is resumed."""
        return self._public(pause_pool(self._repo, self._session, why))

    def resume(self) -> Pool:
        """Start work again."""
        return self._public(resume_pool(self._repo, self._session))
