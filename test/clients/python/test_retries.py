"""Which requests are sent again: counted where they would be sent."""

import json
import warnings

import httpx
import pytest
from berth import Berth, Project, errors
from berth._sync.connection import Connection

REFUSED = httpx.ConnectError("refused")
CUT = httpx.ReadError("cut")
PROJECT = {
    **{"id": "p", "server_id": "s", "name": "site", "slug": "site", "visibility": "public", "lifecycle": "persistent"},
    **{"runtime_status": "unbuilt", "init_phase": "build", "created_at": "2030-01-01T00:00:00.000Z"},
    **{"updated_at": "2030-01-01T00:00:00.000Z", "description": None, "template": None, "directory": "site", "url": None},
}
DONE = httpx.Response(200, json={"id": "x", "deleted": True})


class Instance(httpx.BaseTransport):
    """What responds in place of an instance: each of the outcomes, then 200."""

    def __init__(self, *outcomes: httpx.Response | Exception) -> None:
        self.outcomes = [*outcomes]
        self.keys: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("idempotency-key"))
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return httpx.Response(outcome.status_code, headers=outcome.headers, content=outcome.content)


def connection(instance: Instance) -> Connection:
    return Connection("http://berth.example", "sk_live_x", retries=2, timeout=None, transport=instance)


CREATING = ["/servers", "/keys", "/webhooks", "/servers/s/tasks", "/servers/s/builds", "/servers/s/projects"]
ONCE = [
    *("/servers/s/exec", "/servers/s/exec/stream", "/servers/s/actions", "/servers/s/tasks/t/input"),
    *("/servers/s/tasks/t/cancel", "/servers/s/deployments", "/servers/s/executions/e/input"),
    *("/projects/p/init", "/projects/p/push", "/projects/p/restart", "/webhooks/w/enable", "/_berth/clock"),
]


@pytest.mark.parametrize("path", [*CREATING, *ONCE])
def test_a_post_that_nobody_accepted_is_sent_again(path: str) -> None:
    instance = Instance(REFUSED, REFUSED)
    connection(instance).request("POST", path)
    assert len(instance.keys) == 3


@pytest.mark.parametrize("failure", [CUT, httpx.Response(502), httpx.Response(503), httpx.Response(504)])
@pytest.mark.parametrize("path", CREATING)
def test_a_post_that_creates_is_sent_again_with_the_same_key(path: str, failure: httpx.Response | Exception) -> None:
    instance = Instance(failure, failure)
    connection(instance).request("POST", path)
    [key] = set(instance.keys)
    assert len(instance.keys) == 3 and key


@pytest.mark.parametrize("failure", [CUT, httpx.Response(502), httpx.Response(503), httpx.Response(504)])
@pytest.mark.parametrize("path", ONCE)
def test_any_other_post_is_sent_once(path: str, failure: httpx.Response | Exception) -> None:
    instance = Instance(failure)
    with pytest.raises(errors.BerthError):
        connection(instance).request("POST", path)
    assert instance.keys == [None]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("failure", [CUT, httpx.Response(503)])
def test_what_changes_nothing_twice_is_sent_again(method: str, failure: httpx.Response | Exception) -> None:
    instance = Instance(failure, failure)
    connection(instance).request(method, "/servers/s")
    assert len(instance.keys) == 3


def test_a_patch_is_sent_once() -> None:
    instance = Instance(CUT)
    with pytest.raises(errors.ConnectionError):
        connection(instance).request("PATCH", "/servers/s")
    assert len(instance.keys) == 1


def test_retries_end() -> None:
    instance = Instance(*[CUT] * 9)
    with pytest.raises(errors.ConnectionError) as cut:
        connection(instance).request("GET", "/servers")
    assert len(instance.keys) == 3
    assert isinstance(cut.value, ConnectionError) and cut.value.__cause__ is CUT


def test_500_is_not_tried_again() -> None:
    instance = Instance(httpx.Response(500, json={"error": "internal_error", "message": "no"}))
    with pytest.raises(errors.InternalError):
        connection(instance).request("GET", "/servers")
    assert len(instance.keys) == 1


def test_a_delete_that_finds_nothing_after_a_reset_is_done() -> None:
    missing = httpx.Response(404, json={"error": "not_found", "message": "no"})
    assert connection(Instance(CUT, missing)).json("DELETE", "/servers/s")["deleted"] is True
    with pytest.raises(errors.NotFoundError):
        connection(Instance(REFUSED, missing)).json("DELETE", "/servers/s")


def test_nobody_there() -> None:
    with Berth("http://127.0.0.1:1", "sk_live_x") as berth:
        with pytest.raises(errors.ConnectionError, match="is berth running") as refused:
            berth.servers.list()
    assert (refused.value.status, refused.value.code, refused.value.request_id) == (0, None, None)


def test_another_version_warns_once() -> None:
    other = httpx.Response(200, json={}, headers={"x-berth-version": "9.8.7"})
    with pytest.warns(errors.BerthVersionWarning, match=r"9\.8\.7"):
        connection(Instance(other)).json("GET", "/servers")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        connection(Instance(other)).json("GET", "/servers")


def test_the_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTH_API_KEY", raising=False)
    with pytest.raises(ValueError, match="BERTH_API_KEY is not set"):
        Berth("http://127.0.0.1:1")


def test_a_wait_takes_no_other_object_for_its_own() -> None:
    messages = [{"type": "ready"}, {"type": "secret", "id": "p", "value": {"project_id": "p", "keys": []}}]
    stream = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in messages)
    events = httpx.Response(200, headers={"content-type": "text/event-stream"}, text=stream)
    building, ready = (httpx.Response(200, json=PROJECT | {"init_phase": phase}) for phase in ("build", "ready"))
    project = Project(connection(Instance(events, building, ready)), PROJECT)
    assert (project.wait().init_phase, project.name) == ("ready", "site")
