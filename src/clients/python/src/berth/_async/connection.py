"""How requests are sent: with the credential, again where that is safe, and never to another origin."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from .._models import Json
from .._retries import STREAMED, Tries, refuse_other_origin
from .._stream import EventDecoder, StreamEvent
from .._timing import Deadline, async_pause
from .._version import VERSION, compare_version
from ..errors import ConnectionError, error_of, error_of_event

# How long a connection may take to be made, in seconds.
_CONNECT_SECONDS = 10.0


class AsyncRetryingTransport(httpx.AsyncBaseTransport):
    """Sends each request as often as is safe, and refuses redirects to other origins."""

    def __init__(self, inner: httpx.AsyncBaseTransport, retries: int, base_path: str) -> None:
        self._inner = inner
        self._retries = retries
        self._base_path = base_path

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        tries = Tries(request, self._retries, self._base_path)
        while True:
            try:
                response = await self._try(request)
            except httpx.TransportError as error:
                delay: float | None = tries.after_error(error)
            else:
                delay = tries.after_response(response)
                if delay is None:
                    return tries.outcome(response)
                await response.aclose()
            await async_pause(delay or 0)

    async def _try(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        try:
            compare_version(response)
            refuse_other_origin(request, response)
            if request.extensions.get(STREAMED):
                return response
            # Read here, so that a body that breaks off is a failure of this try.
            assert isinstance(response.stream, httpx.AsyncByteStream)
            body = b"".join([chunk async for chunk in response.stream])
        except BaseException:
            await response.aclose()
            raise
        await response.aclose()
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=httpx.ByteStream(body),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class AsyncConnection:
    """The connection of a client to one instance, with one credential."""

    def __init__(
        self,
        base_url: str,
        credential: str,
        *,
        retries: int,
        timeout: float | None,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"The address of the API is {base_url!r}, which is no http or https URL.")
        self.retries = retries
        self._timeout = timeout
        self.http = httpx.AsyncClient(
            base_url=self.base_url,
            headers={"authorization": f"Bearer {credential}", "user-agent": f"berth-client/{VERSION} (python)"},
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            follow_redirects=True,
            transport=AsyncRetryingTransport(
                transport or httpx.AsyncHTTPTransport(), retries, httpx.URL(self.base_url).path.rstrip("/")
            ),
        )

    async def request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Sends a request and returns its response, whose status is 2xx and whose body has been read.

        :param arguments: as those of ``httpx.Client.request``
        :raises BerthError: if it fails
        """
        response = await self.http.request(method, path, **arguments)
        if not response.is_success:
            raise error_of(response)
        return response

    async def json(self, method: str, path: str, body: Json | None = None, **arguments: Any) -> Any:
        """Sends a request with a JSON body, if it has one, and returns the JSON of its response."""
        response = await self.request(method, path, **arguments, **({} if body is None else {"json": body}))
        try:
            return response.json()
        except ValueError:
            # An empty or broken success.
            raise error_of(response) from None

    @asynccontextmanager
    async def streamed(self, method: str, path: str, **arguments: Any) -> AsyncIterator[httpx.Response]:
        """Sends a request, whose response is read as it arrives.

        :raises BerthError: if it fails; ``ConnectionError`` if it breaks off
        """
        try:
            async with self.http.stream(method, path, extensions={STREAMED: True}, **arguments) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                yield response
        except (httpx.TransportError, httpx.StreamError) as error:
            raise ConnectionError("The connection broke off before the response was whole.") from error

    async def events(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Json | None = None,
        query: Json | None = None,
        resumes: bool = False,
        deadline: Deadline | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Reads a stream of events.

        :param resumes: whether to go on after the last event by Last-Event-ID if the connection breaks off
        :param deadline: ends the stream, up to 15 s late if nothing arrives but comments
        :raises ConnectionError: if the connection breaks off and does not go on
        :raises BerthError: for an event ``error``
        """
        headers = {"accept": "text/event-stream"}
        failures = 0
        while True:
            try:
                async with self.streamed(
                    method,
                    path,
                    headers=headers,
                    params=query,
                    timeout=self._limits(deadline),
                    **({} if body is None else {"json": body}),
                ) as response:
                    decoder = EventDecoder()
                    async for chunk in response.aiter_bytes():
                        for event in decoder.feed(chunk):
                            if event.event == "error":
                                raise error_of_event(event.data, response.headers.get("x-request-id"))
                            if event.id is not None:
                                headers["last-event-id"] = event.id
                            failures = 0
                            yield event
                        if deadline is not None and deadline.left == 0:
                            return
                return
            except ConnectionError as error:
                if deadline is not None and isinstance(error.__cause__, httpx.ReadTimeout) and deadline.left == 0:
                    return
                failures += 1
                if not resumes or failures > self.retries:
                    raise
                await async_pause(0.1 * failures)

    def _limits(self, deadline: Deadline | None) -> httpx.Timeout:
        left = None if deadline is None else deadline.left
        # A stream is quiet for 15 s at the most.
        read = 60.0 if left is None else min(60.0, left)
        return httpx.Timeout(self._timeout, connect=_CONNECT_SECONDS, read=read)


def data_of(event: StreamEvent) -> Any:
    """Returns the JSON of an event."""
    return json.loads(event.data)
