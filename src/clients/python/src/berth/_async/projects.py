"""Projects: code on a server, and its app behind a URL."""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from .._archive import Filter, described, entries_of, form_of, packed, parts_of, whole
from .._models import Json, Lifecycle, LogLine, ProjectFields, PushResult, Visibility, parse
from ..errors import ProjectFailedError
from .connection import AsyncConnection, data_of
from .handle import AsyncOwned

if TYPE_CHECKING:
    from typing_extensions import Self

# Phases in which a bring-up has ended, or waits for variables.
_SETTLED = ("ready", "failed", "awaiting_secrets", None)

# How many lines of the log the error of a failed bring-up has.
_LAST_LINES = 20


class AsyncProject(AsyncOwned, ProjectFields):
    """Code on a server, and its app behind a URL. A ``with`` block deletes it."""

    _kind = ProjectFields
    _field = None

    @property
    def _path(self) -> str:
        return f"/projects/{self.id}"

    async def wait(self, *, timeout: float | None = None) -> Self:
        """Waits until its app is ready, or its bring-up waits for variables (``init_phase`` is ``awaiting_secrets``).

        :param timeout: the longest wait in seconds, up to 15 s more; without end by default
        :returns: itself, whose ``init_phase`` is another if the time is over
        :raises ProjectFailedError: with the end of the log if the bring-up failed
        """
        await self._settle(lambda: self.init_phase in _SETTLED, timeout)
        if self.init_phase != "failed":
            return self
        logs = (await self._connection.json("GET", f"{self._path}/logs", params={"tail": _LAST_LINES}))["logs"]
        phase = self.init_phases[-2]["phase"] if len(self.init_phases) > 1 else None
        end = "\n".join(line["text"] for line in logs)
        message = f"{self.name} failed in its phase {phase}:\n{end}"
        raise ProjectFailedError(message, project_id=self.id, phase=phase, log=end)

    async def update(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        visibility: Visibility | None = None,
        lifecycle: Lifecycle | None = None,
    ) -> Self:
        """Changes what is given."""
        changes = {"name": name, "description": description, "visibility": visibility, "lifecycle": lifecycle}
        given = {field: value for field, value in changes.items() if value is not None}
        return self._take(await self._connection.json("PATCH", self._path, given))

    async def cleanup(self) -> None:
        """Removes an ephemeral project."""
        await self._connection.json("POST", f"{self._path}/cleanup")

    async def init(self, *, proceed: bool = False) -> Self:
        """Begins a new bring-up, or continues one that waits for variables.

        :param proceed: whether to go on without the missing variables
        """
        return self._take(await self._connection.json("POST", f"{self._path}/init", {"proceed": proceed}))

    async def restart(self) -> Self:
        """Starts its app again as it was built."""
        return self._take(await self._connection.json("POST", f"{self._path}/restart"))

    async def set_secrets(self, secrets: Mapping[str, str | None]) -> None:
        """Sets variables of its app; None removes one. A bring-up that waits for them continues; an app that runs is restarted."""
        await self._connection.json("PUT", f"{self._path}/secrets", {"secrets": dict(secrets)})

    async def logs(self, *, tail: int | None = None) -> AsyncGenerator[LogLine, None]:
        """Reads the log of its bring-ups and its app, and follows it without end.

        :param tail: how many of the earlier lines come first; all that are kept by default
        """
        query = {} if tail is None else {"tail": tail}
        async with aclosing(self._connection.events(f"{self._path}/logs", query=query, resumes=True)) as events:
            async for event in events:
                if event.event == "line":
                    yield parse(LogLine, data_of(event))

    async def push(
        self,
        directory: str | os.PathLike[str],
        *,
        filter: Filter | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> PushResult:
        """Makes its code what a local directory has.

        Sends the files that differ, removes those that are gone, and installs, builds and restarts as far as necessary.

        :param filter: whether to send a file or directory, by its relative path with "/". ``node_modules`` and ``.git`` are
            never sent
        :param wait: whether to wait until the new version is ready
        :raises ProjectFailedError: if the new version does not come up; the one before goes on
        """
        entries = entries_of(directory, filter)
        description = described(entries)
        pushed = await self._connection.json("POST", f"{self._path}/push", description)
        missing = frozenset(pushed["missing"])
        for part in parts_of(entry for entry in entries if entry.path in missing):
            pieces = [piece.description for piece in part if not piece.is_whole]
            pushed = await _send_form(
                self._connection, f"{self._path}/push", {**description, "pieces": pieces or None}, packed(part)
            )
        self._assign(pushed["project"])
        if wait and pushed["began"] is not None:
            await self.wait(timeout=timeout)
        return PushResult(pushed["written"], pushed["removed"], pushed["began"])


class AsyncProjects:
    """The projects of a server."""

    def __init__(self, connection: AsyncConnection, server: str) -> None:
        self._connection = connection
        self._server = server

    async def list(self) -> builtins.list[AsyncProject]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", f"{self._server}/projects")
        return [AsyncProject(self._connection, project) for project in body["projects"]]

    async def create(
        self,
        *,
        name: str | None = None,
        directory: str | os.PathLike[str] | None = None,
        template: str | None = None,
        source: Json | None = None,
        description: str | None = None,
        visibility: Visibility | None = None,
        lifecycle: Lifecycle | None = None,
        env: Mapping[str, str] | None = None,
        filter: Filter | None = None,
        wait: bool = True,
        timeout: float | None = None,
    ) -> AsyncProject:
        """Creates a project.

        Its code is that of a local directory, a template or a ``source`` as the API takes it; without any it is blank.

        :param filter: whether to send a file or directory, by its relative path with "/". ``node_modules`` and ``.git`` are
            never sent
        :param wait: whether to wait until it is ready, or waits for variables
        :param timeout: the longest wait in seconds, up to 15 s more
        :raises ProjectFailedError: with the end of the log if the bring-up failed
        """
        fields: dict[str, Any] = {
            "name": name,
            "template": template,
            "source": source,
            "description": description,
            "visibility": visibility,
            "lifecycle": lifecycle,
            "env": None if env is None else dict(env),
        }
        given = {field: value for field, value in fields.items() if value is not None}
        path = f"{self._server}/projects"
        if directory is None:
            body = await self._connection.json("POST", path, given)
        else:
            body = await _send_form(self._connection, path, given, packed(whole(entries_of(directory, filter))))
        project = AsyncProject(self._connection, body)
        return await project.wait(timeout=timeout) if wait else project


async def _send_form(connection: AsyncConnection, path: str, fields: Json, archive: bytes) -> Any:
    """Sends a form with an archive, and returns the JSON of the response."""
    return await connection.json(
        "POST", path, data=form_of(fields), files={"archive": ("code.tar.gz", archive, "application/gzip")}
    )
