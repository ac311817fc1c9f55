# SPDX-License-Identifier: MIT
"""partition: the way from a program to a server, which can be cut or made to lose packets.

With a network namespace of our own (enter_namespace(), before anything is started) packets are
dropped by the kernel's filter, each way by itself. Without one, a forwarder in the middle holds
the bytes back: nothing passes and nothing is closed, but no packet can be lost.
"""

import asyncio
import ctypes
import os
import shutil
import subprocess
import threading

CHUNK = 65536
LOOK_S = 0.05
CLONE_NEWNET = 0x40000000
FILTER = "iptables"


def enter_namespace():
    """This process, and what it starts from now on, gets a network of its own; False without."""
    if os.geteuid() != 0 or not shutil.which(FILTER) or not shutil.which("ip"):
        return False
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    done = subprocess.run([FILTER, "-w", "-n", "-L"], capture_output=True, check=False)
    return done.returncode == 0


class Forwarder:
    """Listens at .port of 127.0.0.1 and forwards to `target`.

    .cut while True holds all bytes; .cut_there and .cut_back only those to and from the target.
    away(True) is a server that has ended: what is connected is closed, and so is what connects.
    """

    def __init__(self, target):
        self.target, self.port = target, 0
        self.cut = self.cut_there = self.cut_back = False
        self._closed, self._writers = False, set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        self._ready.wait()

    def _run(self):
        async def serve():
            server = await asyncio.start_server(self._serve_one, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await server.serve_forever()
        self._loop.run_until_complete(serve())

    def away(self, away):
        def change():
            self._closed = away
            for writer in list(self._writers) if away else ():
                writer.close()
        self._loop.call_soon_threadsafe(change)

    async def _passable(self, way):
        while self.cut or getattr(self, way):
            await asyncio.sleep(LOOK_S)

    async def _serve_one(self, reader, writer):
        await self._passable("cut_there")
        if self._closed:
            writer.close()
            return
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        ends = {writer, there_writer}
        self._writers |= ends
        await asyncio.gather(self._pump(reader, there_writer, "cut_there"),
                             self._pump(there_reader, writer, "cut_back"))
        self._writers -= ends

    async def _pump(self, reader, writer, way):
        try:
            while data := await reader.read(CHUNK):
                await self._passable(way)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one side was killed: the other one is told by the close
        writer.close()


class Way:
    """The way to the server at a port: programs are told to use .port instead."""

    def __init__(self, target, packets):
        self.forwarder, self.packets, self.rules = Forwarder(target), packets, []
        self.port = self.forwarder.port

    def _drop(self, *more):
        for side in more[0]:
            rule = ["INPUT", "-i", "lo", "-p", "tcp", side, str(self.port), *more[1:], "-j", "DROP"]
            subprocess.run([FILTER, "-w", "-A", *rule], check=True)
            self.rules.append(rule)

    def cut(self, sides="both"):
        """sides: "there" stops what the program sends, "back" what the server answers."""
        if self.packets:
            self._drop({"both": ("--dport", "--sport"), "there": ("--dport",),
                        "back": ("--sport",)}[sides])
        else:
            name = {"both": "cut", "there": "cut_there", "back": "cut_back"}[sides]
            setattr(self.forwarder, name, True)

    def lose(self, share):
        """Drops this share of the packets, both ways; only with packets."""
        self._drop(("--dport", "--sport"), "-m", "statistic", "--mode", "random",
                   "--probability", str(share))

    def heal(self):
        while self.rules:
            subprocess.run([FILTER, "-w", "-D", *self.rules.pop()], check=True)
        self.forwarder.cut = self.forwarder.cut_there = self.forwarder.cut_back = False
