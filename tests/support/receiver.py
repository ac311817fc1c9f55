# SPDX-License-Identifier: MIT
"""receiver: somebody who is told of jobs by webhooks.

The signature is checked with Python's own hmac, as docs/webhooks.md says a receiver should.
"""

import hashlib
import hmac
import http.server
import json
import threading
import time


def signed_by(secret, headers, body):
    """Whether one of the signatures was made with this secret."""
    parts = [part.split("=", 1) for part in headers.get("Sluice-Signature", "").split(",") if part]
    made = [value for name, value in parts if name == "t"]
    if len(made) != 1 or abs(time.time() - int(made[0])) > 300:
        return False
    wanted = hmac.new(secret.encode(), made[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(name == "v1" and hmac.compare_digest(value, wanted) for name, value in parts)


class Call:
    """One request that came."""

    def __init__(self, path, headers, body):
        self.path, self.headers, self.body = path, headers, body
        self.at = time.monotonic()
        self.id, self.attempt = headers["Sluice-Delivery"], int(headers["Sluice-Attempt"])
        self.said = json.loads(body)
        self.job, self.to = self.said["job"]["id"], self.said["to"]


class Receiver:
    """Calls in `calls`, in the order in which they came. answer(call) is the status, or a pair of
    status and headers; it may take its time."""

    def __init__(self, answer=lambda call: 200):
        self.calls, self.lock = [], threading.Lock()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                call = Call(self.path, dict(self.headers), body)
                with receiver.lock:
                    receiver.calls.append(call)
                said = answer(call)
                status, headers = said if isinstance(said, tuple) else (said, {})
                self.send_response(status)
                for name, value in ({"Content-Length": "0"} | headers).items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *unused):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def of(self, job):
        return [call for call in list(self.calls) if call.job == job]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)
