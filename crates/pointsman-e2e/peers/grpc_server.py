"""A gRPC server of bytes: no code is generated, messages are what they are."""

import threading
from concurrent import futures

import grpc

MESSAGE_BYTES_MAX = 32 * 1024 * 1024
cancelled = threading.Event()


def unary(request, context):
    """The request again, with the metadata that it came with."""
    # What a proxy says of its client is no trailer.
    own = ("x-text", "x-twice", "x-some-bin")
    echoed = [(key, value) for key, value in context.invocation_metadata() if key in own]
    context.send_initial_metadata(echoed)
    context.set_trailing_metadata(echoed)
    return request


def compressed(request, context):
    """The request again, packed."""
    context.set_compression(grpc.Compression.Gzip)
    return request


def server_stream(request, _context):
    """`COUNT SIZE`: so many messages of that size."""
    count, size = map(int, request.split())
    for number in range(count):
        yield bytes([number % 256]) * size


def client_stream(requests, _context):
    """How many messages came, and how many bytes in all."""
    sizes = [len(request) for request in requests]
    return b"%d %d" % (len(sizes), sum(sizes))


def bidirectional(requests, _context):
    """Each message again, as soon as it comes."""
    yield from requests


def fail(request, context):
    """`CODE`: that status, with details."""
    context.set_trailing_metadata([("x-reason-bin", b"\x00\xff\r\n"), ("x-reason", "why")])
    context.abort(list(grpc.StatusCode)[int(request)], "details: \u00e4 100% \n")


def fail_late(_request, context):
    """Two messages, then a status."""
    yield b"one"
    yield b"two"
    context.abort(grpc.StatusCode.DATA_LOSS, "after two")


def wait(_request, context):
    """Nothing until the client has had enough, which is remembered."""
    cancelled.clear()
    # A call that ends while its message is on its way never comes back here.
    context.add_callback(cancelled.set)
    yield b"started"
    cancelled.wait(30)


def was_cancelled(_request, _context):
    """Whether the call before was ended by its client."""
    return b"yes" if cancelled.wait(20) else b"no"


def quiet(request, _context):
    """One message, nothing for `MILLISECONDS`, another message."""
    yield b"before"
    threading.Event().wait(int(request) / 1000)
    yield b"after"


def time_left(_request, context):
    """The deadline as the server sees it, in milliseconds."""
    left = context.time_remaining()
    return b"none" if left is None else b"%d" % (left * 1000)


METHODS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "Compressed": grpc.unary_unary_rpc_method_handler(compressed),
    "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
    "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
    "Bidirectional": grpc.stream_stream_rpc_method_handler(bidirectional),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "FailLate": grpc.unary_stream_rpc_method_handler(fail_late),
    "Wait": grpc.unary_stream_rpc_method_handler(wait),
    "WasCancelled": grpc.unary_unary_rpc_method_handler(was_cancelled),
    "Quiet": grpc.unary_stream_rpc_method_handler(quiet),
    "TimeLeft": grpc.unary_unary_rpc_method_handler(time_left),
}


def main():
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
        ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
        ("grpc.http2.min_ping_interval_without_data_ms", 100),
    ]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=options)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Echo", METHODS)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print("port", port, flush=True)
    server.wait_for_termination()


main()
