"""Builds: goals that become apps."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import quote

from .._models import BuildFields, LogLine, parse
from .._timing import Deadline, async_call
from .connection import AsyncConnection, data_of
from .handle import AsyncHandle

if TYPE_CHECKING:
    from typing_extensions import Self

#: Gets the lines of a log. That of an async client may be a coroutine function.
AsyncOnLine = Callable[[LogLine], Awaitable[None] | None]


class AsyncBuild(AsyncHandle, BuildFields):
    """A goal that becomes an app with a URL. A build that failed is ``completed`` with a ``url`` of None."""

    _kind = BuildFields
    _field = "build"

    @property
    def _path(self) -> str:
        return f"/servers/{self.server_id}/builds/{self.id}"

    async def wait(self, *, timeout: float | None = None) -> Self:
        """Waits until it is completed.

        :param timeout: the longest wait in seconds, up to 15 s more; without end by default
        :returns: itself, whose ``status`` is not ``completed`` if the time is over
        """
        return await self._settle(lambda: self.status == "completed", timeout)

    async def logs(self) -> AsyncGenerator[LogLine, None]:
        """Reads its log, to its end. A connection that breaks off goes on where it was."""
        async with aclosing(self._lines(Deadline(None))) as lines:
            async for line in lines:
                yield line

    async def _lines(self, deadline: Deadline) -> AsyncGenerator[LogLine, None]:
        async with aclosing(self._connection.events(f"{self._path}/logs", resumes=True, deadline=deadline)) as events:
            async for event in events:
                if event.event == "line":
                    yield parse(LogLine, data_of(event))


class AsyncBuilds:
    """The builds of a server."""

    def __init__(self, connection: AsyncConnection, server: str) -> None:
        self._connection = connection
        self._server = server

    async def list(self) -> builtins.list[AsyncBuild]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", f"{self._server}/builds")
        return [AsyncBuild(self._connection, build) for build in body["builds"]]

    async def get(self, id: str) -> AsyncBuild:
        """Reads one.

        :raises NotFoundError: if the server has no build with this id
        """
        body = await self._connection.json("GET", f"{self._server}/builds/{quote(id, safe='')}")
        return AsyncBuild(self._connection, body["build"])

    async def create(self, goal: str) -> AsyncBuild:
        """Begins a build, or queues it behind others of the server, and returns at once."""
        body = await self._connection.json("POST", f"{self._server}/builds", {"goal": goal})
        return await self.get(body["build_id"])

    async def run(self, goal: str, *, on_log: AsyncOnLine | None = None, timeout: float | None = None) -> AsyncBuild:
        """Builds, and waits for the end.

        :param on_log: gets the lines of its log as they arrive
        :param timeout: the longest wait in seconds; up to 15 s more
        :returns: the build, whose ``url`` is None if it failed: its log says why
        """
        build = await self.create(goal)
        deadline = Deadline(timeout)
        if on_log is not None:
            async with aclosing(build._lines(deadline)) as lines:
                async for line in lines:
                    await async_call(on_log, line)
        return await build.wait(timeout=deadline.left)
