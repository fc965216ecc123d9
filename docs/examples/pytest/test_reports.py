import pytest

from berth.testing import start
from reports import OutOfBudget, PlanTooSmall, Reports, read_webhook


# The client brings the fixtures. "berth_account" is an account for each test: none meets the servers of another.
@pytest.fixture
def reports(berth_account):
    return Reports(berth_account.base_url, berth_account.api_key)


def test_the_agent_writes_the_report(reports, berth_control):
    server = reports.open()
    task = reports.write(server, "write: report.md <<< All is well.")
    berth_control.wait(task=task)
    assert reports.read(server) == "All is well."


def test_a_webhook_is_believed_when_it_is_signed_and_only_then(reports, berth_account):
    # An inbox is there as soon as it is named. It keeps what it gets, and says whether the signature is right.
    inbox = berth_account.inbox()
    secret = reports.subscribe(inbox.url, ["task.completed"])
    task = reports.write(reports.open(), "complete: done")
    [entry] = inbox.wait()
    assert entry.verified
    event = read_webhook(entry.headers, entry.body, secret)
    assert (event["event"], event["task_id"]) == ("task.completed", task)
    with pytest.raises(ValueError):
        read_webhook(entry.headers, entry.body.replace(task, "task_other"), secret)


def test_402_a_budget_that_is_used_up_is_reported(reports, berth_account):
    server = reports.open()
    berth_account.change(budget_cap=10, credits_used=10)
    with pytest.raises(OutOfBudget):
        reports.write(server, "complete: done")


def test_403_what_the_plan_does_not_allow_is_reported(reports, berth_account):
    berth_account.change(limits={"tiers": ["small"]})
    with pytest.raises(PlanTooSmall):
        reports.open("large")


def test_502_a_backend_that_fails_once_is_tried_again(reports, berth_account, berth_control):
    fault = berth_account.fail("servers.create", {"backend": "fail"}, times=1)
    assert reports.open().startswith("srv_")
    assert [one.hits for one in berth_control.faults.list() if one.id == fault.id] == [1]


def test_502_one_that_goes_on_failing_is_reported(reports, berth_account):
    berth_account.fail("servers.create", {"backend": "fail"})
    with pytest.raises(RuntimeError, match="502 compute_backend_error"):
        reports.open()


# The clock is one for a whole instance: a test that moves it starts its own instance.
def test_the_budget_is_there_again_in_the_next_month():
    with start("--freeze", "2030-01-31T23:00:00Z") as instance:
        account = instance.control.account(budget_cap=10)
        reports = Reports(account.base_url, account.api_key)
        server = reports.open()
        account.change(credits_used=10)
        with pytest.raises(OutOfBudget):
            reports.write(server, "complete: done")
        instance.control.clock.advance("2h")
        assert reports.write(server, "complete: done").startswith("task_")
