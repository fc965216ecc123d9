"""What the async and the sync half do in their own ways."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Deadline:
    """The end of a wait."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """The seconds that are left, 0 at the least; None if the wait has no end."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


async def async_pause(seconds: float) -> None:
    """Waits."""
    await asyncio.sleep(seconds)


def pause(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


async def async_call(function: Callable[..., Awaitable[Result] | Result], *arguments: Any) -> Result:
    """Calls a function, or a coroutine function to its end."""
    result = function(*arguments)
    return await result if inspect.isawaitable(result) else result


def call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function."""
    return function(*arguments)
