"""The fixtures of berth for pytest. Nothing of berth is loaded before a test asks for one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from berth import Berth
    from berth.testing import Account, Control, Instance


@pytest.fixture(scope="session")
def berth_instance(request: pytest.FixtureRequest) -> Iterator[Instance]:
    """The instance of ``berth run``; without it, one that is started for all processes of the run."""
    from berth.testing import _instance

    worker = getattr(request.config, "workerinput", None)
    instance = _instance.of_environment()
    if instance is None and worker is None:
        instance = _instance.start()
    elif instance is None:
        assert worker is not None
        instance = _instance.shared(Path(tempfile.gettempdir()) / f"berth-pytest-{worker['testrunuid']}")
    with instance:
        yield instance


@pytest.fixture(scope="session")
def berth_control(berth_instance: Instance) -> Control:
    """Steers the instance."""
    return berth_instance.control


@pytest.fixture
def berth_account(berth_control: Control, request: pytest.FixtureRequest) -> Iterator[Account]:
    """An account of the test's own, removed after it."""
    with berth_control.account(label=request.node.name[:40]) as account:
        yield account


@pytest.fixture
def berth(berth_account: Account) -> Berth:
    """A client with the key of an account of the test's own."""
    return berth_account.berth
