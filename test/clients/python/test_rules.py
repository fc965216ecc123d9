"""Rules that need no instance: which requests are sent again, counted where they would be sent, and what is taken as a result."""

import base64
import email.utils
import hashlib
import hmac
import json
import time
import warnings
from collections.abc import Iterator

import httpx
import pytest
from berth import Berth, Execution, Project, Task, errors, webhooks
from berth._stream import EventDecoder
from berth._sync.connection import Connection
from berth._sync.execution import collect

REFUSED = httpx.ConnectError("refused")
CUT = httpx.ReadError("cut")
PROJECT = {
    **{"id": "p", "server_id": "s", "name": "site", "slug": "site", "visibility": "public", "lifecycle": "persistent"},
    **{"runtime_status": "unbuilt", "init_phase": "build", "created_at": "2030-01-01T00:00:00.000Z"},
    **{"updated_at": "2030-01-01T00:00:00.000Z", "description": None, "template": None, "directory": "site", "url": None},
}
DONE = httpx.Response(200, json={"id": "x", "deleted": True})


class Cut(httpx.SyncByteStream):
    """A body that breaks off."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __iter__(self) -> Iterator[bytes]:
        yield self._text.encode()
        raise CUT


class Instance(httpx.BaseTransport):
    """What responds in place of an instance: each of the outcomes, then 200."""

    def __init__(self, *outcomes: httpx.Response | Exception) -> None:
        self.outcomes = [*outcomes]
        self.keys: list[str | None] = []
        self.last_event_ids: list[str | None] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.append(request.headers.get("idempotency-key"))
        self.last_event_ids.append(request.headers.get("last-event-id"))
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome.stream, Cut):
            return outcome
        return httpx.Response(outcome.status_code, headers=outcome.headers, content=outcome.content)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the client would have waited between tries, in seconds."""
    waited: list[float] = []
    monkeypatch.setattr("berth._sync.connection.pause", waited.append)
    return waited


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


def test_retries_end(waits: list[float]) -> None:
    instance = Instance(*[CUT] * 9)
    with pytest.raises(errors.ConnectionError) as cut:
        connection(instance).request("GET", "/servers")
    assert len(instance.keys) == 3
    assert 0 < waits[0] <= 0.2 and 0 < waits[1] <= 0.4
    assert isinstance(cut.value, ConnectionError) and cut.value.__cause__ is CUT


def test_500_is_not_tried_again() -> None:
    instance = Instance(httpx.Response(500, json={"error": "internal_error", "message": "no"}))
    with pytest.raises(errors.InternalError):
        connection(instance).request("GET", "/servers")
    assert len(instance.keys) == 1


def test_a_delete_that_finds_nothing_after_a_reset_is_done() -> None:
    missing = httpx.Response(404, json={"error": "not_found", "message": "no"})
    for uncertain in (CUT, httpx.Response(503)):
        assert connection(Instance(uncertain, missing)).json("DELETE", "/servers/s")["deleted"] is True
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
    with pytest.raises(ValueError, match="'127.0.0.1:4747', which is no http or https URL"):
        Berth("127.0.0.1:4747", "sk_live_x")


def test_a_slow_response_is_not_awaited_again() -> None:
    instance = Instance(httpx.ReadTimeout("slow"))
    with pytest.raises(errors.ConnectionError, match="did not respond in time"):
        connection(instance).request("GET", "/servers")
    assert len(instance.keys) == 1


def test_a_response_that_breaks_off_is_a_failure_of_its_try() -> None:
    instance = Instance(httpx.Response(200, stream=Cut('{"id":')))
    assert connection(instance).json("GET", "/servers/s")["id"] == "x"
    assert len(instance.keys) == 2


def test_a_body_that_is_read_while_it_is_sent_is_sent_once() -> None:
    for failure in (httpx.Response(503), httpx.Response(429, headers={"retry-after": "1"})):
        instance = Instance(failure)
        with pytest.raises(errors.BerthError):
            connection(instance).request("PUT", "/servers/s/files/content", content=iter([b"x"]))
        assert len(instance.keys) == 1


