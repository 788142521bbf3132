"""What stands between a request and the page: who may ask, how often, for how long, and what browsers may do with it.

    name       the Host header must be an address, localhost or the name that was given: no other site's name can be
               pointed at this machine and used to read the page
    origin     a request that another site's script or page sends is refused; no CORS header is ever sent
    rate       a bucket of requests for each address, refilled by the second
    size       a body that says it is larger than the cap is refused before it is read
    time       a request that takes too long is given up
    headers    a strict content policy: scripts, styles and pictures from the page itself only

Every refusal is a JSON object with one sentence under "error".
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_UPLOAD_BYTES = 10_000_000
DRAINED, DRAIN_SECONDS = 5, 5.0  # so many times the cap, and so long, a body is read to be thrown away
MOST_CLIENTS = 4_096  # addresses whose buckets are remembered
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Limits:
    """What one client may ask for; a rate of 0 is no limit."""

    host: str = "127.0.0.1"
    requests_per_second: float = 100.0
    burst: float = 400.0
    max_bytes: int = MAX_UPLOAD_BYTES
    seconds: float = 20.0


@dataclass(frozen=True)
class Refusal:
    """A status and the sentence that goes with it."""

    status: int
    sentence: str


class Guard:
    """An ASGI application around another one; see the module's text."""

    def __init__(self, app: App, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.limits = limits
        self.clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # address -> (requests left, when)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or give up after the time that a request may take."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        is_begun = False

        async def guarded(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            try:
                async with asyncio.timeout(self.limits.seconds):
                    await self.app(scope, receive, guarded)
                return
            except TimeoutError:
                if is_begun:
                    raise
                refusal = Refusal(503, f"this took longer than {self.limits.seconds:g} s: ask for less, or later.")
        if refusal.status == 413:
            await _drain(receive, DRAINED * self.limits.max_bytes)
        await _refuse(refusal, guarded)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if not is_known_host(host, self.limits.host):
            return Refusal(421, "the page answers to its address or localhost only: open it by the address it printed.")
        if not _is_same_site(headers, host):
            return Refusal(403, "requests from other sites are refused: open the page itself.")
        if not self._takes_one(str((scope.get("client") or ("",))[0])):
            return Refusal(429, f"at most {self.limits.requests_per_second:g} requests a second: wait a moment.")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.limits.max_bytes:
            return too_large(self.limits.max_bytes)
        return None

    def _takes_one(self, client: str) -> bool:
        """Take one request from the bucket of a client, if there is one in it."""
        if not self.limits.requests_per_second:
            return True
        now = self.clock()
        left, when = self._buckets.pop(client, (self.limits.burst, now))
        left = min(self.limits.burst, left + (now - when) * self.limits.requests_per_second)
        self._buckets[client] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._buckets) > MOST_CLIENTS:
            del self._buckets[next(iter(self._buckets))]  # the one not heard of for longest
        return left >= 1


def too_large(max_bytes: int) -> Refusal:
    """The refusal of a body beyond the cap."""
    return Refusal(413, f"a picture may have at most {max_bytes / 1e6:g} MB: make it smaller.")


def is_known_host(header: str, given: str) -> bool:
    """Whether a Host header is an address, localhost, or the name the page was given.

    >>> is_known_host("127.0.0.1:8000", "127.0.0.1"), is_known_host("[::1]:8000", ""), is_known_host("evil.example", "")
    (True, True, False)
    """
    try:
        name = (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return False
    if name in ("localhost", given.lower()) and name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same_site(headers: dict[str, str], host: str) -> bool:
    """Browsers say where a request comes from; programs say nothing."""
    if "origin" in headers and urlsplit(headers["origin"]).netloc.lower() != host.lower():
        return False
    if headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document":
        return True  # a link to the page may stand anywhere
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


async def _drain(receive: Receive, max_bytes: int) -> None:
    """Read a body that is not wanted, within reason: a client that is cut off while it sends never sees the answer."""
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= max_bytes:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body"):
                    return


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": refusal.sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
