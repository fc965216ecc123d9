"""Checks that a webhook comes from berth (standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from .errors import WebhookVerificationError

__all__ = ["verify"]


def verify(headers: Mapping[str, str], body: str | bytes, secret: str, *, tolerance: float = 300.0) -> dict[str, Any]:
    """Checks that a webhook was signed with a secret, and returns its event.

    :param headers: those of the request, in any case
    :param body: the body as it was received, byte by byte: do not parse it before
    :param secret: ``whsec_…``, from the creation of the webhook
    :param tolerance: how old it may be, and how far in the future, in seconds
    :returns: ``event``, ``created_at``, ids and what belongs to the event
    :raises WebhookVerificationError: if it was not signed with the secret, or is too old
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        id, timestamp, signatures = (found[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
    except KeyError as missing:
        raise WebhookVerificationError(f"The header {missing.args[0]} is missing.") from None
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > tolerance:
        raise WebhookVerificationError(f"Its time, {timestamp}, is more than {tolerance:g} s from now.")
    content = body.encode() if isinstance(body, str) else body
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"))
    except binascii.Error:
        raise WebhookVerificationError("The secret is not one of a webhook: it begins with whsec_.") from None
    expected = hmac.digest(key, f"{id}.{timestamp}.".encode() + content, hashlib.sha256)
    wanted = "v1," + base64.b64encode(expected).decode()
    # All are compared, in constant time each.
    if not any([hmac.compare_digest(one.encode(), wanted.encode()) for one in signatures.split(" ")]):
        raise WebhookVerificationError("It was not signed with this secret, or was changed.")
    event: dict[str, Any] = json.loads(content)
    return event
