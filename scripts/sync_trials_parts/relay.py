"""A relay in front of a server: each connection is delayed, some are broken, and all can be cut off.

    relay.py LISTEN_HOST:PORT SERVER_HOST:PORT CONNECT_MS PACKET_MS BROKEN_SHARE CONTROL_FILE

CONNECT_MS passes before a connection reaches the server, PACKET_MS before each piece of data arrives. While CONTROL_FILE
exists, nothing passes and nothing is refused, as with a pulled cable.
"""
import asyncio
import os
import random
import sys


class Relay:
    def __init__(self, server, connect, packet, broken, control):
        self.server, self.connect, self.packet, self.broken, self.control = server, connect, packet, broken, control
        self.n = 0

    def is_cut(self):
        return os.path.exists(self.control)

    async def copy(self, reader, writer, limit):
        loop = asyncio.get_running_loop()
        queue = asyncio.Queue()

        async def deliver():
            while True:
                due, data = await queue.get()
                await asyncio.sleep(max(0, due - loop.time()))
                while self.is_cut():
                    await asyncio.sleep(0.1)
                if not data:
                    if writer.can_write_eof():
                        writer.write_eof()
                    return
                writer.write(data)
                await writer.drain()

        delivery = asyncio.create_task(deliver())
        try:
            await self.read(reader, queue, limit)
            await delivery
        finally:
            delivery.cancel()

    async def read(self, reader, queue, limit):
        passed = 0
        while True:
            data = await reader.read(65536)
            passed += len(data)
            if limit is not None and passed > limit:
                raise ConnectionResetError
            queue.put_nowait((asyncio.get_running_loop().time() + self.packet, data))
            if not data:
                return

    async def serve(self, reader, writer):
        self.n += 1
        upstream, is_whole = None, False
        try:
            await asyncio.sleep(self.connect)
            while self.is_cut():
                await asyncio.sleep(0.1)
            server, upstream = await asyncio.open_connection(*self.server)
            # A broken connection breaks in the request, or in the answer after the server has acted.
            where = random.choice(["request", "answer"]) if random.random() < self.broken else None
            limit = random.randint(1, 2000)
            both = [
                asyncio.create_task(self.copy(reader, upstream, limit if where == "request" else None)),
                asyncio.create_task(self.copy(server, writer, limit if where == "answer" else None)),
            ]
            # The first end that is broken breaks the other one.
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for it in both:
                it.cancel()
            results = await asyncio.gather(*both, return_exceptions=True)
            is_whole = all(it is None for it in results)
        except OSError:
            pass
        finally:
            for it in (writer, upstream):
                if it is not None:
                    it.close() if is_whole else it.transport.abort()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def main():
    listen, server, connect, packet, broken, control = sys.argv[1:7]
    relay = Relay(address(server), int(connect) / 1000, int(packet) / 1000, float(broken), control)
    host, port = address(listen)
    serving = await asyncio.start_server(relay.serve, host, port)
    print(serving.sockets[0].getsockname()[1], flush=True)
    async with serving:
        await serving.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
