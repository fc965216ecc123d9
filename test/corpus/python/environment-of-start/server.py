import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Asked(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.environ["VIRTUAL_ENV"] == sys.prefix).encode())


HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Asked).serve_forever()
