import json
import threading
import unittest
from http.client import HTTPConnection

from server import create_server
from textstats import analyze


class AnalyzeTest(unittest.TestCase):
    def test_counts(self):
        result = analyze("It’s a well-known fact. Isn't it?\n\nA fact!")
        self.assertEqual(result["words"], 8)
        self.assertEqual(result["sentences"], 3)
        self.assertEqual(result["paragraphs"], 2)
        self.assertEqual(result["frequent"][0], {"word": "fact", "count": 2})

    def test_nothing(self):
        self.assertEqual(analyze(" ")["words"], 0)
        self.assertEqual(analyze("")["words_per_sentence"], 0)


class HttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = create_server("127.0.0.1", 0)
        cls.thread = threading.Thread(target=cls.server.serve_forever, kwargs={"poll_interval": 0.01})
        cls.thread.start()

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.thread.join()
        cls.server.server_close()

    def call(self, method, path, body=None, kind="application/json"):
        connection = HTTPConnection("127.0.0.1", self.server.server_port, timeout=5)
        try:
            connection.request(method, path, body, {"Content-Type": kind})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def test_health(self):
        status, body = self.call("GET", "/health")
        self.assertEqual((status, json.loads(body)), (200, {"status": "ok"}))

    def test_analyze(self):
        status, body = self.call("POST", "/api/analyze", json.dumps({"text": "Hello, world."}))
        self.assertEqual((status, json.loads(body)["words"]), (200, 2))

    def test_refusals(self):
        for status, method, path, body, kind in [
            (400, "POST", "/api/analyze", "{", "application/json"),
            (400, "POST", "/api/analyze", '{"text": 5}', "application/json"),
            (400, "POST", "/api/analyze", "[]", "application/json"),
            (415, "POST", "/api/analyze", "{}", "text/plain"),
            (413, "POST", "/api/analyze", "x" * (1024 * 1024 + 1), "application/json"),
            (405, "GET", "/api/analyze", None, "application/json"),
            (404, "GET", "/nothing", None, "application/json"),
            (404, "GET", "/../app.py", None, "application/json"),
        ]:
            with self.subTest(method=method, path=path, body=(body or "")[:20]):
                answered, answer = self.call(method, path, body, kind)
                self.assertEqual(answered, status)
                self.assertIn("message", json.loads(answer))

    def test_page(self):
        status, body = self.call("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn(b"<!doctype html>", body)


if __name__ == "__main__":
    unittest.main()
