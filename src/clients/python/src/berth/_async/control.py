"""The control API, by which tests steer an instance."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .._control_models import ClockTime, Fault, FaultEffect, InboxEntry, WaitTimeoutError
from .._models import Json, parse, parse_all
from .client import AsyncBerth, setting
from .connection import AsyncConnection

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from .._generated import AuthenticatedClient

# How long a test waits for something by default, in seconds.
_PATIENCE = 10.0

# How long a response may be awaited, in seconds: longer than the longest wait.
_TIMEOUT = 660.0


class AsyncControl:
    """Steers an instance by its admin token. Closed at the end of its ``with`` block, or by ``close``."""

    def __init__(self, base_url: str | None = None, admin_token: str | None = None) -> None:
        """Makes a client of the control API. No request is sent.

        :param base_url: the address of the instance; the variable ``BERTH_BASE_URL`` by default
        :param admin_token: the variable ``BERTH_ADMIN_TOKEN`` by default
        :raises ValueError: if one is missing
        """
        base_url, admin_token = setting(base_url, "BERTH_BASE_URL"), setting(admin_token, "BERTH_ADMIN_TOKEN")
        self._connection = AsyncConnection(base_url, admin_token, retries=2, timeout=_TIMEOUT, transport=None)
        #: The address of the instance.
        self.base_url = self._connection.base_url
        self.clock = AsyncClock(self._connection)
        self.faults = AsyncFaults(self._connection)
        self.scenarios = AsyncScenarios(self._connection)

    @property
    def api(self) -> AuthenticatedClient:
        """The client for the functions of ``berth.api`` that belong to the control API."""
        from .._generated import AuthenticatedClient

        generated = AuthenticatedClient(base_url=self.base_url, token="")
        generated.set_async_httpx_client(self._connection.http)
        return generated

    async def account(
        self, *, label: str | None = None, plan: Json | None = None, budget_cap: float | None = None
    ) -> AsyncAccount:
        """Creates an account with a key of its own: what a test does in it, no other test sees. A ``with`` block removes it.

        :param plan: what differs from the default plan
        :param budget_cap: the credits of a month
        """
        fields = {"label": label, "plan": plan, "budget_cap": budget_cap}
        given = {field: value for field, value in fields.items() if value is not None}
        created = await self._connection.json("POST", "/_berth/accounts", given)
        return AsyncAccount(self._connection, created["id"], created["api_key"])

    async def reset(self) -> None:
        """Removes everything but the first account, and applies the fixtures again."""
        await self._connection.json("POST", "/_berth/reset", {})

    async def wait(
        self,
        *,
        task: str | None = None,
        build: str | None = None,
        project: str | None = None,
        execution: str | None = None,
        delivery: str | None = None,
        deliveries: str | None = None,
        event: str | None = None,
        inbox: str | None = None,
        until: str | Sequence[str] | None = None,
        attempts: int | None = None,
        after: str | None = None,
        account_id: str | None = None,
        count: int | None = None,
        timeout: float = _PATIENCE,
    ) -> dict[str, Any]:
        """Waits until something has happened, which is one of ``task``, ``build`` … ``inbox``.

        :param until: other states than the final ones
        :param timeout: the longest wait in seconds, at most 600
        :returns: ``waited_ms`` and the object under its name: ``task``, …, ``entries`` of an inbox
        :raises WaitTimeoutError: if the time is over, with what was found
        """
        query: dict[str, Any] = {
            "task": task,
            "build": build,
            "project": project,
            "execution": execution,
            "delivery": delivery,
            "deliveries": deliveries,
            "event": event,
            "inbox": inbox,
            "until": until if until is None or isinstance(until, str) else ",".join(until),
            "attempts": attempts,
            "after": after,
            "account_id": account_id,
            "count": count,
        }
        given = {name: value for name, value in query.items() if value is not None}
        return await _wait(self._connection, given, timeout)

    def inbox(self, name: str) -> AsyncInbox:
        """Returns an inbox, a receiver for webhooks that is there as soon as it is named."""
        return AsyncInbox(self._connection, name)

    async def release(self, task: str) -> None:
        """Lets a task go on that the step ``hold`` of its scenario holds."""
        await self._connection.json("POST", f"/_berth/tasks/{quote(task, safe='')}/release")

    async def close(self) -> None:
        """Closes its connections."""
        await self._connection.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncAccount:
    """An account of its own, with its key."""

    def __init__(self, connection: AsyncConnection, id: str, api_key: str) -> None:
        self._connection = connection
        self.id = id
        self.api_key = api_key
        self.base_url = connection.base_url
        #: A client with the key of this account.
        self.berth = AsyncBerth(self.base_url, api_key)

    @property
    def _path(self) -> str:
        return f"/_berth/accounts/{self.id}"

    async def change(
        self,
        *,
        label: str | None = None,
        plan: Json | None = None,
        limits: Json | None = None,
        budget_cap: float | None = None,
        credits_used: float | None = None,
    ) -> None:
        """Changes its plan, its budget or what it has used.

        :param limits: limits of the plan to change; the others stay
        """
        fields: dict[str, Any] = {
            "label": label,
            "plan": plan,
            "limits": limits,
            "budget_cap": budget_cap,
            "credits_used": credits_used,
        }
        given = {field: value for field, value in fields.items() if value is not None}
        await self._connection.json("PATCH", self._path, given)

    async def fail(
        self, operation: str, effect: FaultEffect, *, times: int | None = None, after: int | None = None
    ) -> Fault:
        """Has an operation fail for this account.

        :param operation: its id, such as ``servers.create``
        :param times: how often; always by default
        :param after: how many requests pass first
        """
        match = {"operation": operation, "account_id": self.id}
        return await AsyncFaults(self._connection).add(effect, match=match, times=times, after=after)

    def inbox(self) -> AsyncInbox:
        """Returns an inbox that no other account shares."""
        return AsyncInbox(self._connection, self.id)

    async def remove(self) -> None:
        """Removes the account with everything that belongs to it."""
        await self.berth.close()
        await self._connection.json("DELETE", self._path)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.remove()


class AsyncClock:
    """The one clock of an instance, by which metering, months, expiry, retries and the idle timeout go."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def read(self) -> ClockTime:
        """Reads it."""
        return parse(ClockTime, await self._connection.json("GET", "/_berth/clock"))

    async def advance(self, by: timedelta | str) -> ClockTime:
        """Moves it on, such as by ``2h``. Everything due on the way has happened when this returns."""
        return await self._move(advance=f"{round(by.total_seconds() * 1000)}ms" if isinstance(by, timedelta) else by)

    async def set(self, time: datetime | str) -> ClockTime:
        """Moves it to a time, which a string has in ISO 8601."""
        return await self._move(set=time if isinstance(time, str) else time.isoformat())

    async def freeze(self, frozen: bool = True) -> ClockTime:
        """Stops it until it is moved, or lets it go on."""
        return await self._move(freeze=frozen)

    async def reset(self) -> ClockTime:
        """Sets it to the machine's time again."""
        return await self._move(reset=True)

    async def _move(self, **how: object) -> ClockTime:
        return parse(ClockTime, await self._connection.json("POST", "/_berth/clock", how))


