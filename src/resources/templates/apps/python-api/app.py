"""Text statistics over HTTP: an API and a page for it, on Python's standard library alone (3.8 or later)."""

import os
import signal
import sys
import threading

from server import create_server


def main():
    host = os.environ.get("HOST", "127.0.0.1")
    port = os.environ.get("PORT", "8000")
    if not port.isdigit():
        sys.exit(f"PORT is {port!r}; it must be a whole number.")
    server = create_server(host, int(port))

    def stop(_signal, _frame):
        # shutdown() waits for the loop that this very thread runs.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print(f"Listening on http://{host}:{server.server_port}/", flush=True)
    with server:
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
