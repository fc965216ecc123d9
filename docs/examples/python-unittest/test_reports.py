import unittest

from berth.testing import BerthMixin, start
from reports import OutOfBudget, PlanTooSmall, Reports, read_webhook


# Each test has an account of its own, made in a few milliseconds: none meets the servers of another.
class ReportsTestCase(BerthMixin, unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.reports = Reports(self.account.base_url, self.account.api_key)


class Writing(ReportsTestCase):
    def test_the_agent_writes_the_report(self):
        server = self.reports.open()
        task = self.reports.write(server, "write: report.md <<< All is well.")
        self.control.wait(task=task)
        self.assertEqual(self.reports.read(server), "All is well.")

    def test_a_webhook_is_believed_when_it_is_signed_and_only_then(self):
        # An inbox is there as soon as it is named. It keeps what it gets, and says whether the signature is right.
        inbox = self.account.inbox()
        secret = self.reports.subscribe(inbox.url, ["task.completed"])
        task = self.reports.write(self.reports.open(), "complete: done")
        [entry] = inbox.wait()
        self.assertTrue(entry.verified)
        event = read_webhook(entry.headers, entry.body, secret)
        self.assertEqual((event["event"], event["task_id"]), ("task.completed", task))
        with self.assertRaises(ValueError):
            read_webhook(entry.headers, entry.body.replace(task, "task_other"), secret)


class Refusals(ReportsTestCase):
    def test_402_a_budget_that_is_used_up_is_reported(self):
        server = self.reports.open()
        self.account.change(budget_cap=10, credits_used=10)
        with self.assertRaises(OutOfBudget):
            self.reports.write(server, "complete: done")

    def test_403_what_the_plan_does_not_allow_is_reported(self):
        self.account.change(limits={"tiers": ["small"]})
        with self.assertRaises(PlanTooSmall):
            self.reports.open("large")

    def test_502_a_backend_that_fails_once_is_tried_again(self):
        fault = self.account.fail("servers.create", {"backend": "fail"}, times=1)
        self.assertRegex(self.reports.open(), "^srv_")
        self.assertEqual([one.hits for one in self.control.faults.list() if one.id == fault.id], [1])

    def test_502_one_that_goes_on_failing_is_reported(self):
        self.account.fail("servers.create", {"backend": "fail"})
        with self.assertRaisesRegex(RuntimeError, "502 compute_backend_error"):
            self.reports.open()


class NextMonth(unittest.TestCase):
    # The clock is one for a whole instance: a test that moves it starts its own instance.
    def test_the_budget_is_there_again(self):
        with start("--freeze", "2030-01-31T23:00:00Z") as instance:
            account = instance.control.account(budget_cap=10)
            reports = Reports(account.base_url, account.api_key)
            server = reports.open()
            account.change(credits_used=10)
            with self.assertRaises(OutOfBudget):
                reports.write(server, "complete: done")
            instance.control.clock.advance("2h")
            self.assertRegex(reports.write(server, "complete: done"), "^task_")