class AsyncFaults:
    """Failures of requests on purpose."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[Fault]:
        """Lists them with how often they applied."""
        return parse_all(Fault, (await self._connection.json("GET", "/_berth/faults"))["faults"])

    async def add(
        self,
        effect: FaultEffect,
        *,
        match: Json | None = None,
        times: int | None = None,
        after: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
    ) -> Fault:
        """Sets a fault.

        :param match: which requests it applies to: ``operation``, ``method``, ``path``, ``account_id`` …; all by default
        :param times: how often; always by default
        :param after: how many requests pass first
        :param probability: from 0 to 1, decided by ``seed``
        """
        fields = {"times": times, "after": after, "probability": probability, "seed": seed}
        given = {field: value for field, value in fields.items() if value is not None}
        body = {"match": dict(match or {}), "effect": effect, **given}
        return parse(Fault, await self._connection.json("POST", "/_berth/faults", body))

    async def delete(self, id: str) -> None:
        """Removes one."""
        await self._connection.json("DELETE", f"/_berth/faults/{quote(id, safe='')}")

    async def clear(self) -> None:
        """Removes all."""
        await self._connection.json("DELETE", "/_berth/faults")


class AsyncInbox:
    """A receiver for webhooks, which keeps each request and says whether its signature is right."""

    def __init__(self, connection: AsyncConnection, name: str) -> None:
        self._connection = connection
        self._path = f"/_berth/inbox/{quote(name, safe='')}"
        self.name = name
        #: What to give to a webhook. Webhooks to this machine need ``--allow-local-webhooks``.
        self.url = f"{connection.base_url}{self._path}"

    async def entries(self) -> list[InboxEntry]:
        """Lists what it received, the newest first."""
        return parse_all(InboxEntry, (await self._connection.json("GET", self._path))["entries"])

    async def wait(
        self, *, count: int | None = None, after: str | None = None, timeout: float = _PATIENCE
    ) -> list[InboxEntry]:
        """Waits until it has received something, and returns all, the newest first.

        :param count: how many entries it has to have
        :param after: counts only those after the entry with this id
        :param timeout: the longest wait in seconds, at most 600
        :raises WaitTimeoutError: if the time is over
        """
        query = {"inbox": self.name, "count": count, "after": after}
        given = {name: value for name, value in query.items() if value is not None}
        return parse_all(InboxEntry, (await _wait(self._connection, given, timeout))["entries"])

    async def clear(self) -> None:
        """Forgets what it received."""
        await self._connection.json("DELETE", self._path)


class AsyncScenarios:
    """What the scripted agent does for a goal."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> builtins.list[Json]:
        """Lists them."""
        scenarios: builtins.list[Json] = (await self._connection.json("GET", "/_berth/scenarios"))["scenarios"]
        return scenarios

    async def add(self, match: str | Json, steps: Sequence[Json], *, name: str | None = None) -> Json:
        """Adds one before the others.

        :param match: the goal, or ``{"glob": …}``, ``{"regex": …}``
        :param steps: such as ``{"run": "npm test"}``, ``{"ask": …}``, ``{"hold": True}``, ``{"complete": …}``
        """
        body = {"match": match, "steps": [*steps], **({} if name is None else {"name": name})}
        scenario: Json = (await self._connection.json("POST", "/_berth/scenarios", body))["scenario"]
        return scenario

    async def replace(self, scenarios: Sequence[Json]) -> None:
        """Replaces all."""
        await self._connection.json("PUT", "/_berth/scenarios", {"scenarios": [*scenarios]})

    async def clear(self) -> None:
        """Removes all."""
        await self._connection.json("DELETE", "/_berth/scenarios")


async def _wait(connection: AsyncConnection, what: Json, timeout: float) -> dict[str, Any]:
    query = {**what, "timeout_ms": round(timeout * 1000)}
    outcome: dict[str, Any] = await connection.json("GET", "/_berth/wait", params=query)
    if not outcome["matched"]:
        wanted = ", ".join(f"{name}={value}" for name, value in what.items())
        raise WaitTimeoutError(f"Nothing came of {wanted} within {timeout:g} s: {outcome}", outcome)
    return outcome
