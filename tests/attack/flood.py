# SPDX-License-Identifier: MIT
"""flood: an attacker's machine. flood.py HOW PORT ARGS...; it says "ready", attacks until its stdin
is closed, and prints what it got: a line for each kind of answer, and how many.
"""

import collections
import os
import resource
import select
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
# pylint: disable=wrong-import-position
from waiting import let_pass

PAUSE_S = 0.05


def connect(port):
    link = socket.socket()
    link.setblocking(False)
    link.connect_ex(("127.0.0.1", port))
    return link


def status_of(data):
    return data[9:12].decode() if data.startswith(b"HTTP/1.1 ") else "closed"


class Flood:
    def __init__(self, port):
        self.port, self.counts = port, collections.Counter()

    def over(self):
        return bool(select.select([0], [], [], 0)[0])

    def trickle(self, count, first, drop):
        """Each connection sends `first`, then `drop` again and again; one that ends is replaced."""
        links = {}
        while not self.over():
            while len(links) < count:
                link = connect(self.port)
                links[link] = first
            for link, left in list(links.items()):
                self.step(links, link, left or drop)
            let_pass(PAUSE_S)
        self.counts["open"] += len(links)

    def step(self, links, link, data):
        try:
            got = link.recv(4096)
            self.counts[status_of(got)] += 1
            link.close()
            del links[link]
            return
        except BlockingIOError:
            pass
        except OSError:
            self.counts["closed"] += 1
            link.close()
            del links[link]
            return
        try:
            sent = link.send(data)
            links[link] = data[sent:] if len(data) > 1 else b""
        except OSError:
            pass

    def heads(self, count):
        self.trickle(int(count), b"GET /livez HTTP/1.1\r\nX: ", b"x")

    def bodies(self, count, token):
        head = (f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
        self.trickle(int(count), head.encode(), b" ")

    def idle(self, count):
        links, made = [], 0
        while not self.over():
            for _ in range(200):
                if made < int(count) and len(links) < 900:
                    links.append(connect(self.port))
                    made += 1
            for link in select.select(links, [], [], 0)[0] if len(links) < 1000 else links:
                try:
                    self.counts[status_of(link.recv(4096))] += 1
                except OSError:
                    self.counts["closed"] += 1
                link.close()
                links.remove(link)
            let_pass(PAUSE_S)
        self.counts["open"] += len(links)

    def readers(self, count, token, path):
        """Twenty questions each, a byte of the answers at a time."""
        ask = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode() * 10
        links = []
        for _ in range(int(count)):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", self.port))
            link.sendall(ask)
            links.append(link)
        for link in links:
            select.select([link], [], [], 20)  # the first answer is on its way
        print("ready", flush=True)
        while not self.over():
            for link in list(links):
                try:
                    gone = link in select.select([link], [], [], 0)[0] and not link.recv(1)
                except OSError:
                    gone = True
                if gone:
                    self.counts["closed"] += 1
                    links.remove(link)
            let_pass(PAUSE_S)
        self.counts["open"] += len(links)

    def requests(self, count, token):
        ask = f"GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        links = {}
        while not self.over():
            while len(links) < int(count):
                links[self.open_blocking()] = None
            for link in list(links):
                try:
                    link.sendall(ask)
                    got = link.recv(65536)
                except OSError:
                    got = b""
                if not got or b"onnection: close" in got:
                    link.close()
                    del links[link]
                if got:
                    self.counts[status_of(got)] += 1

    def searches(self, token, *texts):
        link, at = self.open_blocking(), 0
        while not self.over():
            at += 1
            link.sendall((f"GET /v1/jobs?limit=1000&filter={texts[at % len(texts)]} HTTP/1.1\r\nHost: x\r\n"
                          f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n").encode())
            got = link.recv(65536)
            while got and link.recv(65536):
                pass
            self.counts[status_of(got)] += 1
            link.close()
            link = self.open_blocking()

    def open_blocking(self):
        link = socket.create_connection(("127.0.0.1", self.port), 30)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link


def main():
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    how, port, args = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    flood = Flood(port)
    if how != "readers":
        print("ready", flush=True)
    getattr(flood, how)(*args)
    for name, count in flood.counts.items():
        print(name, count)


if __name__ == "__main__":
    main()
