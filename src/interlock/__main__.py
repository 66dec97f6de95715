"""`python -m interlock` is the same as `interlock`."""

from __future__ import annotations

from interlock.cli.main import run

run()
