"""`python -m landlane` is the same as `landlane`."""

from __future__ import annotations

from landlane.cli.main import run

run()
