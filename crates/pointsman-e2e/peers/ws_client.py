"""A WebSocket client that tries what WebSocket can. Arguments: HOST:PORT, and for TLS the file of the authority."""

import os
import socket
import ssl
import sys

from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect as websocket

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
    sock = socket.create_connection((host, int(port)), PATIENCE)
    return websocket(uri, sock=sock, ssl=tls, max_size=MESSAGE_BYTES_MAX, open_timeout=PATIENCE, **more)


def asked(question, **more):
    with connect(**more) as client:
        client.send(question)
        return client.recv(PATIENCE)


def text():
    same(asked("gr\u00fc\u00df dich \U0001f600"), "gr\u00fc\u00df dich \U0001f600")
    same(asked(""), "")


def binary():
    same(asked(bytes(range(256))), bytes(range(256)))
    same(asked(b""), b"")


def each_size_of_a_frame():
    with connect(compression=None) as client:
        for size in 1, 125, 126, 127, 65_535, 65_536, 65_537:
            client.send(b"x" * size)
            same(len(client.recv(PATIENCE)), size)


def a_mebibyte():
    message = os.urandom(1024 * 1024)
    for compression in None, "deflate":
        assert asked(message, compression=compression) == message


def fragmented():
    with connect() as client:
        client.send(["one ", "two ", "three"])
        same(client.recv(PATIENCE), "one two three")
        client.send("fragments")
        # One more that is empty may be the last.
        same([piece for piece in client.recv_streaming() if piece], ["one ", "two ", "three"])


def many_messages():
    with connect() as client:
        for number in range(500):
            client.send(str(number))
        same([client.recv(PATIENCE) for _ in range(500)], [str(number) for number in range(500)])


def ping():
    with connect() as client:
        assert client.ping(b"from the client").wait(PATIENCE), "no pong"
        client.send("ping")
        same(client.recv(PATIENCE), "pong came")


def deflate():
    with connect() as client:
        assert "permessage-deflate" in client.response.headers.get("Sec-WebSocket-Extensions", "")
    same(asked("again and again " * 10_000), "again and again " * 10_000)
    with connect(compression=None) as client:
        same(client.response.headers.get("Sec-WebSocket-Extensions"), None)


def subprotocols():
    same(asked("subprotocol", subprotocols=["unknown", "chat"]), "chat")
    with connect(subprotocols=["unknown"]) as client:
        same(client.subprotocol, None)


def path_and_query():
    same(asked("path", path="/a/b?c=d"), "/a/b?c=d")


def close_by_the_client():
    with connect() as client:
        client.close(4000, "enough")
    same((client.close_code, client.close_reason), (4000, "enough"))


def close_by_the_server():
    for code, reason in (1000, "good bye"), (1001, "away"), (4999, "gr\u00fc\u00df"):
        with connect() as client:
            client.send(f"close {code} {reason}")
            try:
                client.recv(PATIENCE)
                raise AssertionError("it goes on")
            except ConnectionClosed as closed:
                same((closed.rcvd.code, closed.rcvd.reason), (code, reason))


def too_large():
    with connect() as client:
        client.send(b"x" * (MESSAGE_BYTES_MAX + 1))
        try:
            client.recv(PATIENCE)
            raise AssertionError("it goes on")
        except ConnectionClosedError as closed:
            same(closed.rcvd.code, 1009)


def no_websocket():
    """A version that nobody speaks is refused by the server, and its answer comes whole."""
    try:
        connect(additional_headers={"Sec-WebSocket-Version": "99"})
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
cases.run([(case.__name__, case) for case in CASES])
