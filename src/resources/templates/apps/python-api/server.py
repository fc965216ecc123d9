"""HTTP: the routes, JSON in and out, the files of the page."""

import json
import mimetypes
import sys
import traceback
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_WR
from socketserver import TCPServer
from urllib.parse import urlsplit

import textstats

PUBLIC = Path(__file__).resolve().parent / "public"
MAX_BODY = 1024 * 1024
# Of a body that is refused so much is still taken, in chunks.
MAX_DISCARDED = 16 * MAX_BODY
CHUNK = 64 * 1024

# The page may load what is its own, and nothing else.
POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"


class HttpError(Exception):
    """A failure that the caller is told of: a status, a code for programs, a sentence for people."""

    def __init__(self, status, code, message, headers=None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}


def health(_request):
    return {"status": "ok"}


def analyze(request):
    body = request.read_json()
    text = body.get("text") if isinstance(body, dict) else None
    if not isinstance(text, str):
        raise HttpError(400, "bad_request", 'Send {"text": "..."}.')
    return textstats.analyze(text)


# Path, then method. What a function returns is answered as JSON. Add yours here.
ROUTES = {
    "/health": {"GET": health},
    "/api/analyze": {"POST": analyze},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Seconds that a connection may be silent.
    timeout = 30

    def handle_request(self):
        path = urlsplit(self.path).path
        self.body_read = False
        try:
            methods = ROUTES.get(path) or {"GET": lambda request: request.send_file(path)}
            function = methods.get("GET" if self.command == "HEAD" else self.command)
            if function is None:
                allow = ", ".join(methods)
                raise HttpError(405, "method_not_allowed", f"Use {allow} here.", {"Allow": allow})
            answer = function(self)
            if answer is not None:
                self.send_json(200, answer)
        except HttpError as error:
            self.fail(error)
        except (ConnectionError, TimeoutError):
            # The caller went away.
            self.close_connection = True
        except Exception:  # pylint: disable=broad-except
            # Not foreseen: it goes to the log, and tells the caller nothing.
            traceback.print_exc()
            self.fail(HttpError(500, "internal_error", "Something went wrong here."))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_request

    def read_json(self):
        """The request's body. Raises HttpError where it is no JSON or too long."""
        if not self.headers.get("Content-Type", "").startswith("application/json"):
            raise HttpError(415, "unsupported_media_type", 'Send JSON with "Content-Type: application/json".')
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            raise HttpError(411, "length_required", 'Send the header "Content-Length".')
        if int(length) > MAX_BODY:
            raise HttpError(413, "payload_too_large", f"A body has at most {MAX_BODY} bytes.")
        data = self.rfile.read(int(length))
        self.body_read = True
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise HttpError(400, "bad_request", "The body is not valid JSON.") from None

    def fail(self, error):
        # What is left unread of a body would be taken for the next request.
        unread = self.command not in ("GET", "HEAD") and not self.body_read
        if unread:
            self.close_connection = True
        self.send_json(error.status, {"error": error.code, "message": str(error)}, error.headers)
        if unread:
            self.discard_body()

    def discard_body(self):
        """Takes what the caller is still sending: one that is cut off may never see the answer."""
        try:
            self.connection.shutdown(SHUT_WR)
            self.connection.settimeout(1)
            for _ in range(MAX_DISCARDED // CHUNK):
                if not self.rfile.read1(CHUNK):
                    return
        except OSError:
            # Gone, or silent for too long.
            pass

    def send_json(self, status, value, headers=None):
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_bytes(status, "application/json; charset=utf-8", data, headers)

    def send_file(self, path):
        """Answers with a file of public/. Raises HttpError where there is none."""
        name = path.lstrip("/") or "index.html"
        # Names are compared, never joined to a path that leads elsewhere.
        if name not in {file.name for file in PUBLIC.iterdir() if file.is_file()}:
            raise HttpError(404, "not_found", f"There is nothing at {path}.")
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if kind.startswith("text/"):
            kind += "; charset=utf-8"
        self.send_bytes(200, kind, (PUBLIC / name).read_bytes())

    def send_bytes(self, status, kind, data, headers=None):
        self.send_response(HTTPStatus(status))
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        sys.stderr.write(f"{format % args}\n")


class Server(ThreadingHTTPServer):
    # Requests under way do not hold up the end of the process.
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self):
        # HTTPServer would ask for the host's full name, which can take seconds without a network.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]


def create_server(host, port):
    """A server that listens; port 0 takes any that is free. serve_forever() answers requests."""
    return Server((host, port), Handler)
