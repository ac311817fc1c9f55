# SPDX-License-Identifier: MIT
"""partition: a TCP forwarder that can be cut like a network: nothing passes, nothing is closed."""

import asyncio
import threading

CHUNK = 65536
LOOK_S = 0.05


class Forwarder:
    """Listens at .port of 127.0.0.1 and forwards to `target`; .cut while True holds all bytes."""

    def __init__(self, target):
        self.target, self.cut, self.port = target, False, 0
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

    async def _passable(self):
        while self.cut:
            await asyncio.sleep(LOOK_S)

    async def _serve_one(self, reader, writer):
        await self._passable()
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pump(reader, there_writer), self._pump(there_reader, writer))

    async def _pump(self, reader, writer):
        try:
            while data := await reader.read(CHUNK):
                await self._passable()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one side was killed: the other one is told by the close
        writer.close()
