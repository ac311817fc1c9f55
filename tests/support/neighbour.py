# SPDX-License-Identifier: MIT
"""neighbour: somebody else who uses the service from another address, in a process of his own, and
how long his answers take. Run as a program it is that process; whoever attacks is another one, of
the least priority: he has a machine of his own.
"""

import json
import os
import socket
import subprocess
import sys
import time

from waiting import let_pass

ADDRESS = "127.0.0.2"
PAUSE_S = 0.001  # he has something else to do between his questions


def connect(port, address=ADDRESS):
    link = socket.socket()
    link.settimeout(20)
    link.bind((address, 0))
    link.connect(("127.0.0.1", port))
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def ask(link, request):
    link.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        part = link.recv(65536)
        if not part:
            raise ConnectionError("closed")
        got += part
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += link.recv(65536)


def main():
    port, path = int(sys.argv[1]), sys.argv[2]
    token = sys.stdin.readline().strip()
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    link, samples, asked = connect(port), [], 0
    os.set_blocking(0, False)
    print("ready", flush=True)
    while True:
        try:
            order = os.read(0, 100)
        except BlockingIOError:
            order = None
        if order == b"":
            return
        if order:
            print(json.dumps(samples), flush=True)
            samples = []
        began = time.perf_counter()
        asked += 1
        if asked % 20 == 0:  # a new connection must be taken as well
            link.close()
            link = connect(port)
        ask(link, request)
        samples.append(round((time.perf_counter() - began) * 1000, 3))
        let_pass(PAUSE_S)


class Neighbour:
    def __init__(self, web, token, path):
        port = web.url.rsplit(":", 1)[1]
        self.child = subprocess.Popen([sys.executable, os.path.abspath(__file__), port, path],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdin.write(token + "\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "ready\n"

    def _take(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, "somebody else was not served"
        return json.loads(line)

    begin = _take
    end = _take

    def measure(self, seconds):
        self._take()
        let_pass(seconds)
        return self._take()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.child.stdin.close()
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()


if __name__ == "__main__":
    main()
