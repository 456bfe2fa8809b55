"""The same service with asyncio: one thread, and tasks that wait. MODE [PEER[:PORT]]; "ready" on stdout when it works."""

import asyncio
import sys

mode, argument = sys.argv[1], (sys.argv[2:] or [""])[0]
peer_port, port = (list(map(int, argument.split(":"))) + [0])[:2] if mode in ("peer", "front", "keepalive", "news", "worker") else (0, 0)


def score_documents(n):
    best = 0
    for i in range(5000):
        best = max(best, (n * i) % 977)
    return best


async def fetch_price(reader, writer, question=b"how much"):
    writer.write(question)
    return await reader.read(4096)


async def ask_again_and_again():
    reader, writer = await asyncio.open_connection("127.0.0.1", peer_port)
    while True:
        await fetch_price(reader, writer)


async def answer_with_price(reader, writer):
    """A connection for each request, as many clients do it."""
    while await reader.read(4096):
        from_peer, to_peer = await asyncio.open_connection("127.0.0.1", peer_port)
        await fetch_price(from_peer, to_peer, b"GET / HTTP/1.1\r\n\r\n")
        to_peer.close()
        writer.write(b"price!")


async def answer_from_database(reader, writer, database=[]):
    while await reader.read(4096):
        if not database:
            database.extend(await asyncio.open_connection("127.0.0.1", peer_port))
        await fetch_price(*database)
        writer.write(b"row!")


async def watch():
    reader, writer = await asyncio.open_connection("127.0.0.1", peer_port)
    while True:
        await fetch_price(reader, writer, b"watch")


async def read_news():
    reader, writer = await asyncio.open_connection("127.0.0.1", peer_port)
    writer.write(b"subscribe")
    while await reader.read(4096):
        pass


totals_lock = asyncio.Lock()


async def update_totals():
    while True:
        async with totals_lock:
            await asyncio.sleep(0.003)


async def compute():
    n = 0
    while True:
        score_documents(n)
        n += 1
        await asyncio.sleep(0)


async def main():
    tasks = []
    if mode in ("peer", "worker"):
        tasks = [ask_again_and_again()]
    elif mode in ("front", "keepalive"):
        await asyncio.start_server(answer_with_price if mode == "front" else answer_from_database, "127.0.0.1", port)
        tasks = [watch()] if mode == "keepalive" else []
    elif mode == "news":
        tasks = [read_news()]
    elif mode == "lock":
        tasks = [update_totals() for _ in range(6)]
    elif mode == "hot":
        tasks = [compute()]
    elif mode != "idle":
        sys.exit(2)
    running = [asyncio.ensure_future(task) for task in tasks]
    print("ready", flush=True)
    await asyncio.gather(asyncio.sleep(3600), *running)


asyncio.run(main())
