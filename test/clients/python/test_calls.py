"""The calls of calls.json. A test has the id of its call, with "_" for "-"."""

import http.server
import threading
import time
from pathlib import Path

import httpx
import pytest
from berth import Berth, OwnKey, Server, errors, webhooks
from berth.api.processes import processes_list
from berth.testing import Account, Control, WaitTimeoutError


def processes(berth: Berth, server: Server) -> list[str]:
    listed = processes_list.sync(server.id, client=berth.api)
    return [process.command for process in listed.processes]


def test_server(berth: Berth) -> None:
    server = berth.servers.create("calls", tier="small")
    assert (server.status, server.tier, server.task) == ("running", "small", "calls")
    server.update(task="renamed")
    assert server.task == "renamed"
    assert berth.servers.get(server.id).task == "renamed"
    assert [one.id for one in berth.servers.list()] == [server.id]
    assert server.stop().status == "sleeping"
    assert server.start().status == "running"
    server.delete()
    with berth.servers.create("deleted in its block") as gone:
        gone.delete()
    assert berth.servers.list() == []


def test_low_level(berth: Berth, server: Server) -> None:
    server.execute("sleep 60")
    assert any("sleep 60" in command for command in processes(berth, server))


def test_exec(server: Server) -> None:
    result = server.exec("echo out; echo err >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert not result.timed_out and not result.truncated
    assert server.exec(r"printf '\377\0a'").stdout_bytes == b"\xff\x00a"


def test_exec_options(server: Server) -> None:
    server.files.write("below/file", "")
    result = server.exec("pwd; cat; echo $GREETING", cwd="below", stdin="typed\n", env={"GREETING": "hello"})
    where, *rest = result.stdout.splitlines()
    assert where.endswith("/below") and rest == ["typed", "hello"]
    assert server.exec("sleep 30", timeout=0.2).timed_out


def test_exec_callbacks(server: Server) -> None:
    server.exec("mkfifo gate")
    pieces = []

    def on_stdout(text: str) -> None:
        if not pieces:
            assert text == "one\n"
            # The command waits for this: output arrives while it runs.
            server.exec("echo open > gate")
        pieces.append(text)

    result = server.exec("echo one; read line < gate; echo two", on_stdout=on_stdout)
    assert "".join(pieces) == result.stdout == "one\ntwo\n"


def test_exec_abort(berth: Berth, server: Server) -> None:
    class GivenUp(Exception):
        pass

    def give_up(text: str) -> None:
        raise GivenUp

    with pytest.raises(GivenUp):
        server.exec("echo $$; exec sleep 61", on_stdout=give_up)
    for _ in range(100):
        if not any("sleep 61" in command for command in processes(berth, server)):
            return
        time.sleep(0.05)
    pytest.fail("the command still runs")


def test_execute(server: Server) -> None:
    execution = server.execute("read line; echo got $line", open_stdin=True)
    assert execution.status == "running"
    execution.write("hello\n")
    result = execution.wait()
    assert (result.stdout, result.exit_code, execution.status) == ("got hello\n", 0, "exited")
    assert [one.id for one in server.executions()] == [execution.id]
    assert [piece.text for piece in execution.output()] == ["got hello\n"]
    with server.execute("sleep 62") as sleeping:
        pass
    assert sleeping.refresh().status == "exited"


def test_files_text(server: Server) -> None:
    server.files.write("notes/héllo.txt", "grüße\n")
    assert server.files.read("notes/héllo.txt") == "grüße\n"
    assert server.files.list() == ["notes/héllo.txt"]
    server.files.delete("notes/héllo.txt")
    with pytest.raises(errors.NotFoundError):
        server.files.read("notes/héllo.txt")


def test_files_bytes(server: Server) -> None:
    server.files.write("logo.bin", b"\x00\xff\x80")
    assert server.files.read_bytes("logo.bin") == b"\x00\xff\x80"
    large = bytes(range(256)) * (3 * 1024 * 4)
    server.files.write("large.bin", large)
    assert server.files.read_bytes("large.bin") == large


def test_directory(server: Server, tmp_path: Path) -> None:
    local = tmp_path / "local"
    (local / "deep/er").mkdir(parents=True)
    (local / "deep/er/text.txt").write_text("nested\n")
    (local / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (local / "run.sh").chmod(0o755)
    (local / "data.bin").write_bytes(b"\x00\xff" * 1000)
    (local / "link").symlink_to("deep/er/text.txt")
    for left_out in ("node_modules", ".git"):
        (local / left_out).mkdir()
        (local / left_out / "file").write_text("")
    server.files.upload_directory(local, "tree")
    assert server.exec("tree/run.sh").stdout == "ran\n"
    assert server.files.list(all=True) == ["tree/data.bin", "tree/deep/er/text.txt", "tree/run.sh"]
    fetched = tmp_path / "fetched"
    server.files.download_directory("tree", fetched)
    names = sorted(str(path.relative_to(fetched)) for path in fetched.rglob("*") if not path.is_dir())
    assert names == ["data.bin", "deep/er/text.txt", "link", "run.sh"]
    for name in names:
        assert (fetched / name).read_bytes() == (local / name).read_bytes()
    with pytest.raises(FileExistsError):
        server.files.download_directory("tree", fetched)
    with pytest.raises(errors.ConnectionError):
        server.files.download_directory("missing", tmp_path / "missing")


def test_task(server: Server) -> None:
    events = []
    task = server.tasks.run("write: report.md <<< All is well.", on_event=events.append)
    assert task.status == "completed"
    assert server.files.read("report.md") == "All is well."
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    assert events[-1].status == "completed"
    assert [event.seq for event in task.events()] == [event.seq for event in events]


def test_task_question(server: Server) -> None:
    asked = []

    def answer(question: str) -> str:
        asked.append(question)
        return "red"

    goal = "ask: Which colour?\ncomplete: done"
    assert server.tasks.run(goal, on_question=answer).status == "completed"
    events = []
    assert server.tasks.run(goal, on_question=answer, on_event=events.append).status == "completed"
    assert asked == ["Which colour?", "Which colour?"]
    assert [event.seq for event in events] == [*range(1, len(events) + 1)]
    task = server.tasks.run(goal)
    assert (task.status, task.question) == ("awaiting_input", "Which colour?")
    assert server.tasks.run(goal, on_event=lambda event: None).status == "awaiting_input"
    assert server.tasks.run(goal, on_question=lambda question: None).status == "awaiting_input"


def test_build(server: Server) -> None:
    lines = []
    build = server.builds.run("A page\nwrite: index.html <<< <h1>Hello</h1>", on_log=lines.append)
    assert build.status == "completed" and build.url is not None
    assert httpx.get(build.url).text == "<h1>Hello</h1>"
    assert lines and [line.text for line in build.logs()] == [line.text for line in lines]
    assert {step.key for step in build.steps} >= {"plan", "deploy"}


def test_project(server: Server, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("one")
    (tmp_path / "other.txt").write_text("unchanged")
    project = server.projects.create(name="page", directory=tmp_path, visibility="public")
    assert project.init_phase == "ready" and project.url is not None
    assert httpx.get(project.url).text == "one"
    (tmp_path / "index.html").write_text("two")
    assert project.push(tmp_path).written == 1
    assert httpx.get(project.url).text == "two"
    project.delete()
    assert server.projects.list() == []
    (tmp_path / "package.json").write_text('{"scripts": {"start": "echo broken; exit 1"}}')
    with pytest.raises(errors.ProjectFailedError) as failed:
        server.projects.create(directory=tmp_path)
    assert (failed.value.phase, "broken" in failed.value.log) == ("start", True)
    assert [one.id for one in server.projects.list()] == [failed.value.project_id]


def test_project_secrets(berth: Berth, server: Server) -> None:
    project = server.projects.create(name="blank")
    project.set_secrets({"TOKEN": "secret", "OLD": None})
    assert [one.id for one in server.projects.list()] == [project.id]
    assert [one.id for one in berth.projects.list()] == [project.id]
    assert berth.projects.get(project.id).slug == project.slug


def test_deployment(server: Server) -> None:
    server.files.write("index.html", "published")
    deployment = server.deployments.create()
    assert httpx.get(deployment.url).text == "published"
    assert [one.url for one in server.deployments.list()] == [deployment.url]
    server.deployments.delete()


def test_keys(berth: Berth, berth_account: Account, server: Server) -> None:
    berth.servers.create("other")
    key = berth.keys.create("scoped", allowed_server_ids=[server.id])
    assert key.key not in repr(key)
    with Berth(berth.base_url, key.key) as scoped:
        assert [one.id for one in scoped.servers.list()] == [server.id]
        with pytest.raises(errors.ForbiddenError):
            scoped.servers.create()
        own, reached = berth.account(), scoped.account()
        assert (own.id, own.key.scoped, "small" in own.plan["tiers"]) == (berth_account.id, False, True)
        assert (reached.id, reached.key) == (berth_account.id, OwnKey(key.id, "scoped", scoped=True))
        berth.keys.delete(key.id)
        with pytest.raises(errors.AuthenticationError):
            scoped.servers.list()


def test_errors(berth: Berth, berth_account: Account, server: Server) -> None:
    with pytest.raises(errors.NotFoundError) as missing:
        berth.servers.get("srv_00000000000000000000000000")
    assert missing.value.code == "not_found"
    assert missing.value.status == 404
    assert missing.value.request_id
    assert str(missing.value) == missing.value.message != ""
    with pytest.raises(errors.BadRequestError):
        berth.servers.create(tier="huge")  # type: ignore[arg-type]
    berth_account.change(limits={"tiers": ["small"]})
    with pytest.raises(errors.PlanLimitError):
        berth.servers.create(tier="large")
    berth_account.change(budget_cap=10, credits_used=10)
    with pytest.raises(errors.BudgetExceededError):
        server.tasks.create("complete: done")


def test_webhook(berth: Berth, berth_account: Account, server: Server) -> None:
    inbox = berth_account.inbox()
    secret = berth.webhooks.create(inbox.url, events=["task.completed"]).secret
    server.tasks.run("complete: done")
    [entry] = inbox.wait()
    assert inbox.entries() == [entry]
    assert entry.verified
    assert webhooks.verify(entry.headers, entry.body, secret)["event"] == "task.completed"
    assert webhooks.verify(entry.headers, entry.body.encode(), secret)["event"] == "task.completed"
    with pytest.raises(errors.WebhookVerificationError):
        webhooks.verify(entry.headers, entry.body + " ", secret)
    with pytest.raises(errors.WebhookVerificationError):
        old = {**entry.headers, "webhook-timestamp": str(int(time.time()) - 301)}
        webhooks.verify(old, entry.body, secret)
    with pytest.raises(errors.WebhookVerificationError):
        webhooks.verify({}, entry.body, secret)


def test_changes(berth: Berth) -> None:
    changes = berth.changes()
    assert next(changes).type == "ready"
    server = berth.servers.create("changes")
    change = next(one for one in changes if one.type == "server" and one.id == server.id)
    assert change.value is not None and change.value["task"] == "changes"
    changes.close()


def creates_once(berth: Berth, account: Account, control: Control, effect: dict[str, object]) -> None:
    fault = account.fail("servers.create", effect, times=1)  # type: ignore[arg-type]
    server = berth.servers.create("once")
    assert [one.id for one in berth.servers.list()] == [server.id]
    assert [one.hits for one in control.faults.list() if one.id == fault.id] == [1]


def test_retry_lost_response(berth: Berth, berth_account: Account, berth_control: Control) -> None:
    creates_once(berth, berth_account, berth_control, {"lose_response": True})


def test_retry_disconnect(berth: Berth, berth_account: Account, berth_control: Control) -> None:
    creates_once(berth, berth_account, berth_control, {"disconnect": True})


def test_retry_503(berth: Berth, berth_account: Account, berth_control: Control) -> None:
    creates_once(berth, berth_account, berth_control, {"error": {"status": 503}})


def test_retry_429(berth: Berth, berth_account: Account) -> None:
    berth_account.fail("servers.list", {"error": {"status": 429, "retry_after": 1}}, times=1)
    began = time.monotonic()
    assert berth.servers.list() == []
    assert time.monotonic() - began >= 1
    berth_account.fail("servers.list", {"error": {"status": 429, "retry_after": 31}}, times=1)
    with pytest.raises(errors.TooManyRequestsError):
        berth.servers.list()


def test_retry_delete(berth: Berth, berth_account: Account, server: Server) -> None:
    berth_account.fail("servers.delete", {"lose_response": True}, times=1)
    server.delete()
    assert berth.servers.list() == []
    with pytest.raises(errors.NotFoundError):
        server.delete()


def test_exec_once(berth_account: Account, server: Server) -> None:
    server.files.write("log", "")
    for effect, lines in (({"lose_response": True}, 1), ({"disconnect": True}, 1), ({"error": {"status": 503}}, 1)):
        berth_account.fail("exec.run", effect, times=1)  # type: ignore[arg-type]
        with pytest.raises(errors.BerthError):
            server.exec("echo x >> log")
        assert server.files.read("log").count("x") == lines


def test_truncated_stream(berth_account: Account, server: Server) -> None:
    berth_account.fail("exec.run", {"truncate": {"bytes": 60}}, times=1)
    with pytest.raises(errors.ConnectionError):
        server.exec("seq 1 1000", on_stdout=lambda text: None)


def test_redirect(berth: Berth, berth_account: Account) -> None:
    received = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(self.headers)
            self.send_response(200)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        location = f"http://127.0.0.1:{other.server_port}/servers"
        respond = {"status": 307, "headers": {"location": location}}
        berth_account.fail("servers.list", {"respond": respond}, times=1)  # type: ignore[typeddict-item]
        with pytest.raises(errors.BerthError, match=f"127.0.0.1:{other.server_port}"):
            berth.servers.list()
        other.shutdown()
    assert received == []


def test_unknown_fields(berth: Berth, berth_account: Account, server: Server) -> None:
    body = (
        '{"server":{"id":"%s","task":"","tier":"giant","status":"dreaming","region":"moon","creditsUsed":0,'
        '"storageUsedGb":0,"publicUrl":null,"createdAt":"2030-01-01T00:00:00.000Z","colour":"red"}}' % server.id
    )
    respond = {"status": 200, "content_type": "application/json", "body": body}
    berth_account.fail("servers.get", {"respond": respond}, times=1)  # type: ignore[typeddict-item]
    got = berth.servers.get(server.id)
    assert (got.id, got.status, got.tier) == (server.id, "dreaming", "giant")


def test_proxy_page(berth: Berth, berth_account: Account, server: Server) -> None:
    respond = {"status": 502, "content_type": "text/html", "body": "<h1>Bad Gateway</h1>"}
    fault = berth_account.fail("servers.get", {"respond": respond}, times=3)  # type: ignore[typeddict-item]
    with pytest.raises(errors.BerthError, match="not berth's: <h1>Bad Gateway") as refused:
        berth.servers.get(server.id)
    assert (refused.value.status, refused.value.code, type(refused.value)) == (502, None, errors.BerthError)
    assert fault.times == 3


def test_account(berth: Berth, server: Server, berth_control: Control) -> None:
    with berth_control.account(label="other") as other:
        assert other.berth.servers.list() == []
        assert len(berth.servers.list()) == 1
        key = other.api_key
    with Berth(berth.base_url, key) as gone, pytest.raises(errors.AuthenticationError):
        gone.servers.list()


def test_clock(berth_control: Control) -> None:
    before = berth_control.clock.read()
    after = berth_control.clock.advance("2h")
    berth_control.clock.reset()
    assert 7200 <= (after.now - before.now).total_seconds() < 7260


def test_wait(berth_control: Control, server: Server) -> None:
    task = server.tasks.create("complete: done")
    assert berth_control.wait(task=task.id)["task"]["status"] == "completed"
    with pytest.raises(WaitTimeoutError) as late:
        berth_control.wait(task=task.id, until="awaiting_input", timeout=0)
    assert late.value.outcome["task"]["status"] == "completed"


def test_scenarios(berth_control: Control, berth_account: Account, server: Server) -> None:
    match = {"glob": "hold on", "account_id": berth_account.id}
    scenario = berth_control.scenarios.add(match, [{"hold": True}, {"complete": "released"}])
    assert scenario["id"] in [one["id"] for one in berth_control.scenarios.list()]
    task = server.tasks.create("hold on")
    berth_control.wait(task=task.id, until="held")
    berth_control.release(task.id)
    assert task.wait().status == "completed"
    assert task.result == "released"
    berth_control.scenarios.clear()
    assert berth_control.scenarios.list() == []
