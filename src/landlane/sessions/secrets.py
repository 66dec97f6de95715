"""The secrets of a user's sessions: one file for each agent, readable by this user only."""

from __future__ import annotations

import os

from landlane.files import open_regular
from landlane.ids import Credentials


class SecretFiles:
    """A folder with mode 0700 beside the store."""

    def __init__(self, folder: str) -> None:
        self._folder = os.path.join(folder, "sessions")

    def load(self, agent: str) -> Credentials | None:
        """Return the secret of an agent's session, if this user may read it."""
        try:
            with open(self._path(agent), encoding="ascii", opener=open_regular) as file:
                session, secret, number = file.read().split()
                generation = int(number)
        except (OSError, ValueError):
            return None
        return Credentials(session=session, secret=secret, agent=agent, generation=generation)

    def save(self, credentials: Credentials) -> None:
        """Store a secret atomically."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = self._path(credentials.agent)
        # A fixed name, so that the leftover of a killed process is overwritten; no agent name has a tilde.
        # The caller has locked the name, so that no other process writes the file at the same time.
        scratch = f"{path}~"
        file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(
                file, f"{credentials.session} {credentials.secret} {credentials.generation}\n".encode("ascii")
            )
        finally:
            os.close(file)
        os.replace(scratch, path)

    def drop(self, agent: str, session: str) -> None:
        """Delete the secret of an ended session, but not that of its successor."""
        found = self.load(agent)
        if found is not None and found.session == session:
            try:
                os.unlink(self._path(agent))
            except OSError:
                return

    def is_lost(self, agent: str) -> bool:
        """Return whether the file of an agent is missing, and not only closed to this user."""
        is_closed = os.path.isdir(self._folder) and not os.access(self._folder, os.R_OK | os.X_OK)
        return not is_closed and not os.path.lexists(self._path(agent))

    def _path(self, agent: str) -> str:
        # Upper case is marked, so that `Ann` and `ann` have two files even where file names ignore case.
        name = "".join(f"+{letter.lower()}" if letter.isupper() else letter for letter in agent)
        return os.path.join(self._folder, name)
