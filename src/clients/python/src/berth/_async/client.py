"""The client of berth's API."""

from __future__ import annotations

import builtins
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx

from .._models import (
    ApiKey,
    Change,
    CreatedApiKey,
    CreatedWebhook,
    OwnAccount,
    Region,
    Template,
    Tier,
    Webhook,
    parse,
    parse_all,
)
from .._timing import Deadline
from ..webhooks import verify
from .builds import AsyncBuild
from .changes import changes_of
from .connection import AsyncConnection
from .projects import AsyncProject
from .server import AsyncServer
from .tasks import AsyncTask

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from .._generated import AuthenticatedClient

# How often a request is tried again by default.
_RETRIES = 2

# How long a response may be awaited by default, in seconds: as long as a command may run.
_TIMEOUT = 600.0


def setting(value: str | None, variable: str) -> str:
    """Returns a setting that was given or is in the environment.

    :raises ValueError: if it is missing
    """
    found = value or os.environ.get(variable)
    if not found:
        raise ValueError(
            f'{variable} is not set. Run the program by "berth run -- …", take the variables of a running instance by '
            'eval "$(berth env)", or give the address and the key to the client.'
        )
    return found


class AsyncBerth:
    """A client of berth. Closed at the end of its ``with`` block, or by ``close``."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        retries: int = _RETRIES,
        timeout: float | None = _TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Makes a client. No request is sent.

        :param base_url: the address of the API; the variable ``BERTH_BASE_URL`` by default
        :param api_key: the variable ``BERTH_API_KEY`` by default
        :param retries: how often a request is tried again where that cannot do anything twice
        :param timeout: how long a response may be awaited, in seconds
        :param transport: httpx's own transport, such as one with a proxy; proxies of the environment are not used
        :raises ValueError: if the address or the key is missing, or the address is no URL
        """
        base_url, api_key = setting(base_url, "BERTH_BASE_URL"), setting(api_key, "BERTH_API_KEY")
        self._connection = AsyncConnection(base_url, api_key, retries=retries, timeout=timeout, transport=transport)
        #: The address of the API.
        self.base_url = self._connection.base_url
        self.servers = AsyncServers(self._connection)
        self.tasks = AsyncAllTasks(self._connection)
        self.builds = AsyncAllBuilds(self._connection)
        self.projects = AsyncAllProjects(self._connection)
        self.keys = AsyncKeys(self._connection)
        self.webhooks = AsyncWebhooks(self._connection)

    @property
    def api(self) -> AuthenticatedClient:
        """The client for the functions of ``berth.api``, which are generated: every operation, also those without a method here.

        They return an ``ErrorBody`` for a failure, as ``openapi-python-client`` does.
        """
        from .._generated import AuthenticatedClient

        generated = AuthenticatedClient(base_url=self.base_url, token="")
        generated.set_async_httpx_client(self._connection.http)
        return generated

    async def account(self) -> OwnAccount:
        """Reads the account that the key belongs to: its plan, its budget and what it has used of it, and the key itself."""
        return parse(OwnAccount, await self._connection.json("GET", "/account"))

    async def templates(self) -> list[Template]:
        """Lists the templates that projects start from."""
        return parse_all(Template, (await self._connection.json("GET", "/templates"))["templates"])

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Reads the changes of everything that the key reaches, without end.

        The first is ``ready``: load what you need after it. After a lost connection, one with the type ``gap`` says that changes
        were missed.
        """
        async with aclosing(changes_of(self._connection, Deadline(None))) as changes:
            async for change in changes:
                yield change

    async def close(self) -> None:
        """Closes its connections."""
        await self._connection.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncServers:
    """The servers that a key reaches."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[AsyncServer]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", "/servers")
        return [AsyncServer(self._connection, server) for server in body["servers"]]

    async def create(
        self, task: str | None = None, *, tier: Tier | None = None, region: Region | None = None
    ) -> AsyncServer:
        """Provisions a server, which runs when this returns.

        :param task: a short label
        """
        fields = {"task": task, "tier": tier, "region": region}
        given = {field: value for field, value in fields.items() if value is not None}
        return await self.get((await self._connection.json("POST", "/servers", given))["id"])

    async def get(self, id: str) -> AsyncServer:
        """Reads one.

        :raises NotFoundError: if the key reaches no server with this id
        """
        body = await self._connection.json("GET", f"/servers/{quote(id, safe='')}")
        return AsyncServer(self._connection, body["server"])


