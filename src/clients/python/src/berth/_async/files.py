"""The files of a server."""

from __future__ import annotations

import builtins
import os
import shlex
import tarfile
import tempfile
from collections.abc import AsyncGenerator
from typing import IO

from .._archive import Filter, entries_of, pack, unpack, whole
from ..errors import BerthError, ConnectionError
from .connection import AsyncConnection

_CHUNK = 256 * 1024

# Archives of at most this many bytes are kept in memory.
_IN_MEMORY = 8 * 1024 * 1024


class AsyncFiles:
    """The files of a server. Paths are relative to its workspace."""

    def __init__(self, connection: AsyncConnection, server: str) -> None:
        self._connection = connection
        self._server = server

    async def list(self, *, all: bool = False) -> builtins.list[str]:
        """Lists the paths of all files.

        :param all: whether those in ``.git`` and ``node_modules`` count
        """
        query = {"all": "true"} if all else {}
        files: list[str] = (await self._connection.json("GET", f"{self._server}/files", params=query))["files"]
        return files

    async def read(self, path: str) -> str:
        """Reads a file as UTF-8; bytes that are not become U+FFFD.

        :raises NotFoundError: if it does not exist
        """
        return (await self.read_bytes(path)).decode("utf-8", "replace")

    async def read_bytes(self, path: str) -> bytes:
        """Reads the bytes of a file.

        :raises NotFoundError: if it does not exist
        """
        response = await self._connection.request(
            "GET", f"{self._server}/files/content", params={"path": path}
        )
        return response.content

    async def write(self, path: str, content: str | bytes) -> None:
        """Writes a file, with the directories that it needs. It is replaced as a whole."""
        await self._connection.request(
            "PUT",
            f"{self._server}/files/content",
            params={"path": path},
            content=content.encode() if isinstance(content, str) else content,
            headers={"content-type": "application/octet-stream"},
        )

    async def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all that is in it."""
        await self._connection.json("DELETE", f"{self._server}/files", params={"path": path})

    async def upload_directory(
        self, local: str | os.PathLike[str], path: str = ".", *, filter: Filter | None = None
    ) -> None:
        """Sends a local directory. Files of it replace those on the server; others stay.

        :param path: the directory on the server, which is made; the workspace by default
        :param filter: whether to send a file or directory, by its relative path with "/". ``node_modules`` and ``.git`` are
            never sent
        :raises BerthError: if the server cannot unpack it
        """
        directory = _quoted(path)
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as archive:
            pack(whole(entries_of(local, filter)), archive)
            archive.seek(0)
            response = await self._connection.request(
                "POST",
                f"{self._server}/exec/stream",
                params={"command": f"mkdir -p {directory} && exec tar -xzf - -C {directory}"},
                content=_chunks_of(archive),
                headers={"content-type": "application/octet-stream"},
            )
        ended = response.json()
        if ended["exitCode"] != 0:
            raise BerthError(f"tar on the server ended with {ended['exitCode']}: {ended['stderr'].strip()}")

    async def download_directory(self, path: str, local: str | os.PathLike[str]) -> None:
        """Fetches a directory of the server into a local one, which is made. Existing files are not replaced.

        :raises FileExistsError: if a local file exists
        :raises tarfile.TarError: if a link of the directory leads out of it
        :raises ConnectionError: if the connection breaks off, or there is no such directory
        """
        command = f"cd {_quoted(path)} && exec tar -czf - --exclude=./node_modules --exclude=./.git ."
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as archive:
            async with self._connection.streamed(
                "POST",
                f"{self._server}/exec/stream",
                params={"command": command},
                content=b"",
                headers={"content-type": "application/octet-stream", "accept": "application/octet-stream"},
            ) as response:
                async for chunk in response.aiter_bytes():
                    archive.write(chunk)
            archive.seek(0)
            try:
                unpack(archive, local)
            except (EOFError, tarfile.ReadError) as error:
                raise ConnectionError(f"{path} could not be fetched: {error}") from error


async def _chunks_of(file: IO[bytes]) -> AsyncGenerator[bytes, None]:
    while chunk := file.read(_CHUNK):
        yield chunk


def _quoted(path: str) -> str:
    """Quotes a path for the shell of a server, so that no program takes it for an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
