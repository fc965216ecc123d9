"""berth for unittest."""

from __future__ import annotations

import atexit
import functools
import unittest
from typing import TYPE_CHECKING

from .._sync.client import Berth
from .._sync.control import Account, Control
from ._instance import Instance, of_environment, start

if TYPE_CHECKING:
    _Base = unittest.TestCase
else:
    _Base = object


@functools.cache
def _instance() -> Instance:
    instance = of_environment()
    if instance is None:
        instance = start()
        atexit.register(instance.stop)
    return instance


class BerthMixin(_Base):
    """Gives each test an account of its own, on one instance for all: ``class Reports(BerthMixin, unittest.TestCase)``.

    The instance is that of ``berth run``; without it, one is started for this process.
    """

    #: Steers the instance.
    control: Control
    #: The account of the test, removed after it.
    account: Account
    #: A client with the key of the account.
    berth: Berth

    def setUp(self) -> None:
        super().setUp()
        self.control = _instance().control
        self.account = self.control.account(label=self.id()[:40])
        self.addCleanup(self.account.remove)
        self.berth = self.account.berth
