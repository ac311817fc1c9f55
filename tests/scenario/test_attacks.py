# SPDX-License-Identifier: MIT
"""Odd requests that are no attack, and what cuts a connection off; tests/attack has the rest."""

import json
import os
import socket
import time

import pytest

from waiting import wait_until
from witness import WITNESS


@pytest.fixture(scope="module")
def web(site):
    return site.web(web_deadline_ms=3000)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


def connect(web):
    return socket.create_connection(("127.0.0.1", int(web.url.rsplit(":", 1)[1])), 10)


def exchange(web, data):
    """All that comes back until the other side closes; b"" when it closes without a word."""
    with connect(web) as link:
        got = b""
        try:
            link.sendall(data)
            while part := link.recv(65536):
                got += part
        except ConnectionError:
            pass
    WITNESS.note_raw(got)
    return got


def head(target=b"/livez", *lines):
    return b"\r\n".join([b"GET " + target + b" HTTP/1.1", b"Host: x", *lines, b"", b""])


def test_requests_too_large_for_the_library_leave_nothing_behind(site):
    web = site.web("cut")
    cookies = head(b"/livez", b"Cookie: " + b"a=b; " * 5000)
    for _ in range(3):
        assert exchange(web, cookies)[:12] in (b"", b"HTTP/1.1 431")
    assert web.stop() == 0  # it waits for requests under way, and tells if they do not end
    assert not web.log_events("http.stop.cut_short")


def test_thousands_of_empty_parameters_are_refused_at_once(web):
    began = time.monotonic()
    got = exchange(web, head(b"/livez?" + b"&" * 7000))
    assert time.monotonic() - began < 2
    assert got.startswith(b"HTTP/1.1 400 "), got
    problem = json.loads(got.partition(b"\r\n\r\n")[2])
    assert problem["code"] == "SLUICE-1001" and problem["requestId"], problem
    assert problem["instance"] == "/livez", problem


def test_an_absolute_target_is_taken_as_its_path(web):
    for target, status in ((b"http://any.host/livez", b"200"), (b"http://any.host", b"400")):
        assert exchange(web, head(target, b"Connection: close"))[9:12] == status


def test_a_trace_of_zeros_is_no_trace(ann):
    for ids, told in (("0" * 32, "b" * 16), False), (("a" * 32, "0" * 16), False), \
                     (("a" * 32, "b" * 16), True):
        trace = f"00-{'-'.join(ids)}-01"
        assert (ann.get("/v1/whoami", traceparent=trace).headers["traceparent"] == trace) == told


def test_whatever_its_name_is_a_file_that_is_listed_can_be_fetched(site, ann):
    job = ann.submit("true")
    folder = site.path("archive", "acme", job, "1", "files").encode()
    os.makedirs(folder + b"/d\xe4r")
    names = [b"d\xe4r/\xff", b"100%", b"a b?#&+", b"\xc3\xbc", b"line\nfeed", b'"\\']
    for name in names:
        with open(os.path.join(folder, name), "wb") as out:
            out.write(name)
    files = ann.get(f"/v1/jobs/{job}/files").expect(200).json["files"]
    assert {ann.get(file["href"]).expect(200).body for file in files} == set(names)
    ann.get(f"/v1/jobs/{job}/files/%ff").problem(404)
    ann.get("/v1/jobs/%ff").problem(400)


def pages_of(client, path, member):
    """Answers of all pages."""
    pages = [client.get(path).expect(200)]
    while pages[-1].json["nextCursor"]:
        pages.append(client.get(f"{path}{'&' if '?' in path else '?'}cursor={pages[-1].json['nextCursor']}")
                     .expect(200))
        assert pages[-1].json[member], pages
    return pages


def test_files_come_in_pages_each_once(site, ann):
    job, other = ann.submit("true"), ann.submit("true")
    folder = site.path("archive", "acme", job, "1", "files")
    names = {f"{top}/{at}" for top in ("a", "b/c") for at in range(12)} | {"d"}
    for name in names:
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb"):
            pass
    pages = pages_of(ann, f"/v1/jobs/{job}/files?limit=10", "files")
    assert [len(page.json["files"]) for page in pages] == [10, 10, 5]
    assert sorted(file["path"] for page in pages for file in page.json["files"]) == sorted(names)
    assert not any(page.json["truncated"] for page in pages)
    cursor = pages[0].json["nextCursor"]
    ann.get(f"/v1/jobs/{other}/files?cursor={cursor}").problem(400)
    whole = ann.get(f"/v1/jobs/{job}/files").expect(200).json
    assert len(whole["files"]) == 25 and whole["nextCursor"] is None


def test_long_names_make_a_page_of_files_short_and_not_large(site, ann):
    job = ann.submit("true")
    deep = "/".join(["\xfc" * 120] * 3)
    folder = os.path.join(site.path("archive", "acme", job, "1", "files"), deep)
    os.makedirs(folder)
    for at in range(900):
        with open(os.path.join(folder, f"{at}"), "wb"):
            pass
    pages = pages_of(ann, f"/v1/jobs/{job}/files", "files")
    assert len(pages) > 1 and max(len(page.body) for page in pages) < 2 << 20
    assert sorted(int(file["path"].rpartition("/")[2]) for page in pages
                  for file in page.json["files"]) == list(range(900))


def test_at_most_ten_thousand_files_are_listed(site, ann):
    job = ann.submit("true")
    folder = site.path("archive", "acme", job, "1", "files")
    os.makedirs(folder)
    for at in range(10_001):
        with open(os.path.join(folder, f"{at}"), "wb"):
            pass
    pages = pages_of(ann, f"/v1/jobs/{job}/files", "files")
    assert [len(page.json["files"]) for page in pages] == [1000] * 10
    assert [page.json["truncated"] for page in pages] == [False] * 9 + [True]


def test_what_is_no_file_in_an_archive_is_404(site, ann):
    job = ann.submit("true")
    folder = site.path("archive", "acme", job, "1", "files")
    os.makedirs(folder)
    os.mkfifo(os.path.join(folder, "pipe"))
    os.symlink("/etc/passwd", os.path.join(folder, "link"))
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(os.path.join(folder, "socket"))
    for name, status in (("pipe", 404), ("socket", 404), ("link", 400), ("none", 404)):
        ann.get(f"/v1/jobs/{job}/files/{name}").problem(status)


def test_a_reader_that_takes_a_byte_now_and_then_is_cut_off(site):
    web = site.web("trickle", web_deadline_ms=500)
    ann = site.client(web)
    job = ann.submit("true", env={f"V{at}": "x" * 1000 for at in range(500)})

    def is_cut():
        assert link.recv(1)  # what had arrived before is still there
        return b"sluice_http_connections 1\n" in ann.get("/metrics").body
    with socket.socket() as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(("127.0.0.1", int(web.url.rsplit(":", 1)[1])))
        link.sendall(head(f"/v1/jobs/{job}".encode(),
                          f"Authorization: Bearer {ann.token}".encode()) * 20)
        wait_until("the connection to end", is_cut, 30, 0.1)
