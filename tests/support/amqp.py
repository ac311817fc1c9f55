# SPDX-License-Identifier: MIT
"""amqp: as much of AMQP 0-9-1 as tests need to put a message somewhere and to look at one."""

import socket
import struct

FRAME_BYTES = 100_000  # less than the broker's frame_max


def _short(text):
    data = text.encode()
    return bytes([len(data)]) + data


def _long(data):
    return struct.pack(">I", len(data)) + data


class Connection:
    def __init__(self, host, port, user, password, vhost, timeout_s=60):
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.stream = self.socket.makefile("rb")
        self.confirms = False
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self._expect(10, 10)
        secret = b"\0" + user.encode() + b"\0" + password.encode()
        self._method(0, 10, 11, _long(b"") + _short("PLAIN") + _long(secret) + _short("en_US"))
        tune = self._expect(10, 30)
        self._method(0, 10, 31, tune[:6] + struct.pack(">H", 0))
        self._method(0, 10, 40, _short(vhost) + b"\0\0")
        self._expect(10, 41)
        self._method(1, 20, 10, b"\0")
        self._expect(20, 11)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stream.close()
        self.socket.close()

    def _frame(self, kind, channel, payload):
        self.socket.sendall(struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce")

    def _method(self, channel, group, method, args):
        self._frame(1, channel, struct.pack(">HH", group, method) + args)

    def _read(self):
        head = self.stream.read(7)
        assert len(head) == 7, "the broker closed the connection"
        kind, _channel, size = struct.unpack(">BHI", head)
        return kind, self.stream.read(size + 1)[:-1]

    def _next(self):
        """The next frame that is not a heartbeat."""
        while True:
            kind, payload = self._read()
            if kind != 8:
                return kind, payload

    def _expect(self, group, method):
        kind, payload = self._next()
        got = struct.unpack(">HH", payload[:4])
        assert kind == 1 and got == (group, method), f"{got} {payload[4:]!r}"
        return payload[4:]

    def _cancelled(self):
        """The consumer is gone; what was on its way to it goes back when the connection ends."""
        self._method(1, 60, 30, _short("test") + b"\0")
        while True:
            kind, payload = self._next()
            if kind == 1 and struct.unpack(">HH", payload[:4]) == (60, 31):
                return

    def publish(self, exchange, key, body, content_type="application/json", message_id=None):
        """Persistent; back when the broker has confirmed it."""
        if not self.confirms:
            self._method(1, 85, 10, b"\0")
            self._expect(85, 11)
            self.confirms = True
        self._method(1, 60, 40, b"\0\0" + _short(exchange) + _short(key) + b"\0")
        flags = 0x8000 | 0x1000 | (0x0080 if message_id else 0)
        properties = struct.pack(">H", flags) + _short(content_type) + b"\x02"
        properties += _short(message_id) if message_id else b""
        self._frame(2, 1, struct.pack(">HHQ", 60, 0, len(body)) + properties)
        for at in range(0, len(body), FRAME_BYTES):
            self._frame(3, 1, body[at:at + FRAME_BYTES])
        self._expect(60, 80)

    def unbind(self, queue, exchange, key):
        self._method(1, 50, 50, b"\0\0" + _short(queue) + _short(exchange) + _short(key) + _long(b""))
        self._expect(50, 51)

    def bind(self, queue, exchange, key):
        self._method(1, 50, 20, b"\0\0" + _short(queue) + _short(exchange) + _short(key) + b"\0"
                     + _long(b""))
        self._expect(50, 21)

    def purge(self, queue):
        """All messages that wait in the queue are gone."""
        self._method(1, 50, 30, b"\0\0" + _short(queue) + b"\0")
        self._expect(50, 31)

    def delete_queue(self, queue):
        """With all that is in it."""
        self._method(1, 50, 40, b"\0\0" + _short(queue) + b"\0")
        self._expect(50, 41)

    def give_back(self, queue, times):
        """Takes a message of the queue and gives it back, so often; the broker counts that."""
        self._method(1, 60, 10, struct.pack(">IHB", 0, 1, 0))
        self._expect(60, 11)
        self._method(1, 60, 20, b"\0\0" + _short(queue) + _short("test") + b"\0" + _long(b""))
        self._expect(60, 21)
        for _ in range(times):
            deliver = self._expect(60, 60)
            tag = deliver[1 + deliver[0]:][:8]
            _kind, header = self._next()
            size = struct.unpack(">Q", header[4:12])[0]
            while size > 0:
                size -= len(self._next()[1])
            self._method(1, 60, 90, tag + b"\1")
        self._cancelled()

    def take(self, queue):
        """Waits for a message and takes it for good; TimeoutError when none comes.

        It consumes: basic.get is refused for a queue with a single active consumer.
        """
        self._method(1, 60, 10, struct.pack(">IHB", 0, 1, 0))
        self._expect(60, 11)
        self._method(1, 60, 20, b"\0\0" + _short(queue) + _short("test") + b"\0" + _long(b""))
        self._expect(60, 21)
        deliver = self._expect(60, 60)
        tag = deliver[1 + deliver[0]:][:8]
        _kind, header = self._next()
        size, body = struct.unpack(">Q", header[4:12])[0], b""
        while len(body) < size:
            body += self._next()[1]
        self._method(1, 60, 80, tag + b"\0")
        self._cancelled()
        return body