def test_what_a_response_asks_to_wait_is_waited(waits: list[float]) -> None:
    date = email.utils.formatdate(time.time() + 20, usegmt=True)
    for status, asked in ((429, "7"), (503, "7"), (429, date)):
        connection(Instance(httpx.Response(status, headers={"retry-after": asked}))).request("GET", "/servers")
    assert waits[:2] == [7, 7] and 10 < waits[2] <= 20
    unasked = Instance(httpx.Response(429, json={"error": "too_many_requests", "message": "no"}))
    with pytest.raises(errors.TooManyRequestsError):
        connection(unasked).request("GET", "/servers")
    assert len(unasked.keys) == 1


def test_a_success_that_is_not_berths_is_an_error() -> None:
    with pytest.raises(errors.BerthError, match="not berth's"):
        connection(Instance(httpx.Response(200, text="<h1>Welcome</h1>"))).json("GET", "/servers")


def events(*items: tuple[str | None, str, object], cut: bool = False) -> httpx.Response:
    """A stream of events, each with its id, its name and its data."""
    text = "".join(
        ("" if id is None else f"id: {id}\n") + f"event: {name}\ndata: {json.dumps(data)}\n\n" for id, name, data in items
    )
    headers = {"content-type": "text/event-stream"}
    return httpx.Response(200, headers=headers, **({"stream": Cut(text)} if cut else {"text": text}))


def test_a_stream_that_resumes_goes_on_after_the_last_event() -> None:
    parts = [events((str(n), "line", n), cut=True) for n in range(1, 6)]
    instance = Instance(*parts, events(("6", "line", 6)))
    # More often than a request is tried: each event that arrives is a new beginning.
    found = [event.id for event in connection(instance).events("/logs", resumes=True)]
    assert found == ["1", "2", "3", "4", "5", "6"]
    assert instance.last_event_ids == [None, "1", "2", "3", "4", "5"]


def test_any_other_stream_that_breaks_off_is_an_error() -> None:
    instance = Instance(events((None, "stdout", {"data": "x"}), cut=True))
    with pytest.raises(errors.ConnectionError):
        collect(connection(instance).events("/servers/s/exec", method="POST", body={}), None, None)
    assert len(instance.keys) == 1


def test_a_stream_that_ends_early_is_no_result() -> None:
    stream = connection(Instance(events((None, "stdout", {"data": "x"})))).events("/servers/s/exec", method="POST")
    with pytest.raises(errors.ConnectionError, match="before the command ended"):
        collect(stream, None, None)


def test_an_error_in_a_stream_has_its_class() -> None:
    failure = {"error": "compute_backend_error", "message": "The sandbox ended."}
    with pytest.raises(errors.ComputeBackendError, match="The sandbox ended"):
        list(connection(Instance(events((None, "error", failure)))).events("/logs", resumes=True))


def test_a_stream_that_is_refused_has_the_class_of_the_refusal() -> None:
    missing = httpx.Response(404, json={"error": "not_found", "message": "no"})
    with pytest.raises(errors.NotFoundError):
        list(connection(Instance(missing)).events("/logs"))


def test_the_output_of_an_execution_goes_on_where_it_broke_off() -> None:
    fields = {"id": "e", "server_id": "s", "command": "x", "pid": 1, "status": "running", "exit_code": None}
    more = {"timed_out": False, "stdout_bytes": 0, "stderr_bytes": 0, "started_at": "2030-01-01T00:00:00.000Z"}
    first = events(("1", "stdout", {"data": "one "}), cut=True)
    rest = events(("2", "stdout", {"data": "/wA=", "encoding": "base64"}))
    execution = Execution(connection(Instance(first, rest)), {**fields, **more})
    assert b"".join(piece.data for piece in execution.output()) == b"one \xff\x00"


