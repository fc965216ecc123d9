import os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'the server')

HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