class AsyncAllTasks:
    """The tasks of all servers that a key reaches."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[AsyncTask]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", "/tasks")
        return [AsyncTask(self._connection, task) for task in body["tasks"]]


class AsyncAllBuilds:
    """The builds of all servers that a key reaches."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[AsyncBuild]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", "/builds")
        return [AsyncBuild(self._connection, build) for build in body["builds"]]


class AsyncAllProjects:
    """The projects of all servers that a key reaches."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[AsyncProject]:
        """Lists them, the newest first."""
        body = await self._connection.json("GET", "/projects")
        return [AsyncProject(self._connection, project) for project in body["projects"]]

    async def get(self, id: str) -> AsyncProject:
        """Reads one.

        :raises NotFoundError: if the key reaches no project with this id
        """
        return AsyncProject(self._connection, await self._connection.json("GET", f"/projects/{quote(id, safe='')}"))


class AsyncKeys:
    """The API keys of an account."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[ApiKey]:
        """Lists them, the newest first, without their plaintext."""
        return parse_all(ApiKey, (await self._connection.json("GET", "/keys"))["keys"])

    async def create(
        self, label: str, *, allowed_server_ids: Sequence[str] = (), allowed_project_ids: Sequence[str] = ()
    ) -> CreatedApiKey:
        """Creates a key. The result has its plaintext.

        :param allowed_server_ids: the servers that it reaches; all if it is empty
        :param allowed_project_ids: the projects that it reaches; all if it is empty
        """
        body = {"label": label, **_scope(allowed_server_ids, allowed_project_ids)}
        return parse(CreatedApiKey, await self._connection.json("POST", "/keys", body))

    async def update(
        self, id: str, *, allowed_server_ids: Sequence[str] = (), allowed_project_ids: Sequence[str] = ()
    ) -> None:
        """Replaces what a key reaches: all of what is empty."""
        scope = _scope(allowed_server_ids, allowed_project_ids)
        await self._connection.json("PATCH", f"/keys/{quote(id, safe='')}", scope)

    async def delete(self, id: str) -> None:
        """Deletes a key, which ends at once."""
        await self._connection.json("DELETE", f"/keys/{quote(id, safe='')}")


class AsyncWebhooks:
    """The webhooks of an account."""

    verify = staticmethod(verify)

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[Webhook]:
        """Lists them, the newest first."""
        return parse_all(Webhook, (await self._connection.json("GET", "/webhooks"))["webhooks"])

    async def create(self, url: str, *, events: Sequence[str] = ()) -> CreatedWebhook:
        """Has events sent to a URL. The result has the secret that they are signed with, which no other call returns.

        :param events: names of events; all if it is empty
        """
        body = {"url": url, "events": [*events]}
        return parse(CreatedWebhook, await self._connection.json("POST", "/webhooks", body))

    async def enable(self, id: str) -> Webhook:
        """Switches a webhook on again."""
        body = await self._connection.json("POST", f"/webhooks/{quote(id, safe='')}/enable")
        return parse(Webhook, body["webhook"])

    async def delete(self, id: str) -> None:
        """Deletes a webhook."""
        await self._connection.json("DELETE", f"/webhooks/{quote(id, safe='')}")


def _scope(servers: Sequence[str], projects: Sequence[str]) -> dict[str, builtins.list[str]]:
    return {"allowed_server_ids": [*servers], "allowed_project_ids": [*projects]}
