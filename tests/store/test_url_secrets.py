"""No error about a PostgreSQL store shows a secret of its URL, whatever the driver says."""

from __future__ import annotations

import json

import pytest

from landlane.error_json import error_json
from landlane.errors import StoreError
from landlane.store.postgres.database import connect

pytestmark = pytest.mark.integration

PLACE = "127.0.0.1:1"  # nothing listens there


@pytest.mark.promise(
    "store.secrets-stay-secret", "No message shows the password or another secret of the store's URL."
)
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://u@{PLACE}/x?sslpassword=SEEN",
        f"postgresql://u:SEEN@{PLACE}/x?ssl%70assword=SEEN",
        f"postgresql://u:SEEN%@{PLACE}/x",
        f"postgresql://u:%00SEEN@{PLACE}/x",
        f"postgresql://u:SEEN/SEEN@{PLACE}/x",
        f"postgresql://u:7/SEEN@{PLACE}/x",
        f"postgresql://u:SEEN@SEEN@{PLACE}/x",
        "postgresql://u:SEEN@127.0.0.1:SEEN/x",
        f"postgresql://u:SEEN@{PLACE}/x?bogus=SEEN",
        f"postgresql://u:S%45EN@{PLACE}/x?sslmode=bad",
        f"postgresql://u@{PLACE}/x?sslkey=/SEEN&sslmode=verify-full",
        f"postgresql://u@{PLACE}/x?password=SEEN&passfile=/SEEN&options=SEEN",
    ],
)
def test_no_error_shows_a_secret_of_the_url(url: str) -> None:
    with pytest.raises(StoreError) as failed:
        connect(url, 3000)
    assert failed.value.code == "STORE_UNREACHABLE"
    assert "SEEN" not in json.dumps(error_json(failed.value), ensure_ascii=False)
