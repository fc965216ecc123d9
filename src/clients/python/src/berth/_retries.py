"""Which requests are sent again, and when: the rules, without input or output of their own."""

from __future__ import annotations

import email.utils
import random
import re
import time
import uuid

import httpx

from .errors import BerthError, ConnectionError

# The longest Retry-After that a client waits by itself, in seconds.
_LONGEST_WAIT = 30.0

# The upper end of the first random delay between two tries, in seconds; it doubles with each try.
_FIRST_DELAY = 0.2

# POSTs that only create something: an Idempotency-Key makes them safe to repeat.
_CREATES = re.compile(r"/(?:servers|keys|webhooks|servers/[^/]+/(?:projects|tasks|builds))")

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})

# The extension of a request that names what its caller does with the response.
STREAMED = "berth.streamed"


class Tries:
    """The tries of one request.

    It is sent again if nothing was sent (the connection was refused), if it changes nothing or the same once more (GET, PUT,
    DELETE), or if it only creates something, with the same Idempotency-Key. Anything else is sent once.
    """

    def __init__(self, request: httpx.Request, retries: int, base_path: str) -> None:
        self._request = request
        self._left = retries
        self._failures = 0
        # Whether an earlier try may have had its effect.
        self._uncertain = False
        path = request.url.path.removeprefix(base_path)
        creates = request.method == "POST" and _CREATES.fullmatch(path) is not None
        self._is_sent_once = "transfer-encoding" in request.headers
        self._repeatable = (creates or request.method in _REPEATABLE) and not self._is_sent_once
        if creates and "idempotency-key" not in request.headers:
            request.headers["idempotency-key"] = str(uuid.uuid4())

    def after_error(self, error: httpx.TransportError) -> float:
        """Returns the seconds to wait before the next try.

        :raises ConnectionError: if there is none
        """
        nothing_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        slow = isinstance(error, httpx.TimeoutException) and not nothing_sent
        if self._left == 0 or slow or not (nothing_sent or self._repeatable):
            url = self._request.url
            what = f"{self._request.method} {url.path}: {url.scheme}://{url.netloc.decode()}"
            if nothing_sent:
                why = f"does not accept connections: is berth running? ({error})"
            elif slow:
                why = f"did not respond in time: give the client a longer timeout ({type(error).__name__})."
            else:
                why = "closed the connection without a whole response."
            raise ConnectionError(f"{what} {why}") from error
        self._uncertain = self._uncertain or not nothing_sent
        return self._next_delay()

    def after_response(self, response: httpx.Response) -> float | None:
        """Returns the seconds to wait before the next try; None if the response counts."""
        if self._left == 0:
            return None
        given = _retry_after(response)
        if response.status_code == 429 and given is not None and not self._is_sent_once:
            self._next_delay()
            return given
        if self._repeatable and response.status_code in (502, 503, 504):
            self._uncertain = True
            delay = self._next_delay()
            return delay if given is None else given
        return None

    def outcome(self, response: httpx.Response) -> httpx.Response:
        """Returns the response as the caller gets it: a DELETE that finds nothing after an uncertain try has been done."""
        if not (self._uncertain and self._request.method == "DELETE" and response.status_code == 404):
            return response
        name = self._request.url.path.rpartition("/")[2]
        path = self._request.url.params.get("path", name)
        return httpx.Response(200, json={"id": name, "name": name, "path": path, "deleted": True})

    def _next_delay(self) -> float:
        bound = _FIRST_DELAY * 2.0**self._failures
        self._failures += 1
        self._left -= 1
        return random.uniform(0, bound)


def refuse_other_origin(request: httpx.Request, response: httpx.Response) -> None:
    """Refuses a redirect to another origin, which must not get the credential.

    :raises BerthError: if the response is one
    """
    if not response.has_redirect_location:
        return
    target = request.url.join(response.headers["location"])
    if _origin(target) == _origin(request.url):
        return
    raise BerthError(
        f"{request.method} {request.url.path} was redirected to {target.scheme}://{target.netloc.decode()}, which is another "
        "origin: the credential is not sent there. Set base_url to the right address.",
        status=response.status_code,
        request_id=response.headers.get("x-request-id"),
    )


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


def _retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds of Retry-After; None if it is missing, or longer than a client waits."""
    given = response.headers.get("retry-after", "")
    if given.isdecimal():
        seconds = float(given)
    else:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if seconds <= _LONGEST_WAIT else None
