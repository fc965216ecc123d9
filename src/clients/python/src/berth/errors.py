"""The errors of berth's API and of the connection to it."""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx

# How much of a body that is not berth's an error shows, in characters.
_SHOWN = 200


class BerthError(Exception):
    """A request that failed. Its subclasses say how; an unknown code of a later berth is a plain ``BerthError``."""

    def __init__(
        self, message: str, *, status: int = 0, code: str | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        #: HTTP status of the response; 0 if none arrived, or not whole.
        self.status = status
        #: The code in the field ``error`` of the response; None if the response is not berth's, or none arrived.
        self.code = code
        #: The id of the request, which berth's log repeats; None if the response has none.
        self.request_id = request_id

    def __str__(self) -> str:
        return self.message


class BadRequestError(BerthError):
    """400, 405, 415: the request is wrong; the message names the field."""


class AuthenticationError(BerthError):
    """401: the credential is missing or invalid."""


class BudgetExceededError(BerthError):
    """402: the budget of the account is used up."""


class ForbiddenError(BerthError):
    """403 ``forbidden``: the key may not do this."""


class PlanLimitError(BerthError):
    """403 ``plan_limit``: the plan or the budget does not allow it."""


class NotFoundError(BerthError):
    """404: it does not exist, or is out of the key's reach."""


class PayloadTooLargeError(BerthError):
    """413: the body is larger than 32 MiB."""


class TooManyRequestsError(BerthError):
    """429: too many requests, and the time to wait is longer than the client waits by itself."""


class InternalError(BerthError):
    """500: an internal error of berth; its log has the request id."""


class ComputeBackendError(BerthError):
    """502: the sandbox does not start, or does not take the command."""


class UnavailableError(BerthError):
    """503: berth stops or begins anew."""


class ConnectionError(BerthError, builtins.ConnectionError):
    """No response, or one that broke off: the connection was refused, closed or cut. ``__cause__`` is the error of httpx."""


class ProjectFailedError(BerthError):
    """A project whose bring-up failed."""

    def __init__(self, message: str, *, project_id: str, phase: str | None, log: str) -> None:
        super().__init__(message)
        self.project_id = project_id
        #: The phase that failed, such as ``install``.
        self.phase = phase
        #: The end of its log, which the message has too.
        self.log = log


class WebhookVerificationError(ValueError):
    """A webhook that was not signed with the secret, or is too old."""


class BerthVersionWarning(UserWarning):
    """berth has another version than this package."""


_CLASSES: dict[str, type[BerthError]] = {
    "bad_request": BadRequestError,
    "missing_or_invalid_api_key": AuthenticationError,
    "budget_exceeded": BudgetExceededError,
    "forbidden": ForbiddenError,
    "plan_limit": PlanLimitError,
    "not_found": NotFoundError,
    "method_not_allowed": BadRequestError,
    "payload_too_large": PayloadTooLargeError,
    "unsupported_media_type": BadRequestError,
    "upgrade_required": BadRequestError,
    "too_many_requests": TooManyRequestsError,
    "internal_error": InternalError,
    "compute_backend_error": ComputeBackendError,
    "service_unavailable": UnavailableError,
}


def error_of(response: httpx.Response) -> BerthError:
    """Makes the error of a failed response, whose body has been read."""
    request_id = response.headers.get("x-request-id")
    code, message = _parsed(response.text)
    if code is not None and message is not None:
        kind = _CLASSES.get(code, BerthError)
        return kind(message, status=response.status_code, code=code, request_id=request_id)
    request = response.request
    content_type = response.headers.get("content-type", "no content type")
    return BerthError(
        f"{request.method} {request.url.path} got {response.status_code} with a body ({content_type}) that is not berth's: "
        f"{response.text.strip()[:_SHOWN] or 'empty'}",
        status=response.status_code,
        request_id=request_id,
    )


def error_of_event(data: str, request_id: str | None) -> BerthError:
    """Makes the error of an event ``error`` of a stream, whose data is the body of a failure."""
    code, message = _parsed(data)
    kind = _CLASSES.get(code or "", BerthError)
    return kind(message or f"The stream ended with an error: {data}", code=code, request_id=request_id)


def _parsed(text: str) -> tuple[str | None, str | None]:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None, None
    if not isinstance(value, dict):
        return None, None
    code, message = value.get("error"), value.get("message")
    return code if isinstance(code, str) else None, message if isinstance(message, str) else None
