"""The Python library: the same operations as the command line, with typed results and context managers."""

from __future__ import annotations

from landlane.api.landlane import ClaimRefused, Landlane
from landlane.claims.check import PathCheck
from landlane.claims.model import Claim, Refusal, Refused, SavedWork, Taken
from landlane.errors import LandlaneError
from landlane.fanout.model import BranchResult, Fan
from landlane.gates.model import Gate
from landlane.handoffs.model import Handoff
from landlane.reviews.model import Review
from landlane.sessions.model import Session, Slot
from landlane.state.key_rules import State, StateStale
from landlane.state.numbers import AllocatedNumber
from landlane.state.slot_kinds import SlotRefused, SlotTaken
from landlane.state.steps import CompletedStep
from landlane.store.journal_chain import Entry, JournalCheck
from landlane.tasks.retry_rules import Decision, Lineage

__all__ = [
    "AllocatedNumber",
    "BranchResult",
    "Claim",
    "ClaimRefused",
    "CompletedStep",
    "Decision",
    "Entry",
    "Fan",
    "Gate",
    "Handoff",
    "JournalCheck",
    "Landlane",
    "LandlaneError",
    "Lineage",
    "PathCheck",
    "Refusal",
    "Refused",
    "Review",
    "SavedWork",
    "Session",
    "Slot",
    "SlotRefused",
    "SlotTaken",
    "State",
    "StateStale",
    "Taken",
]
