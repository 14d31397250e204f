"""A WebSocket client that tries what WebSocket can. Arguments: HOST:PORT, and for TLS the file of the authority."""

import asyncio
import os
import ssl
import sys

from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.asyncio.client import connect as websocket

import cases
from cases import same

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
# Longer than any answer takes on a busy machine.
PATIENCE = 30
host, port = sys.argv[1].rsplit(":", 1)


def connect(path="/echo", **more):
    tls = None
    if len(sys.argv) > 2:
        tls = ssl.create_default_context(cafile=sys.argv[2])
    uri = f"{'wss' if tls else 'ws'}://shop.example{path}"
    place = {"host": host, "port": int(port), "ssl": tls, "proxy": None}
    return websocket(uri, **place, max_size=MESSAGE_BYTES_MAX, open_timeout=PATIENCE, **more)


async def asked(question, **more):
    async with connect(**more) as client:
        await client.send(question)
        return await client.recv()


async def text():
    same(await asked("gr\u00fc\u00df dich \U0001f600"), "gr\u00fc\u00df dich \U0001f600")
    same(await asked(""), "")


async def binary():
    same(await asked(bytes(range(256))), bytes(range(256)))
    same(await asked(b""), b"")


async def each_size_of_a_frame():
    async with connect(compression=None) as client:
        for size in 1, 125, 126, 127, 65_535, 65_536, 65_537:
            await client.send(b"x" * size)
            same(len(await client.recv()), size)


async def a_mebibyte():
    message = os.urandom(1024 * 1024)
    for compression in None, "deflate":
        assert await asked(message, compression=compression) == message


async def fragmented():
    async with connect() as client:
        await client.send(["one ", "two ", "three"])
        same(await client.recv(), "one two three")
        await client.send("fragments")
        # One more that is empty may be the last.
        same([piece async for piece in client.recv_streaming() if piece], ["one ", "two ", "three"])


async def many_messages():
    async with connect() as client:
        for number in range(500):
            await client.send(str(number))
        same([await client.recv() for _ in range(500)], [str(number) for number in range(500)])


async def ping():
    async with connect() as client:
        await (await client.ping(b"from the client"))
        await client.send("ping")
        same(await client.recv(), "pong came")


async def deflate():
    async with connect() as client:
        assert "permessage-deflate" in client.response.headers.get("Sec-WebSocket-Extensions", "")
    same(await asked("again and again " * 10_000), "again and again " * 10_000)
    async with connect(compression=None) as client:
        same(client.response.headers.get("Sec-WebSocket-Extensions"), None)


async def subprotocols():
    same(await asked("subprotocol", subprotocols=["unknown", "chat"]), "chat")
    async with connect(subprotocols=["unknown"]) as client:
        same(client.subprotocol, None)


async def path_and_query():
    same(await asked("path", path="/a/b?c=d"), "/a/b?c=d")


async def close_by_the_client():
    async with connect() as client:
        await client.close(4000, "enough")
    same((client.close_code, client.close_reason), (4000, "enough"))


async def close_by_the_server():
    for code, reason in (1000, "good bye"), (1001, "away"), (4999, "gr\u00fc\u00df"):
        async with connect() as client:
            await client.send(f"close {code} {reason}")
            try:
                await client.recv()
                raise AssertionError("it goes on")
            except ConnectionClosed as closed:
                same((closed.rcvd.code, closed.rcvd.reason), (code, reason))


async def too_large():
    async with connect() as client:
        await client.send(b"x" * (MESSAGE_BYTES_MAX + 1))
        try:
            await client.recv()
            raise AssertionError("it goes on")
        except ConnectionClosedError as closed:
            same(closed.rcvd.code, 1009)


async def no_websocket():
    """A version that nobody speaks is refused by the server, and its answer comes whole."""
    try:
        await connect(additional_headers={"Sec-WebSocket-Version": "99"})
        raise AssertionError("it opened")
    except InvalidStatus as refused:
        assert refused.response.status_code in (400, 426), refused


CASES = [
    text,
    binary,
    each_size_of_a_frame,
    a_mebibyte,
    fragmented,
    many_messages,
    ping,
    deflate,
    subprotocols,
    path_and_query,
    close_by_the_client,
    close_by_the_server,
    too_large,
    no_websocket,
]


def in_time(case):
    return lambda: asyncio.run(asyncio.wait_for(case(), PATIENCE))


cases.run([(case.__name__, in_time(case)) for case in CASES])
