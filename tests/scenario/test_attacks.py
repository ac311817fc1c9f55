# SPDX-License-Identifier: MIT
"""What strangers send to break the service: nothing of it may stay, stop it or slow it down."""

import json
import socket
import time

import pytest


@pytest.fixture(scope="module")
def web(site):
    return site.web(web_deadline_ms=3000)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


def exchange(web, data):
    """All that comes back until the other side closes; b"" when it closes without a word."""
    with socket.create_connection(("127.0.0.1", int(web.url.rsplit(":", 1)[1])), 10) as link:
        got = b""
        try:
            link.sendall(data)
            while part := link.recv(65536):
                got += part
        except ConnectionError:
            pass
    return got


def head(target=b"/livez", *lines):
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: x", *lines, b"", b""])


def test_requests_too_large_for_the_library_leave_nothing_behind(site):
    web = site.web("cut")
    cookies = head(b"/livez", b"Cookie: " + b"a=b; " * 5000)
    for _ in range(3):
        assert exchange(web, cookies)[:12] in (b"", b"HTTP/1.1 431")
    began = time.monotonic()
    assert web.stop() == 0
    assert time.monotonic() - began < 5  # it waits for requests under way
    assert not web.log_events("http.stop.cut_short")


def test_thousands_of_empty_parameters_are_refused_at_once(web):
    began = time.monotonic()
    got = exchange(web, head(b"/livez?" + b"&" * 7000))
    assert time.monotonic() - began < 2
    assert got.startswith(b"HTTP/1.1 400 "), got
    problem = json.loads(got.partition(b"\r\n\r\n")[2])
    assert problem["code"] == "SLUICE-1001" and problem["requestId"], problem
