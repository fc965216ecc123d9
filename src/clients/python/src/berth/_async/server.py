"""Servers, and what is published of them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._models import Deployment, ExecResult, Json, Region, ServerFields, parse, parse_all
from .builds import AsyncBuilds
from .connection import AsyncConnection
from .execution import AsyncExecution, AsyncOnText, collect
from .files import AsyncFiles
from .handle import AsyncOwned
from .projects import AsyncProjects
from .tasks import AsyncTasks

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncServer(AsyncOwned, ServerFields):
    """A server: runs commands, keeps files, and has tasks, builds and projects. A ``with`` block deletes it."""

    _kind = ServerFields
    _field = "server"

    def __init__(self, connection: AsyncConnection, data: Json) -> None:
        AsyncOwned.__init__(self, connection, data)
        self.files = AsyncFiles(connection, self._path)
        self.tasks = AsyncTasks(connection, self._path)
        self.builds = AsyncBuilds(connection, self._path)
        self.projects = AsyncProjects(connection, self._path)
        self.deployments = AsyncDeployments(connection, self._path)

    @property
    def _path(self) -> str:
        return f"/servers/{self.id}"

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
        on_stdout: AsyncOnText | None = None,
        on_stderr: AsyncOnText | None = None,
    ) -> ExecResult:
        """Runs a shell command to its end. Its output arrives while it runs.

        A connection that breaks off is an error, and ends the command; so does an exception of a callback. A request that may
        have reached berth is never sent twice.

        :param cwd: a directory inside the workspace
        :param env: variables on top of the base environment
        :param stdin: text for standard input, which is empty by default
        :param timeout: seconds after which the command is ended (``timed_out`` is true then); 10 minutes by default
        :raises ConnectionError: if the connection breaks off before the command has ended
        """
        body = _exec_body(command, cwd, env, stdin, timeout)
        events = self._connection.events(f"{self._path}/exec", method="POST", body=body)
        return await collect(events, on_stdout, on_stderr)

    async def execute(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float | None = None,
        open_stdin: bool = False,
    ) -> AsyncExecution:
        """Starts a shell command that goes on by itself, until it ends or is deleted.

        :param timeout: seconds after which the command is ended; none by default
        :param open_stdin: whether standard input stays open for ``write``
        """
        body = {**_exec_body(command, cwd, env, stdin, timeout), "detach": True, "openStdin": open_stdin}
        started = await self._connection.json("POST", f"{self._path}/exec", body)
        return AsyncExecution(self._connection, started["execution"])

    async def executions(self) -> list[AsyncExecution]:
        """Lists the executions of the server, the newest first."""
        body = await self._connection.json("GET", f"{self._path}/executions")
        return [AsyncExecution(self._connection, execution) for execution in body["executions"]]

    async def start(self) -> Self:
        """Starts the server if it sleeps."""
        return await self._act("start")

    async def stop(self) -> Self:
        """Ends all processes of the server. Its files stay, and the next command wakes it."""
        return await self._act("stop")

    async def restart(self) -> Self:
        """Stops the server and starts it."""
        return await self._act("restart")

    async def update(self, *, task: str | None = None, region: Region | None = None) -> Self:
        """Changes its label or its region."""
        changes = {"task": task, "region": region}
        given = {field: value for field, value in changes.items() if value is not None}
        return self._take(await self._connection.json("PATCH", self._path, given))

    async def set_secrets(self, secrets: Mapping[str, str | None]) -> None:
        """Sets variables of all commands and apps of the server; None removes one. Its apps are restarted."""
        await self._connection.json("PUT", "/secrets", {"server_id": self.id, "secrets": dict(secrets)})

    async def _act(self, action: str) -> Self:
        await self._connection.json("POST", f"{self._path}/actions", {"action": action})
        return await self.refresh()


class AsyncDeployments:
    """What is published of a server: the app in its workspace, or its files."""

    def __init__(self, connection: AsyncConnection, server: str) -> None:
        self._connection = connection
        self._path = f"{server}/deployments"

    async def list(self) -> builtins.list[Deployment]:
        """Lists what is published."""
        return parse_all(Deployment, (await self._connection.json("GET", self._path))["deployments"])

    async def create(self, *, directory: str | None = None) -> Deployment:
        """Publishes the workspace, and returns when its URL responds.

        :param directory: the directory of the workspace with the app or the files
        :raises ComputeBackendError: with the end of its log if the app does not come up
        """
        body = {} if directory is None else {"directory": directory}
        return parse(Deployment, await self._connection.json("POST", self._path, body))

    async def delete(self) -> None:
        """Takes the deployment back."""
        await self._connection.json("DELETE", self._path)


def _exec_body(
    command: str, cwd: str | None, env: Mapping[str, str] | None, stdin: str | None, timeout: float | None
) -> dict[str, object]:
    fields = {
        "command": command,
        "cwd": cwd,
        "env": None if env is None else dict(env),
        "stdin": stdin,
        "timeoutMs": None if timeout is None else round(timeout * 1000),
    }
    return {name: value for name, value in fields.items() if value is not None}
