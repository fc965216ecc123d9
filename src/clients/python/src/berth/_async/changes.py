"""The stream of changes, which waits and readers share."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from .._models import Change, parse
from .._timing import Deadline, async_pause
from ..errors import ConnectionError
from .connection import AsyncConnection, data_of


async def changes_of(connection: AsyncConnection, deadline: Deadline) -> AsyncGenerator[Change, None]:
    """Reads the changes of everything that a credential reaches, until the time is over.

    After a lost connection it connects again, and a change of the type ``gap`` says that some were missed.

    :param deadline: ends it, up to 15 s late
    :raises ConnectionError: if it cannot connect again
    """
    failures = 0
    is_first = True
    while deadline.left != 0:
        try:
            async with aclosing(connection.events("/changes", deadline=deadline)) as events:
                async for event in events:
                    change = parse(Change, data_of(event))
                    yield Change("gap") if change.type == "ready" and not is_first else change
                    is_first = False
                    failures = 0
        except ConnectionError:
            failures += 1
            if failures > connection.retries:
                raise
            await async_pause(0.1 * failures)
