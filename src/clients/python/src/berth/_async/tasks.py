"""Tasks of the agent on a server."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import quote

from .._models import TaskEvent, TaskFields, parse
from .._timing import Deadline, async_call
from .connection import AsyncConnection, data_of
from .handle import AsyncHandle

if TYPE_CHECKING:
    from typing_extensions import Self

#: Answers a question of the agent; None leaves it open. That of an async client may be a coroutine function.
AsyncOnQuestion = Callable[[str], Awaitable[str | None] | str | None]
#: Gets the entries of a transcript. That of an async client may be a coroutine function.
AsyncOnEvent = Callable[[TaskEvent], Awaitable[None] | None]


class AsyncTask(AsyncHandle, TaskFields):
    """A goal that an agent works on."""

    _kind = TaskFields
    _field = "task"

    @property
    def _path(self) -> str:
        return f"/servers/{self.server_id}/tasks/{self.id}"

    async def answer(self, answer: str) -> Self:
        """Answers its question."""
        return self._take(await self._connection.json("POST", f"{self._path}/input", {"answer": answer}))

    async def cancel(self) -> Self:
        """Cancels it: its command ends before this returns."""
        return self._take(await self._connection.json("POST", f"{self._path}/cancel"))

    async def wait(self, *, timeout: float | None = None) -> Self:
        """Waits until it is completed, failed or cancelled, or asks.

        :param timeout: the longest wait in seconds, up to 15 s more; without end by default
        :returns: itself, whose ``status`` is still ``running`` if the time is over
        """
        return await self._settle(lambda: self.status != "running", timeout)

    async def events(self) -> AsyncGenerator[TaskEvent, None]:
        """Reads its transcript, to its end. A connection that breaks off goes on where it was."""
        async with aclosing(self._entries(0, Deadline(None))) as entries:
            async for entry in entries:
                yield entry

    async def _follow(self, after: int, deadline: Deadline, on_event: AsyncOnEvent) -> int:
        """Passes on the transcript until it is completed, failed or cancelled, or asks.

        :param after: the number of the last entry that was passed on before
        :returns: the number of the last that was now
        """
        async with aclosing(self._entries(after, deadline)) as entries:
            async for entry in entries:
                after = entry.seq
                await async_call(on_event, entry)
                if entry.type == "status" and entry.status != "running":
                    await self.refresh()
                    # An entry of a question that somebody else answered meanwhile is old.
                    if self.status != "running":
                        return after
        await self.refresh()
        return after

    async def _entries(self, after: int, deadline: Deadline) -> AsyncGenerator[TaskEvent, None]:
        stream = self._connection.events(
            f"{self._path}/events", query={"after": after}, resumes=True, deadline=deadline
        )
        async with aclosing(stream) as events:
            async for event in events:
                # Events without an id are pieces of what an entry has whole.
                if event.id is not None:
                    yield parse(TaskEvent, data_of(event))


class AsyncTasks:
    """The tasks of a server."""

    def __init__(self, connection: AsyncConnection, server: str) -> None:
        self._connection = connection
        self._server = server

    async def list(self) -> builtins.list[AsyncTask]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", f"{self._server}/tasks")
        return [AsyncTask(self._connection, task) for task in body["tasks"]]

    async def get(self, id: str) -> AsyncTask:
        """Reads one.

        :raises NotFoundError: if the server has no task with this id
        """
        body = await self._connection.json("GET", f"{self._server}/tasks/{quote(id, safe='')}")
        return AsyncTask(self._connection, body["task"])

    async def create(self, goal: str) -> AsyncTask:
        """Gives the agent a goal, and returns at once."""
        body = await self._connection.json("POST", f"{self._server}/tasks", {"goal": goal})
        return await self.get(body["task_id"])

    async def run(
        self,
        goal: str,
        *,
        on_question: AsyncOnQuestion | None = None,
        on_event: AsyncOnEvent | None = None,
        timeout: float | None = None,
    ) -> AsyncTask:
        """Gives the agent a goal and waits for its end. A task that fails is no error: see ``status``.

        :param on_question: answers its questions. Without it, or if it returns None, the task is returned while it waits
        :param on_event: gets the entries of the transcript as they arrive
        :param timeout: the longest wait in seconds; up to 15 s more
        :returns: the task: completed, failed or cancelled; awaiting input if a question was not answered; running if the time
            was over
        """
        task = await self.create(goal)
        deadline = Deadline(timeout)
        seen = 0
        while True:
            if on_event is None:
                await task.wait(timeout=deadline.left)
            else:
                seen = await task._follow(seen, deadline, on_event)
            if task.status != "awaiting_input" or on_question is None:
                return task
            answer = await async_call(on_question, task.question or "")
            if answer is None:
                return task
            await task.answer(answer)
