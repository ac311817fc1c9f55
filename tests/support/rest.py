# SPDX-License-Identifier: MIT
"""rest: a client of the service for tests; it checks nothing and hides nothing."""

import http.client
import json
import urllib.parse

from waiting import wait_until
from witness import WITNESS, Exchange

TERMINAL = ("FINISHED", "CANCELLED", "FAILED")
AGAIN = (408, 429, 503)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:2000].decode(errors='replace')}"

    def expect(self, *statuses):
        assert self.status in statuses, f"{self!r}, not {statuses}"
        return self

    def problem(self, status):
        """The problem document of a refusal."""
        self.expect(status)
        assert self.headers["Content-Type"] == "application/problem+json", self.headers
        document = self.json
        for member in ("type", "title", "status", "code", "requestId"):
            assert member in document, document
        assert document["status"] == status
        return document


class Client:
    """Calls as one user. Each call is a connection of its own unless `keep` is set.

    tls: the ssl.SSLContext of an https address.
    accepted: a list that gets the id of every job that a submission was answered with.
    """

    def __init__(self, url, token=None, keep=False, timeout_s=60, accepted=None, tls=None):
        parts = urllib.parse.urlsplit(url)
        self.url, self.host, self.port = url, parts.hostname, parts.port
        self.token, self.keep, self.timeout_s = token, keep, timeout_s
        self.kept, self.accepted, self.tls = None, accepted, tls

    def call(self, method, path, body=None, headers=None):
        """body: bytes as they are, anything else as JSON. OSError when nobody is there. Of a stream
        of events, which has no end, only the head is read."""
        send = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            send["Content-Type"] = "application/json"
        send |= headers or {}
        link = self.kept or self._link()
        self.kept = None
        try:
            link.request(method, path, body, send)
            answer = link.getresponse()
            endless = answer.headers["Content-Type"] == "text/event-stream"
            result = Answer(answer.status, answer.headers, b"" if endless else answer.read())
            if endless:
                link.close()
        except http.client.HTTPException as fault:
            link.close()
            raise OSError(repr(fault)) from fault
        except OSError:
            link.close()
            raise
        if self.keep:
            self.kept = link
        else:
            link.close()
        WITNESS.note(self.port, Exchange(method, path, body, result))
        self._note(method, path, result)
        return result

    def _link(self):
        if self.url.startswith("https:"):
            return http.client.HTTPSConnection(self.host, self.port, timeout=self.timeout_s,
                                               context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)

    def _note(self, method, path, answer):
        if self.accepted is None or method != "POST" or answer.status not in (200, 201):
            return
        taken = []
        if path == "/v1/jobs":
            taken = [answer.json["id"]]
        elif path == "/v1/jobs:batch":
            taken = [item["job"]["id"] for item in answer.json["items"] if item["status"] == 201]
        self.accepted += [job for job in taken if job not in self.accepted]

    def get(self, path, **headers):
        return self.call("GET", path, headers=headers)

    def post(self, path, body=None, headers=None):
        return self.call("POST", path, body, headers)

    def put(self, path, body, headers=None):
        return self.call("PUT", path, body, headers)

    def delete(self, path, headers=None):
        return self.call("DELETE", path, headers=headers)

    def submit(self, *command, headers=None, **request):
        """The new job's id; 201 is what must come."""
        request = {"name": "test"} | ({"command": list(command)} if command else {}) | request
        answer = self.post("/v1/jobs", request, headers).expect(201)
        job = answer.json["id"]
        assert answer.headers["Location"].endswith(f"/v1/jobs/{job}")
        return job

    def job(self, job):
        return self.get(f"/v1/jobs/{job}").expect(200).json

    def wait_status(self, job, *statuses, timeout_s=120.0):
        """The job as soon as it is in one of these states; a terminal one ends the wait."""
        seen = {}

        def reached():
            try:
                answer = self.get(f"/v1/jobs/{job}")
            except OSError:
                return None  # the service is away; that is some tests' point
            if answer.status in AGAIN:
                return None
            seen["job"] = answer.expect(200).json
            status = seen["job"]["status"]
            assert status in statuses or status not in TERMINAL, f"not {statuses}: {seen['job']}"
            return seen["job"] if status in statuses else None
        return wait_until(lambda: f"{statuses}, is {seen.get('job')}", reached, timeout_s)

    def wait_end(self, job, timeout_s=120.0):
        return self.wait_status(job, *TERMINAL, timeout_s=timeout_s)

    def output(self, job, stream="stdout"):
        return self.get(f"/v1/jobs/{job}/output/{stream}").expect(200).body

    def cancel(self, job):
        return self.post(f"/v1/jobs/{job}/cancel")

    def put_queue(self, name, priority, text=None, **more):
        return self.put(f"/v1/queues/{name}",
                        {"priority": priority} | ({"filter": text} if text else {}) | more)
