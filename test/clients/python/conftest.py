from collections.abc import Iterator

import pytest
from berth import Berth, Server
from berth.testing import Account


@pytest.fixture
def server(berth: Berth) -> Iterator[Server]:
    with berth.servers.create("calls", tier="small") as server:
        yield server


@pytest.fixture
def patient(berth_account: Account) -> Iterator[Berth]:
    """A client that tries nothing again, so that each fault is seen."""
    with Berth(berth_account.base_url, berth_account.api_key, retries=0) as berth:
        yield berth
