"""The objects of the control API as they are read and written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

import attrs

from ._models import Json, time_of
from .errors import BerthError


class ErrorEffect(TypedDict, total=False):
    """A refusal as the API gives it. ``status`` is needed."""

    status: int
    code: str
    message: str
    retry_after: int
    headers: Mapping[str, str]


class RespondEffect(TypedDict, total=False):
    """A response that is exactly so. ``status`` is needed."""

    status: int
    content_type: str
    headers: Mapping[str, str]
    body: str


class TruncateEffect(TypedDict):
    """A connection that is closed after so many bytes of the body."""

    bytes: int


class FaultEffect(TypedDict, total=False):
    """What a fault does: one of these."""

    error: ErrorEffect
    respond: RespondEffect
    delay_ms: int
    disconnect: bool
    lose_response: bool
    truncate: TruncateEffect
    backend: Literal["fail"]


@attrs.frozen
class Fault:
    """A fault of requests."""

    id: str
    match: Json
    effect: Json
    times: int | None
    #: How many requests it matched.
    matched: int
    #: How many it applied to.
    hits: int


@attrs.frozen
class ClockTime:
    """What the clock of an instance shows."""

    now: datetime = attrs.field(converter=time_of)
    frozen: bool
    #: How far it is from the machine's time, in milliseconds.
    offset_ms: int


@attrs.frozen
class InboxEntry:
    """What an inbox received."""

    id: str
    received_at: datetime = attrs.field(converter=time_of)
    headers: Mapping[str, str]
    #: The body as it was received: what ``berth.webhooks.verify`` takes.
    body: str
    #: Whether the signature is right; None if no webhook of the instance leads here.
    verified: bool | None


class WaitTimeoutError(BerthError):
    """Something did not happen in time."""

    def __init__(self, message: str, outcome: Mapping[str, Any]) -> None:
        super().__init__(message)
        #: What was found: the object in its current state.
        self.outcome = outcome
