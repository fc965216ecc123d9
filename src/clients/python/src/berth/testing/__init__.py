"""berth for tests: an instance, accounts of their own, faults, the clock, waits, inboxes and scenarios.

pytest finds the fixtures by itself: ``berth`` is a client with an account of its own, ``berth_account`` that account,
``berth_control`` a ``Control`` of the instance. For unittest there is ``BerthMixin``; ``start`` starts an instance for one test.
"""

from .._async.control import AsyncAccount, AsyncControl
from .._control_models import ClockTime, Fault, FaultEffect, InboxEntry, WaitTimeoutError
from .._sync.control import Account, Control
from ._executable import find_executable
from ._instance import Instance, start
from ._unittest import BerthMixin

__all__ = [
    "Account",
    "AsyncAccount",
    "AsyncControl",
    "BerthMixin",
    "ClockTime",
    "Control",
    "Fault",
    "FaultEffect",
    "InboxEntry",
    "Instance",
    "WaitTimeoutError",
    "find_executable",
    "start",
]
