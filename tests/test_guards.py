"""What stands between a request and the page."""

import asyncio
import json

import pytest

from quorumhash.web.guards import HEADERS, MOST_CLIENTS, Guard, Limits, is_known_host


async def fine(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def slow(scope, receive, send):
    await asyncio.sleep(30)


def asked(guard, client="127.0.0.1", **headers):
    """Status, headers and body of one request; header names have _ for -."""
    given = {"host": "127.0.0.1:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {"type": "http", "client": (client, 1), "headers": [(n.encode(), v.encode()) for n, v in given.items()]}
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(guard(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), json.loads(sent[1]["body"])


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:8000", True), ("localhost", True), ("LOCALHOST:80", True), ("[::1]:8000", True), ("10.0.0.7", True),
        ("photos.lan:8000", True), ("evil.example", False), ("127.0.0.1.evil.example", False), ("", False),
        ("localhost.evil.example", False), ("[::1", False), ("127.0.0.1@evil.example", False),
    ],
)  # fmt: skip
def test_names_of_other_sites_are_refused(host, is_known):
    assert is_known_host(host, "photos.lan") is is_known
    status, _, body = asked(Guard(fine, Limits("photos.lan")), host=host)
    assert status == (200 if is_known else 421)
    assert is_known or "its address or localhost only" in body["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:8000", "sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "none", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9000"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_other_sites_may_link_and_no_more(headers, status):
    found, sent, _ = asked(Guard(fine, Limits()), **headers)
    assert found == status
    assert not any(name.startswith(b"access-control") for name in sent)


def test_every_answer_has_the_strict_headers():
    for headers in ({}, {"origin": "http://evil.example"}):
        _, sent, _ = asked(Guard(fine, Limits()), **headers)
        assert {name: sent[name.encode()].decode() for name in HEADERS} == HEADERS
    assert "unsafe" not in HEADERS["content-security-policy"]


def test_a_client_may_ask_so_often_and_another_still_may():
    now = 0.0
    guard = Guard(fine, Limits(requests_per_second=2, burst=3), clock=lambda: now)
    assert [asked(guard)[0] for _ in range(4)] == [200, 200, 200, 429]
    assert asked(guard, client="10.0.0.9")[0] == 200
    now = 0.5
    assert [asked(guard)[0] for _ in range(2)] == [200, 429]


def test_the_memory_of_clients_is_bounded():
    guard = Guard(fine, Limits())
    for i in range(MOST_CLIENTS + 50):
        guard._takes_one(str(i))
    assert len(guard._buckets) == MOST_CLIENTS


def test_rate_zero_is_no_limit():
    guard = Guard(fine, Limits(requests_per_second=0, burst=1))
    assert {asked(guard)[0] for _ in range(20)} == {200}


@pytest.mark.parametrize(("length", "status"), [("10000000", 200), ("10000001", 413), ("-1", 413), ("many", 413)])
def test_large_bodies_are_refused_before_they_are_read(length, status):
    assert asked(Guard(fine, Limits()), content_length=length)[0] == status


def test_a_request_that_takes_too_long_is_given_up():
    status, _, body = asked(Guard(slow, Limits(seconds=0.05)))
    assert status == 503
    assert "longer than 0.05 s" in body["error"]


def test_sockets_are_not_spoken_with():
    sent = []
    asyncio.run(Guard(fine, Limits())({"type": "websocket"}, None, sent.append))
    assert not sent
