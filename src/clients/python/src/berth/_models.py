"""The objects of the API as they are read: known fields with their types; unknown fields and values pass."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import attrs

from .errors import BerthError

Tier = Literal["small", "medium", "large"]
Region = Literal["us-east", "us-west", "eu-west"]
Visibility = Literal["public", "private"]
Lifecycle = Literal["persistent", "ephemeral"]

#: JSON as it arrived, of objects that have no class here.
Json = Mapping[str, Any]

Parsed = TypeVar("Parsed")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def fields_of(kind: type[Any], data: Json) -> dict[str, Any]:
    """Returns the arguments of an attrs class from a JSON object, whose names are in snake_case or camelCase.

    :raises BerthError: if a field is missing that the class needs
    """
    found: dict[str, Any] = {}
    for field in attrs.fields(kind):
        wire = field.name if field.name in data else _camel(field.name)
        if wire in data:
            found[field.name] = data[wire]
        elif field.default is attrs.NOTHING:
            raise BerthError(f"The response has no field {wire}: is this berth, and the address of its API?")
    return found


def parse(kind: type[Parsed], data: Json) -> Parsed:
    """Makes an object of an attrs class from JSON."""
    return kind(**fields_of(kind, data))


def parse_all(kind: type[Parsed], data: Sequence[Json]) -> list[Parsed]:
    """Makes objects of an attrs class from a JSON array."""
    return [parse(kind, item) for item in data]


def time_of(text: str) -> datetime:
    """Reads a time of the API (ISO 8601, UTC)."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _optional_time(text: str | None) -> datetime | None:
    return None if text is None else time_of(text)


def _steps(data: Sequence[Json]) -> list[BuildStep]:
    return parse_all(BuildStep, data)


def _refused(data: Sequence[Json]) -> list[RefusedConnection]:
    return parse_all(RefusedConnection, data)


# The classes of objects with methods, `…Fields`: the sync and async ones are derived from these, and refreshed in place.


@attrs.define(slots=False, eq=False)
class ServerFields:
    """A server."""

    id: str
    task: str
    #: ``small``, ``medium`` or ``large``.
    tier: str
    #: ``running``, ``sleeping`` or ``building``.
    status: str
    region: str
    credits_used: float
    storage_used_gb: float
    public_url: str | None = None
    created_at: datetime | None = attrs.field(converter=_optional_time, default=None)


@attrs.define(slots=False, eq=False)
class ExecutionFields:
    """A command that runs on by itself."""

    id: str
    server_id: str
    command: str
    pid: int | None
    #: ``running``, ``exited``, or ``ended`` if something else than the command ended it.
    status: str
    exit_code: int | None
    timed_out: bool
    stdout_bytes: int
    stderr_bytes: int
    started_at: datetime = attrs.field(converter=time_of)
    ended_at: datetime | None = attrs.field(converter=_optional_time, default=None)


@attrs.define(slots=False, eq=False)
class TaskFields:
    """A goal that an agent works on."""

    id: str
    server_id: str
    goal: str
    #: ``running``, ``completed``, ``failed``, ``awaiting_input`` or ``cancelled``.
    status: str
    created_at: datetime = attrs.field(converter=time_of)
    result: str | None = None
    #: What the agent asks; only in ``awaiting_input``.
    question: str | None = None


@attrs.define(slots=False, eq=False)
class BuildFields:
    """A goal that becomes an app with a URL. A build that failed is ``completed`` with a ``url`` of None."""

    id: str
    server_id: str
    goal: str
    #: ``queued``, ``running`` or ``completed``.
    status: str
    steps: list[BuildStep] = attrs.field(converter=_steps)
    artifacts: list[str]
    url: str | None
    created_at: datetime = attrs.field(converter=time_of)


@attrs.define(slots=False, eq=False)
class ProjectFields:
    """Code on a server, and its app behind a URL."""

    id: str
    server_id: str
    name: str
    slug: str
    description: str | None
    visibility: str
    lifecycle: str
    #: ``unbuilt``, ``running`` or ``paused``.
    runtime_status: str
    template: str | None
    directory: str | None
    url: str | None
    #: ``fetch``, ``install``, ``build``, ``awaiting_secrets``, ``start``, ``healthcheck``, ``ready`` or ``failed``; None without
    #: code.
    init_phase: str | None
    created_at: datetime = attrs.field(converter=time_of)
    updated_at: datetime = attrs.field(converter=time_of)
    init_run_id: str | None = None
    init_phases: Sequence[Json] = ()
    app: Json | None = None
    warnings: Sequence[str] = ()
    workers: Sequence[Json] = ()
    crash: Json | None = None
    failed_change: Json | None = None
    port_taken: bool = False


@attrs.frozen
class BuildStep:
    """A phase of a build."""

    key: str
    label: str
    #: ``pending``, ``running`` or ``done``.
    status: str
    skipped: bool = False
    began_at: datetime | None = attrs.field(converter=_optional_time, default=None)
    ended_at: datetime | None = attrs.field(converter=_optional_time, default=None)


@attrs.frozen
class RefusedConnection:
    """A connection of the server that berth refused while a command ran."""

    destination: str
    reason: str
    remedy: str


@attrs.frozen
class ExecResult:
    """What came of a command. One that fails is no error: see ``exit_code``."""

    #: Standard output as text, with U+FFFD for bytes that are not UTF-8.
    stdout: str
    stderr: str
    #: The exact bytes of standard output.
    stdout_bytes: bytes = attrs.field(repr=False)
    stderr_bytes: bytes = attrs.field(repr=False)
    #: 128+n if signal n ended the command.
    exit_code: int
    timed_out: bool
    #: Whether a stream had more than the 10 MiB that are kept.
    truncated: bool
    refused: list[RefusedConnection] = attrs.field(converter=_refused, factory=list)


