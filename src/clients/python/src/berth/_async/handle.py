"""What the objects of the API have in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar

from .._models import Json, fields_of
from .._timing import Deadline
from ..errors import NotFoundError
from .changes import changes_of
from .connection import AsyncConnection

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class AsyncHandle:
    """An object of the API with the calls that belong to it.

    It has the fields of the object as they were when it was last read: ``refresh``, and every method that returns the object,
    read them anew.
    """

    #: The attrs class of the fields, and the field of a response that has them; None if the response itself does.
    _kind: ClassVar[type[Any]]
    _field: ClassVar[str | None]

    id: str

    def __init__(self, connection: AsyncConnection, data: Json) -> None:
        self._connection = connection
        self._assign(data)

    @property
    def _path(self) -> str:
        """The path of the object."""
        raise NotImplementedError

    def _assign(self, data: Json) -> Self:
        """Takes the fields of an object that the API returned."""
        self._kind.__init__(self, **fields_of(self._kind, data))
        return self

    def _take(self, body: Json) -> Self:
        """Takes the fields of the body of a response."""
        return self._assign(body if self._field is None else body[self._field])

    async def refresh(self) -> Self:
        """Reads the object anew."""
        return self._take(await self._connection.json("GET", self._path))

    async def _settle(self, is_settled: Callable[[], bool], timeout: float | None) -> Self:
        """Reads the object anew with each of its changes, until it has settled or the time is over.

        :param is_settled: whether it has, as its fields are now
        :raises NotFoundError: if it is deleted meanwhile
        """
        async with aclosing(changes_of(self._connection, Deadline(timeout))) as changes:
            async for change in changes:
                # The variables of a project have its id, too: what has changed is read, not taken.
                if change.id not in (None, self.id):
                    continue
                await self.refresh()
                if is_settled():
                    break
        return self


class AsyncOwned(AsyncHandle):
    """An object that is deleted at the end of its ``with`` block."""

    async def delete(self) -> None:
        """Deletes it with everything that belongs to it."""
        await self._connection.json("DELETE", self._path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.delete()
        except NotFoundError:
            # Deleted in the block.
            pass
