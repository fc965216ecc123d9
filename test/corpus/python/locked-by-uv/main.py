from http.server import BaseHTTPRequestHandler, HTTPServer
import importlib.metadata
import os


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(importlib.metadata.version("itsdangerous").encode())


HTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Handler).serve_forever()