@attrs.frozen
class Output:
    """A piece of what a command prints."""

    stream: Literal["stdout", "stderr"]
    data: bytes

    @property
    def text(self) -> str:
        """The piece as text, with U+FFFD for bytes that are not UTF-8. It never splits a character."""
        return self.data.decode("utf-8", "replace")


@attrs.frozen
class TaskEvent:
    """An entry of the transcript of a task. Fields that its type does not have are None."""

    seq: int
    at: datetime = attrs.field(converter=time_of)
    #: ``status``, ``message``, ``toolCall``, ``toolResult``, ``terminal``, ``question``, ``answer``, ``usage`` or ``notice``.
    type: str
    status: str | None = None
    result: str | None = None
    text: str | None = None
    call: str | None = None
    tool: str | None = None
    input: Json | None = None
    ok: bool | None = None
    output: Json | None = None
    question: str | None = None
    answer: str | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    cost: float | None = None


@attrs.frozen
class LogLine:
    """A line of the log of a build or a project."""

    seq: int
    at: datetime = attrs.field(converter=time_of)
    source: str
    text: str
    worker: str | None = None
    stream: str | None = None
    phase: str | None = None
    run: str | None = None


@attrs.frozen
class Deployment:
    """What is published of a server."""

    url: str
    #: Whether it responds; None in the response to its creation, which it does.
    live: bool = True
    app: Json | None = None
    warnings: Sequence[str] = ()
    workers: Sequence[Json] = ()
    crash: Json | None = None
    failed_change: Json | None = None
    port_taken: bool = False


@attrs.frozen
class PushResult:
    """What a push did."""

    #: How many files were written and removed.
    written: int
    removed: int
    #: The phase of the bring-up that began; None if the app goes on.
    began: str | None


@attrs.frozen
class OwnKey:
    """The credential of a client: an API key, a program that was let in, or a browser."""

    id: str
    label: str
    #: Whether it reaches listed servers and projects only.
    scoped: bool


def _own_key(data: Json) -> OwnKey:
    return parse(OwnKey, data)


@attrs.frozen
class OwnAccount:
    """The account of a client."""

    id: str
    label: str
    #: Its limits and prices.
    plan: Json
    #: Credits that it may use in a month.
    budget_cap: float
    #: Credits used in this month.
    credits_used: float
    key: OwnKey = attrs.field(converter=_own_key)


@attrs.frozen
class ApiKey:
    """An API key, without its plaintext."""

    id: str
    label: str
    masked: str
    #: The servers that it reaches; empty is all.
    allowed_server_ids: list[str]
    allowed_project_ids: list[str]
    created_at: datetime = attrs.field(converter=time_of)
    last_used_at: datetime | None = attrs.field(converter=_optional_time, default=None)


@attrs.frozen
class CreatedApiKey(ApiKey):
    """A new API key with its plaintext."""

    key: str = attrs.field(kw_only=True, repr=False)


@attrs.frozen
class Webhook:
    """A webhook, without its secret."""

    id: str
    url: str
    #: Names of events; all if it takes all.
    events: list[str]
    created_at: datetime = attrs.field(converter=time_of)
    #: When a receiver switched it off by 410.
    disabled_at: datetime | None = attrs.field(converter=_optional_time, default=None)


@attrs.frozen
class CreatedWebhook(Webhook):
    """A new webhook with the secret that its events are signed with."""

    secret: str = attrs.field(kw_only=True, repr=False)


@attrs.frozen
class Template:
    """A template that projects start from."""

    id: str
    label: str
    description: str
    #: ``name``, ``description``, ``visibility`` and ``lifecycle`` of a project without others.
    defaults: Json


@attrs.frozen
class Change:
    """A change of an object that the credential reaches."""

    #: ``ready`` at the beginning, ``gap`` if changes were missed, else the kind of object, such as ``server``.
    type: str
    id: str | None = None
    server_id: str | None = None
    #: The object as its GET returns it; None if it is gone.
    value: Json | None = None


# The most bytes of each stream that a result keeps, as the API does.
_KEPT_BYTES = 10 * 1024 * 1024


def output_of(stream: str, data: Json) -> Output:
    """Makes a piece of output of an event ``stdout`` or ``stderr``."""
    text: str = data["data"]
    content = base64.b64decode(text) if data.get("encoding") == "base64" else text.encode()
    return Output("stdout" if stream == "stdout" else "stderr", content)


class CollectedOutput:
    """The output of a command, as its result has it."""

    def __init__(self) -> None:
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._is_full = False

    def add(self, output: Output) -> None:
        """Takes the next piece."""
        kept = self._kept[output.stream]
        kept += output.data[: _KEPT_BYTES - len(kept)]
        self._is_full = self._is_full or (len(kept) == _KEPT_BYTES and len(output.data) > 0)

    def result(self, exit_event: Json) -> ExecResult:
        """Returns all that was printed, and how the command ended."""
        stdout, stderr = bytes(self._kept["stdout"]), bytes(self._kept["stderr"])
        known = {
            "stdout": stdout.decode("utf-8", "replace"),
            "stderr": stderr.decode("utf-8", "replace"),
            "stdoutBytes": stdout,
            "stderrBytes": stderr,
            "truncated": bool(exit_event["truncated"]) or self._is_full,
        }
        return parse(ExecResult, {**exit_event, **known})
