"""The kernel's fence as the doctor tells of it: what holds it here, what is open, and what is required."""

from __future__ import annotations

from landlane.doctor.finding import Finding
from landlane.errors import LandlaneError
from landlane.sandbox.guarantees import describe
from landlane.sandbox.model import NONE, OPEN, Fence, require
from landlane.sandbox.start import choose_backend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Site


def look_at_kernel(site: Site, is_fixing: bool) -> Finding:
    """What holds `landlane exec` and workers on this machine."""
    del is_fixing  # no program can mend a kernel
    backend = choose_backend()
    # A worker that must reach the resident, and nothing else of this machine.
    fence = Fence(
        writable=(), scratch="/scratch", hidden=("/state",), sockets_visible=("/state/s",), udp=False
    )
    held = describe(backend, fence)
    try:
        require(held, site.settings.fences_required, backend)
    except LandlaneError as error:
        return Finding(is_ok=False, found=error.message, hint=error.hint)
    missing = [one.promise for one in held if one.state == OPEN]
    open_ones = f"; open: {', '.join(missing)}" if missing else ""
    return Finding(
        is_ok=True,
        found=f"{backend.name}, for what `landlane exec` starts{open_ones}",
        hint=" ".join(backend.reasons),
        is_enforced=backend.name != NONE,
    )
