"""Detect a person at the terminal: some decisions are reserved to people, whatever an agent's role."""

from __future__ import annotations

import os

from landlane.app.open import person_name
from landlane.clients.calling_process import why_not_a_person
from landlane.clients.model import CLIENT_VARIABLES
from landlane.errors import NotAllowed
from landlane.sessions.join import Caller, identify, known_session
from landlane.sessions.own_settings import with_settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall
    from landlane.repository import Repository
    from landlane.sessions.model import Session


def own_settings(repo: Repository, caller: Caller) -> Repository:
    """Return the repository with the settings that hold for the caller."""
    return with_settings_of(repo, caller)


def person_at(call: CommandCall, what: str = "decide this") -> Session:
    """Return the session of the person at the terminal.

    Raises:
        NotAllowed: the caller is an agent, or there is no terminal.
    """
    who = why_no_person(call)
    if who:
        named = f" --as {call.name}" if call.name else ""
        raise NotAllowed(
            f"only a person can {what}, and {who}",
            code="NOT_A_PERSON",
            hint=f"go on with something else: landlane next{named}",
        )
    return identify(call.repo, Caller(person=person_name())).session


def refuse_agent(call: CommandCall, what: str) -> None:
    """Refuse a caller that says it is an agent; unlike a decision, this may be done by a script of a person.

    Raises:
        NotAllowed: it is one.
    """
    caller = call.caller()
    named = next((name for name in CLIENT_VARIABLES if name in os.environ), "")
    if named or caller.name or caller.session_text or caller.agent_variable:
        why = f"{named} is set" if named else "--as, LANDLANE_SESSION and LANDLANE_AGENT are for agents"
        raise NotAllowed(
            f"only a person can {what}, and {why}",
            code="NOT_A_PERSON",
            hint="a person runs it in a terminal of their own, that no agent was started from",
        )


def why_no_person(call: CommandCall) -> str:
    """Return why the caller is not a person at a terminal; empty when it is.

    Raises:
        LandlaneError: it belongs to an agent whose session is over, or another's.
    """
    caller = call.caller()
    known = known_session(call.repo, caller)
    if known is not None and not known.session.is_person:
        return f"this is {known.session.agent}"
    if caller.name or caller.session_text or caller.agent_variable:
        return "--as, LANDLANE_SESSION and LANDLANE_AGENT are for agents"
    if known is not None and known.session.role:
        return f"{known.session.agent} has the role {known.session.role}"
    return why_not_a_person()
