"""What is tested: a product that has agents write reports, each on a server of its own."""

import base64
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from urllib.parse import urlencode

# How often a call is made while the backend fails.
ATTEMPTS = 2


class OutOfBudget(Exception):
    """The month's budget is used up."""


class PlanTooSmall(Exception):
    """The plan does not allow it."""


class Reports:
    def __init__(self, base_url, api_key):
        self._base_url = base_url
        self._api_key = api_key

    def open(self, tier="small"):
        """Provisions a server; returns its id."""
        return self._call("POST", "/servers", {"task": "reports", "tier": tier})["id"]

    def write(self, server_id, goal):
        """Gives the agent a goal; returns the id of the task, which goes on."""
        return self._call("POST", f"/servers/{server_id}/tasks", {"goal": goal})["task_id"]

    def read(self, server_id):
        """The text of the report."""
        query = urlencode({"path": "report.md"})
        return self._call("GET", f"/servers/{server_id}/files?{query}")["content"]

    def subscribe(self, url, events):
        """Has events sent to a URL; returns the secret that they are signed with."""
        return self._call("POST", "/webhooks", {"url": url, "events": events})["secret"]

    def _call(self, method, path, body=None, attempt=1):
        request = urllib.request.Request(
            self._base_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._api_key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            with refused:
                answer = json.load(refused)
            if refused.code == 402:
                raise OutOfBudget(answer["message"]) from None
            if answer["error"] == "plan_limit":
                raise PlanTooSmall(answer["message"]) from None
            if refused.code == 502 and attempt < ATTEMPTS:
                return self._call(method, path, body, attempt + 1)
            raise RuntimeError(f"{refused.code} {answer['error']}: {answer['message']}") from None


def read_webhook(headers, body, secret):
    """Reads a webhook, if it was signed with our secret (standardwebhooks.com); else ValueError."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}"
    digest = hmac.new(key, signed.encode(), hashlib.sha256).digest()
    expected = f"v1,{base64.b64encode(digest).decode()}"
    if not hmac.compare_digest(headers["webhook-signature"], expected):
        raise ValueError("wrong signature")
    return json.loads(body)
