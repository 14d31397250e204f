"""A WebSocket server that sends back what it gets, and does what some words tell it."""

import asyncio

from websockets.asyncio.server import serve

MESSAGE_BYTES_MAX = 4 * 1024 * 1024


KNOWN = ["chat.v2", "chat"]


def chosen(_client, offered):
    return next((name for name in KNOWN if name in offered), None)


async def pieces():
    for piece in "one ", "two ", "three":
        yield piece


async def serve_client(client):
    async for message in client:
        match message.split(" ", 2) if isinstance(message, str) else []:
            case ["close", code, reason]:
                await client.close(int(code), reason)
            case ["fragments"]:
                await client.send(pieces())
            case ["ping"]:
                await (await client.ping(b"from the server"))
                await client.send("pong came")
            case ["path"]:
                await client.send(client.request.path)
            case ["subprotocol"]:
                await client.send(client.subprotocol or "none")
            case _:
                await client.send(message)


async def main():
    more = {"select_subprotocol": chosen, "max_size": MESSAGE_BYTES_MAX}
    async with serve(serve_client, "127.0.0.1", 0, **more) as server:
        print("port", server.sockets[0].getsockname()[1], flush=True)
        await server.wait_closed()


asyncio.run(main())
