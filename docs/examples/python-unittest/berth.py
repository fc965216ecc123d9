"""What tests need of berth. Copy this file; "berth run" sets the variables that it reads."""

import json
import os
import subprocess
import urllib.error
import urllib.request
from urllib.parse import urlencode


class Instance:
    """A berth that runs, with its control API."""

    def __init__(self, base_url, admin_token):
        self.base_url = base_url
        self.admin_token = admin_token

    def control(self, method, path, body=None):
        """One call of the control API; returns the answer."""
        request = urllib.request.Request(
            f"{self.base_url}/_berth{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as refused:
            with refused:
                message = json.load(refused)["message"]
            raise RuntimeError(f"{method} /_berth{path}: {message}") from None

    def create_account(self, **params):
        """An account with a key of its own: what a test does in it, no other test sees."""
        made = self.control("POST", "/accounts", params)
        return Account(self, made["id"], made["api_key"])

    def wait_for(self, **what):
        """Waits for the end of task=ID, for inbox=NAME to get something, and so on; returns what is there then."""
        query = urlencode({"timeout_ms": 10_000, **what})
        outcome = self.control("GET", f"/wait?{query}")
        if not outcome["matched"]:
            raise AssertionError(f"nothing came of {query}: {outcome}")
        return outcome


class Account:
    def __init__(self, instance, account_id, api_key):
        self.instance = instance
        self.id = account_id
        self.base_url = instance.base_url
        self.api_key = api_key

    def change(self, **changes):
        """Changes its plan, its budget or what it has used."""
        return self.instance.control("PATCH", f"/accounts/{self.id}", changes)

    def fail(self, operation, effect, **rest):
        """Has an operation fail for this account; `rest` says how often."""
        match = {"operation": operation, "account_id": self.id}
        return self.instance.control("POST", "/faults", {"match": match, "effect": effect, **rest})

    def remove(self):
        self.instance.control("DELETE", f"/accounts/{self.id}")


class OwnInstance(Instance):
    """An instance of its own, for tests that move the clock, which all accounts of an instance share."""

    def __init__(self, *options):
        command = ["berth", "serve", "--ephemeral", "--port", "0", "--json", "--log-level", "error", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"berth did not start (exit code {self._process.wait()})")
        ready = json.loads(line)
        super().__init__(ready["base_url"], ready["admin_token"])

    def stop(self):
        self._process.terminate()
        self._process.communicate()


# The instance that "berth run" started, which all tests share.
shared = Instance(os.environ["BERTH_BASE_URL"], os.environ["BERTH_ADMIN_TOKEN"])
