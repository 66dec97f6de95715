"""The type of times in JSON answers."""

from __future__ import annotations

from typing import Annotated

Time = Annotated[str, "date-time"]
