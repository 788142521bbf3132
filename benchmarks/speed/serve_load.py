"""The page under load: 100 clients search on loopback for 30 seconds; requests a second, p50 and p99.

    python benchmarks/speed/serve_load.py             measures, and writes benchmarks/results/serve_load.json
    python benchmarks/speed/serve_load.py --seconds 3 --out /dev/stdout

The server is `quorumhash serve --demo` in a process of its own, without its rate limit; the clients share this one.
Each client keeps one connection and asks for the 10 nearest of a random item, one request after the other. A request
counts as an error unless it is answered by status 200 and ten matches. Server and clients share the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from quorumhash.bench.provenance import provenance
from quorumhash.engines.threads import threads_wanted

RESULT = Path(__file__).parents[1] / "results" / "serve_load.json"
SERVE = [sys.executable, "-c", "from quorumhash.cli import main; main()", "serve", "--demo", "--port", "0",
         "--rate", "0", "--json"]  # fmt: skip
K = 10


async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str) -> tuple[int, bytes]:
    """One request on a connection that stays open."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def client(address: str, n_items: int, until: float, seed: int, seconds: list[float], errors: list[str]) -> None:
    host, rng = urlsplit(address).netloc, random.Random(seed)
    reader, writer = await asyncio.open_connection(*host.split(":"))
    while time.perf_counter() < until:
        started = time.perf_counter()
        status, body = await asked(reader, writer, host, f"/api/search?item={rng.randrange(n_items)}&k={K}")
        seconds.append(time.perf_counter() - started)
        if status != 200 or len(json.loads(body)["matches"]) != K:
            errors.append(f"{status}: {body[:200]!r}")
    writer.close()


async def load(
    address: str, n_items: int, n_clients: int, duration: float, seed: int
) -> tuple[list[float], list[str], float]:
    seconds: list[float] = []
    errors: list[str] = []
    started = time.perf_counter()
    tasks = [client(address, n_items, started + duration, seed + i, seconds, errors) for i in range(n_clients)]
    for failed in await asyncio.gather(*tasks, return_exceptions=True):
        if failed is not None:
            errors.append(repr(failed))
    return seconds, errors, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with subprocess.Popen(SERVE, stdout=subprocess.PIPE, text=True) as server:
        try:
            facts = json.loads(server.stdout.readline())
            asyncio.run(load(facts["url"], facts["items"], 4, 1.0, options.seed))  # connections and caches warm up
            busy = os.getloadavg()[0]
            seconds, errors, took = asyncio.run(
                load(facts["url"], facts["items"], options.clients, options.seconds, options.seed)
            )
        finally:
            server.terminate()
    milliseconds = 1000 * np.array(seconds)
    result = {
        "command": "python benchmarks/speed/serve_load.py",
        "seed": options.seed,
        "provenance": provenance(threads_wanted()),
        "load_average_before": round(busy, 2),
        "n_clients": options.clients,
        "seconds": round(took, 2),
        "items": facts["items"],
        "bits": facts["bits"],
        "k": K,
        "requests": len(seconds),
        "errors": len(errors),
        "requests_per_second": round(len(seconds) / took, 1),
        "milliseconds": {f"p{q}": round(float(np.percentile(milliseconds, q)), 2) for q in (50, 90, 99)}
        | {"max": round(float(milliseconds.max()), 2)},
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["milliseconds"]), result["requests"], "requests", len(errors), "errors", *errors[:3])


if __name__ == "__main__":
    main()
