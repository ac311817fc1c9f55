# SPDX-License-Identifier: MIT
"""sse: a reader of server-sent events for tests."""

import collections
import json
import socket
import time

from witness import WITNESS

Event = collections.namedtuple("Event", "id name data")


class Stream:
    """One stream; `last` is the id of whatever came last, heartbeats included. On a socket of its
    own: a response of the standard library is of no more use after a timeout."""

    def __init__(self, client, path="/v1/events", last=None):
        self.port = client.port
        self.socket = socket.create_connection((client.host, client.port), timeout=30)
        lines = [f"GET {path} HTTP/1.1", f"Host: {client.host}:{client.port}",
                 f"Authorization: Bearer {client.token}"]
        lines += [] if last is None else [f"Last-Event-ID: {last}"]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.raw, self.bytes, self.over, self.last = b"", b"", False, last
        while b"\r\n\r\n" not in self.raw:
            assert self._receive(30), f"no answer: {self.raw}"
        head, _, self.raw = self.raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        assert b"content-type: text/event-stream" in head.lower(), head
        assert b"transfer-encoding: chunked" in head.lower(), head

    def close(self):
        self.socket.close()

    def _receive(self, timeout_s):
        self.socket.settimeout(max(timeout_s, 0.001))
        try:
            more = self.socket.recv(1 << 18)
        except (TimeoutError, socket.timeout):
            return False
        self.raw += more
        self.over = self.over or not more
        return bool(more)

    def _unchunk(self):
        """false: there is no whole chunk yet."""
        size, found, rest = self.raw.partition(b"\r\n")
        length = int(size, 16) if found else 0
        if not found or len(rest) < length + 2:
            return False
        self.raw = rest[length + 2:]
        self.bytes += rest[:length]
        self.over = self.over or length == 0
        return True

    def _fill(self, timeout_s):
        """False: nothing came within this time, or the stream is over."""
        deadline = time.monotonic() + timeout_s
        filled = self._unchunk()
        while not filled and not self.over and self._receive(deadline - time.monotonic()):
            filled = self._unchunk()
        while self._unchunk():
            pass
        return filled

    def drain(self, timeout_s):
        """Takes what comes within this time, whatever it is; true when the stream is over."""
        while self._fill(timeout_s):
            pass
        return self.over

    def next(self, timeout_s=30.0):
        """The next event; None when none came in time or the stream is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            frame, found, rest = self.bytes.partition(b"\n\n")
            if not found:
                left = deadline - time.monotonic()
                if self.over or left <= 0 or not self._fill(left):
                    return None
                continue
            self.bytes = rest
            event = self._parse(frame.decode())
            if event:
                return event

    def _parse(self, frame):
        fields = dict(line.split(": ", 1) for line in frame.split("\n")
                      if line and not line.startswith(":"))
        if "id" in fields:
            self.last = int(fields["id"])
        if "data" not in fields:
            return None  # it only tells the place
        event = Event(int(fields["id"]), fields.get("event", "message"), json.loads(fields["data"]))
        if event.name == "job":
            WITNESS.note_event(self.port, "JobEvent", event.data)
        return event

    def begun(self, timeout_s=30.0):
        """Waits until the stream has told where it begins."""
        deadline = time.monotonic() + timeout_s
        while b"\n\n" not in self.bytes:
            assert self._fill(deadline - time.monotonic()), "the stream does not begin"
        frame, _, self.bytes = self.bytes.partition(b"\n\n")
        assert self._parse(frame.decode()) is None, f"not a beginning: {frame}"
        return self

    def until(self, condition, timeout_s=60.0):
        """All events up to the first for which the condition holds."""
        deadline = time.monotonic() + timeout_s
        seen = []
        while True:
            event = self.next(deadline - time.monotonic())
            assert event, f"the stream {'is over' if self.over else 'is silent'} after {seen[-3:]}"
            seen.append(event)
            if condition(event):
                return seen
