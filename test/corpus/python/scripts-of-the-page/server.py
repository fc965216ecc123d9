TEXT = b"from Python"
from http.server import BaseHTTPRequestHandler, HTTPServer
import os


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(TEXT)


HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
