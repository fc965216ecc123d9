"""Commands: those that a call waits for, and those that run on by themselves."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from .._models import CollectedOutput, ExecResult, ExecutionFields, Output, output_of
from .._stream import StreamEvent
from .._timing import async_call
from ..errors import ConnectionError
from .connection import data_of
from .handle import AsyncOwned

#: Gets text as a command prints it. That of an async client may be a coroutine function.
AsyncOnText = Callable[[str], Awaitable[None] | None]


async def collect(
    events: AsyncGenerator[StreamEvent, None], on_stdout: AsyncOnText | None, on_stderr: AsyncOnText | None
) -> ExecResult:
    """Reads the output of a command to its end, and passes it on as it arrives.

    :raises ConnectionError: if it breaks off before
    """
    collected = CollectedOutput()
    async with aclosing(events):
        async for event in events:
            if event.event == "exit":
                return collected.result(data_of(event))
            if event.event not in ("stdout", "stderr"):
                continue
            output = output_of(event.event, data_of(event))
            collected.add(output)
            callback = on_stdout if output.stream == "stdout" else on_stderr
            if callback is not None:
                await async_call(callback, output.text)
    raise ConnectionError("The connection broke off before the command ended.")


class AsyncExecution(AsyncOwned, ExecutionFields):
    """A command that runs on by itself. A ``with`` block ends it."""

    _kind = ExecutionFields
    _field = "execution"

    @property
    def _path(self) -> str:
        return f"/servers/{self.server_id}/executions/{self.id}"

    async def output(self) -> AsyncGenerator[Output, None]:
        """Reads what it has printed and prints, to its end. A connection that breaks off goes on where it was."""
        async with aclosing(self._events()) as events:
            async for event in events:
                if event.event in ("stdout", "stderr"):
                    yield output_of(event.event, data_of(event))

    async def wait(self, *, on_stdout: AsyncOnText | None = None, on_stderr: AsyncOnText | None = None) -> ExecResult:
        """Waits for its end and returns the output that berth has kept.

        ``exit_code`` is -1 if something else than the command ended it: see ``status``.

        :raises ConnectionError: if the connection breaks off and does not go on
        """
        result = await collect(self._events(), on_stdout, on_stderr)
        await self.refresh()
        return result

    async def write(self, content: str | bytes = b"", *, end: bool = False) -> None:
        """Writes to its standard input, which ``open_stdin`` keeps open.

        :param end: whether the input ends with this
        """
        body: dict[str, object] = (
            {"text": content} if isinstance(content, str) else {"base64": base64.b64encode(content).decode()}
        )
        await self._connection.json("POST", f"{self._path}/input", {**body, **({"end": True} if end else {})})

    def _events(self) -> AsyncGenerator[StreamEvent, None]:
        return self._connection.events(f"{self._path}/output", resumes=True)
