"""A gRPC client that tries what gRPC can. Arguments: HOST:PORT, and for TLS the file of the authority."""

import sys
import threading
import time

import grpc

import cases
from cases import same

MESSAGE_BYTES_MAX = 32 * 1024 * 1024
# Longer than any answer takes on a busy machine.
PATIENCE = 30
OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.default_authority", "shop.example"),
]


def open_channel(more=(), compression=None):
    options = OPTIONS + list(more)
    if len(sys.argv) == 2:
        return grpc.insecure_channel(sys.argv[1], options, compression)
    with open(sys.argv[2], "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    return grpc.secure_channel(sys.argv[1], credentials, options + [("grpc.ssl_target_name_override", "shop.example")], compression)


channel = open_channel()


def call(method, request, kind="unary_unary", on=None, **more):
    more.setdefault("timeout", PATIENCE)
    return getattr(on or channel, kind)(f"/test.Echo/{method}")(request, **more)


def status_of(act):
    try:
        act()
    except grpc.RpcError as error:
        return error
    raise AssertionError("no error")


def unary():
    same(call("Unary", b"hello"), b"hello")
    same(call("Unary", b""), b"")


def many_at_once():
    begin = channel.unary_unary("/test.Echo/Unary").future
    calls = [begin(b"%d" % number, timeout=PATIENCE) for number in range(200)]
    same([one.result() for one in calls], [b"%d" % number for number in range(200)])


def large():
    message = bytes(range(256)) * (8 * 1024 * 4)
    same(len(message), 8 * 1024 * 1024)
    assert call("Unary", message) == message


def metadata():
    sent = [("x-text", "a, b"), ("x-twice", "1"), ("x-twice", "2"), ("x-some-bin", b"\x00\xff\r\n:")]
    _, seen = channel.unary_unary("/test.Echo/Unary").with_call(b"", metadata=sent, timeout=PATIENCE)
    for place in seen.initial_metadata(), seen.trailing_metadata():
        names = {name for name, _ in sent}
        came = sorted((key, value) for key, value in place if key in names)
        same(came, sorted(sent))


def server_streaming():
    came = list(call("ServerStream", b"1000 1000", "unary_stream"))
    same((len(came), {len(one) for one in came}), (1000, {1000}))
    same(came[999], bytes([999 % 256]) * 1000)
    same(list(call("ServerStream", b"0 0", "unary_stream")), [])


def client_streaming():
    messages = (b"x" * size for size in range(500))
    same(call("ClientStream", messages, "stream_unary"), b"500 %d" % sum(range(500)))
    same(call("ClientStream", iter([]), "stream_unary"), b"0 0")


def bidirectional():
    """One goes only when the one before it has come back."""
    turn = threading.Semaphore(1)

    def questions():
        for number in range(50):
            assert turn.acquire(timeout=PATIENCE)
            yield b"%d" % number

    came = []
    for answer in call("Bidirectional", questions(), "stream_stream"):
        came.append(answer)
        turn.release()
    same(came, [b"%d" % number for number in range(50)])


def error_status():
    for code in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.INTERNAL):
        number = list(grpc.StatusCode).index(code)
        error = status_of(lambda: call("Fail", b"%d" % number))
        same((error.code(), error.details()), (code, "details: \u00e4 100% \n"))
        trailers = dict(error.trailing_metadata())
        same((trailers["x-reason-bin"], trailers["x-reason"]), (b"\x00\xff\r\n", "why"))


def error_behind_messages():
    came = []

    def read():
        for message in call("FailLate", b"", "unary_stream"):
            came.append(message)

    error = status_of(read)
    same((came, error.code(), error.details()), ([b"one", b"two"], grpc.StatusCode.DATA_LOSS, "after two"))


def no_such_method():
    same(status_of(lambda: call("Nothing", b"")).code(), grpc.StatusCode.UNIMPLEMENTED)


def deadline():
    left = int(call("TimeLeft", b"", timeout=20))
    # It is rounded up on its way.
    assert 0 < left <= 21_000, left
    started = time.monotonic()
    error = status_of(lambda: list(call("Wait", b"", "unary_stream", timeout=1)))
    same(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
    assert time.monotonic() - started < 15
    same(call("WasCancelled", b""), b"yes")


def cancellation():
    waiting = call("Wait", b"", "unary_stream")
    same(next(waiting), b"started")
    waiting.cancel()
    same(status_of(lambda: next(waiting)).code(), grpc.StatusCode.CANCELLED)
    same(call("WasCancelled", b""), b"yes")


def gzip():
    with open_channel(compression=grpc.Compression.Gzip) as packing:
        message = b"the same again and again, " * 10_000
        method = packing.unary_unary("/test.Echo/Compressed")
        assert method(message, timeout=PATIENCE) == message


def keepalive():
    """A quiet stream lives on while its client pings."""
    options = [
        ("grpc.keepalive_time_ms", 200),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
    with open_channel(options) as pinging:
        came = list(call("Quiet", b"1500", "unary_stream", on=pinging))
        same(came, [b"before", b"after"])


def connections_come_and_go():
    for _ in range(10):
        with open_channel([("grpc.use_local_subchannel_pool", 1)]) as another:
            same(call("Unary", b"again", on=another), b"again")


CASES = [
    unary,
    many_at_once,
    large,
    metadata,
    server_streaming,
    client_streaming,
    bidirectional,
    error_status,
    error_behind_messages,
    no_such_method,
    deadline,
    cancellation,
    gzip,
    keepalive,
    connections_come_and_go,
]
cases.run([(case.__name__, case) for case in CASES])
