"""A PostgreSQL server of this example's own, on a unix socket; it ends with the shell that started it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from landlane.testing.postgres_install import PostgresUnavailable
from landlane.testing.postgres_server import PostgresServer

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
parent = os.getppid()
try:
    with PostgresServer.start(fsync=False) as server:
        Path("store.new").write_text(server.create_database(), encoding="utf-8")
        os.replace("store.new", "store.url")  # readers of the file find all of it
        while os.getppid() == parent:
            time.sleep(0.3)
except PostgresUnavailable as unavailable:
    sys.exit(f"no PostgreSQL here: {unavailable.reason}")
