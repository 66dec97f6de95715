"""Stop a function call in the middle of a test, and let it go on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Pause:
    """Wraps a function: its first call waits until the test lets it go on."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._is_first = True
        self.reached = threading.Event()
        self._go_on = threading.Event()

    def __call__(self, *arguments: object, **options: object) -> object:
        if self._is_first:
            self._is_first = False
            self.reached.set()
            assert self._go_on.wait(30)
        return self._function(*arguments, **options)

    def resume(self) -> None:
        self._go_on.set()
