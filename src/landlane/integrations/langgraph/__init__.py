"""Run LangGraph graphs with Landlane: claims, handoffs, fan-out, owned state, gates and bounded retries.

A thread of a graph works on one task. Nodes of a `Bridge` take that task for an agent, hand it off, try it
again, split it or finish it. Each of these is an ordinary change of Landlane that all sessions see. LangGraph
runs a killed node again; what it had already done to the task is not done twice.
"""

from __future__ import annotations

from landlane.version import install_command

try:
    from landlane.integrations.langgraph.bridge import Bridge
    from landlane.integrations.langgraph.graph_state import Coordinated, Owned
    from landlane.integrations.langgraph.interrupts import ask_person
    from landlane.integrations.langgraph.node_returns import FanOut, Finish, HandTo, Result, TryAgain
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.startswith("landlane"):
        raise
    raise ImportError(f"LangGraph is not installed; add it: {install_command('langgraph')}") from missing

__all__ = [
    "Bridge",
    "Coordinated",
    "FanOut",
    "Finish",
    "HandTo",
    "Owned",
    "Result",
    "TryAgain",
    "ask_person",
]