def test_a_result_keeps_the_first_10_mib_of_each_stream() -> None:
    six = {"data": "x" * (6 * 1024 * 1024)}
    end = {"exitCode": 0, "timedOut": False, "truncated": False}
    stream = events((None, "stdout", six), (None, "stdout", six), (None, "exit", end))
    result = collect(connection(Instance(stream)).events("/servers/s/exec", method="POST"), None, None)
    assert (len(result.stdout_bytes), result.truncated) == (10 * 1024 * 1024, True)


def test_entries_of_a_transcript_are_those_with_an_id() -> None:
    at = "2030-01-01T00:00:00.000Z"
    task = {"id": "t", "serverId": "s", "goal": "x", "status": "running", "createdAt": at}
    piece = (None, "output", {"type": "output", "text": "x"})
    stream = events(piece, ("1", "message", {"seq": 1, "at": at, "type": "message", "text": "hi"}), piece)
    assert [entry.text for entry in Task(connection(Instance(stream)), task).events()] == ["hi"]


def test_a_stream_of_changes_that_broke_off_has_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berth._sync.changes.pause", lambda seconds: None)
    server = (None, "server", {"type": "server", "id": "s", "value": None})
    ready = (None, "ready", {"type": "ready"})
    instance = Instance(events(ready, server, cut=True), events(ready, server))
    with Berth("http://berth.example", "sk_live_x", transport=instance) as berth:
        changes = berth.changes()
        assert [next(changes).type for _ in range(4)] == ["ready", "server", "gap", "server"]
        changes.close()


def test_events_are_told_apart_however_their_bytes_arrive() -> None:
    text = "id: 1\r\nevent: a\r\ndata: ü\r\n\r\n: alive\n\ndata: two\ndata: lines\r\r".encode()
    for size in (1, 2, 3, len(text)):
        decoder = EventDecoder()
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        found = [event for chunk in [*chunks, b"\n"] for event in decoder.feed(chunk)]
        assert [(one.id, one.event, one.data) for one in found] == [("1", "a", "ü"), (None, "message", "two\nlines")]


def signed(secret: bytes, body: str, timestamp: str) -> dict[str, str]:
    made = hmac.digest(secret, f"msg_1.{timestamp}.{body}".encode(), hashlib.sha256)
    return {
        "Webhook-Id": "msg_1",
        "Webhook-Timestamp": timestamp,
        # A receiver may be given several while a secret is replaced.
        "Webhook-Signature": f"v1,bm90IHRoaXMgb25l v1,{base64.b64encode(made).decode()}",
    }


def test_a_webhook_is_taken_by_any_of_its_signatures_and_at_its_time() -> None:
    key = b"0123456789abcdef01234567"
    secret, body = f"whsec_{base64.b64encode(key).decode()}", '{"event":"task.completed"}'
    now = int(time.time())
    assert webhooks.verify(signed(key, body, str(now)), body, secret)["event"] == "task.completed"
    assert webhooks.verify(signed(key, body, str(now - 400)), body, secret, tolerance=500)
    for timestamp in (str(now - 310), str(now + 310), "soon"):
        with pytest.raises(errors.WebhookVerificationError, match="time"):
            webhooks.verify(signed(key, body, timestamp), body, secret)
    for other in (f"whsec_{base64.b64encode(b'another secret').decode()}", "whsec_x"):
        with pytest.raises(errors.WebhookVerificationError):
            webhooks.verify(signed(key, body, str(now)), body, other)


def test_a_wait_takes_no_other_object_for_its_own() -> None:
    secret = {"type": "secret", "id": "p", "value": {"project_id": "p", "keys": []}}
    other = {"type": "project", "id": "q", "value": None}
    stream = events((None, "ready", {"type": "ready"}), (None, "project", other), (None, "secret", secret))
    building, ready = (httpx.Response(200, json=PROJECT | {"init_phase": phase}) for phase in ("build", "ready"))
    instance = Instance(stream, building, ready)
    project = Project(connection(instance), PROJECT)
    assert (project.wait().init_phase, project.name) == ("ready", "site")
    assert len(instance.keys) == 3
