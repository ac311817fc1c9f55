# SPDX-License-Identifier: MIT
"""Requests that are no requests: heads, bodies and JSON that a careless reader takes or dies of."""

import gzip
import http.server
import json
import socket
import threading
import zlib

import pytest

from attacks import attacked
from rest import Answer
from sluice import read_proc

JSON = {"Content-Type": "application/json"}
NEXT = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
MIB = 1 << 20


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
        except TimeoutError:
            raise AssertionError(f"{data[:200]} leaves the connection open: {got}") from None
    return got


def answer_of(got):
    """The one answer on a connection that was closed behind it; status 0 for none."""
    head, _, body = got.partition(b"\r\n\r\n")
    if not head:
        return Answer(0, {}, b"")
    if body.startswith(head):  # libmicrohttpd says its own refusal of a length twice
        body = body[len(head):]
    assert head.startswith(b"HTTP/1.1 ") and b"HTTP/1.1 " not in body, got
    fields = dict(line.decode("latin-1").split(": ", 1) for line in head.split(b"\r\n")[1:])
    return Answer(int(head.split(b" ", 2)[1]), fields, body)


def head(target=b"/livez", *lines, method=b"GET"):
    return b"\r\n".join([method + b" " + target + b" HTTP/1.1", b"Host: x", *lines, b"", b""])


def post(ann, *lines):
    return head(b"/v1/jobs", f"Authorization: Bearer {ann.token}".encode(),
                b"Content-Type: application/json", *lines, method=b"POST")


def resident(process):
    return int(read_proc(process.pid, "statm").split()[1]) * 4096


SMUGGLED = [
    (b"Content-Length: 0\r\nContent-Length: 5\r\n", NEXT),
    (b"Content-Length: 2\r\nContent-Length: 2\r\n", b"{}" + NEXT),
    (b"Content-Length : 5\r\n", NEXT),
    (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n" + NEXT),
    (b"Transfer-Encoding: xchunked\r\n", b"2\r\n{}\r\n0\r\n\r\n" + NEXT),
    (b"Transfer-Encoding: gzip, chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n" + NEXT),
    (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + NEXT),
    (b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n" + NEXT),
    (b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n" + NEXT),
    (b"Content-Length: +5\r\n", NEXT),
    (b"Content-Length: 0x5\r\n", NEXT),
    (b"Content-Length: 5, 5\r\n", NEXT),
    (b"X-A: b\rContent-Length: 5\r\n", NEXT),
    (b"Host: y\r\n", NEXT),
    (b": z\r\nContent-Length: 5\r\n", NEXT),
    (b":\r\nContent-Length: 5\r\n", NEXT),
    (b"\x00\r\nContent-Length: 5\r\n", NEXT),
    (b"\x00z\r\nContent-Length: 5\r\n", NEXT),
    (b"X-A: b\x00c\r\n", NEXT),
    (b"Content-Length: 0\x00\r\n", NEXT),
    (b"X-A: b\r\n Content-Length: 5\r\n", NEXT),
    (b"X-A: b\nContent-Length: 0\r\n", NEXT),
    (b"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n", NEXT),
]


def test_a_head_that_can_be_read_in_two_ways_ends_the_connection(stand):
    with attacked("F-18 smuggling", stand) as hit:
        for method in (b"POST /v1/jobs", b"GET /livez"):
            for lines, body in SMUGGLED:
                got = exchange(stand.web, method + b" HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n" + body)
                answer = answer_of(got)
                if "Content-Type" in answer.headers:
                    hit.refused(answer, 400, "SLUICE-1001")
                else:  # the library found it before us
                    hit.held(answer.status in (0, 400), f"{lines}: {got}")


# The target is what the whole line says, or nothing: {} is a queue that may be deleted.
LINES = [
    b"DELETE /v1/queues/{}\x00-not-this HTTP/1.1", b"DELETE /v1/queues/{}\x00 HTTP/1.1",
    b"DELETE /v1/queues/{}?\x00 HTTP/1.1", b"DELETE /v1/queues/{}?x\x00=1 HTTP/1.1",
    b"DELETE\x00 /v1/queues/{} HTTP/1.1", b"DELETE\x00/x /v1/queues/{} HTTP/1.1",
    b"DELETE \x00/v1/queues/{} HTTP/1.1", b"DELETE /v1/queues/{} \x00HTTP/1.1",
    b"DELETE /v1/queues/{} HTTP/1.1\x00", b"DELETE /v1/queues/{} HTTP/1.1\x00x",
    b"DELETE /v1/queues/{} HTTP/1.1 ", b"DELETE /v1/queues/{} x HTTP/1.1",
    b"DELETE  /v1/queues/{} HTTP/1.1", b"DELETE /v1/queues/{}  HTTP/1.1",
    b"DELETE\t/v1/queues/{} HTTP/1.1", b"DELETE /v1/queues/{}\tHTTP/1.1",
    b"DELETE /v1/queues/{}\t HTTP/1.1", b"DELETE \t/v1/queues/{} HTTP/1.1",
    b"DELETE /v1/queues/{}\x01 HTTP/1.1", b"DELETE /v1/queues/{}\x7f HTTP/1.1",
    b"DELETE /v1/queues/{}?\x0b HTTP/1.1", b"DELETE /v1/queues/{}\r HTTP/1.1",
    b"DELETE /v1/queues/{} HTTP/1.1\rX: y", b"\x00DELETE /v1/queues/{} HTTP/1.1",
    b" DELETE /v1/queues/{} HTTP/1.1", b"DELETE /v1/queues/{} HTTP/1.1\x0b",
    b"DE\x01LETE /v1/queues/{} HTTP/1.1", b"DELETE /v1/queues/{} http/1.1",
    b"DELETE /v1/queues/{} HTTP/1.10", b"DELETE /v1/queues/{} HTTP/2.0", b"DELETE /v1/queues/{}",
    b"DELETE ftp://x/v1/queues/{} HTTP/1.1", b"DELETE v1/queues/{} HTTP/1.1",
    b"DELETE /v1/queues/{}#x HTTP/1.1", b"DELETE /v1/queues/{}%00 HTTP/1.1",
]


def test_a_request_line_is_three_words_with_one_blank_between(stand):
    stand.root.put_queue("byline", 66, "name = 'never'").expect(201)
    with attacked("F-18 request line", stand) as hit:
        for line in LINES:
            line = line.replace(b"{}", b"byline")
            data = b"\r\n".join([line, b"Host: x", b"Connection: close",
                                 f"Authorization: Bearer {stand.root.token}".encode(), b"", b""])
            answer = answer_of(exchange(stand.web, data + NEXT))
            hit.held(answer.status in (0, 400, 404, 405, 505), f"{line}: {answer!r}")
            hit.held(stand.root.get("/v1/queues/byline").status == 200, line)
        for line in (b"GET /metrics\x00/ui/x HTTP/1.1", b"GET\x00 /livez HTTP/1.1", b"GET /livez\x00 HTTP/1.1"):
            answer = answer_of(exchange(stand.web, line + b"\r\nHost: x\r\n\r\n" + NEXT))
            hit.refused(answer, 400, "SLUICE-1001")


def test_a_whole_head_is_taken_however_it_comes(stand):
    """The library moves what it has read: the ends of lines are found all the same."""
    fields = [b"X-%d: %s" % (at, b"v" * (at % 50)) for at in range(300)] + [b"X-Empty:", b"X-Blank:  \t a b "]
    data = head(b"/livez?a=b&c", *fields) * 3 + head(b"/livez", *fields, b"Connection: close")
    with attacked("F-18 smuggling", stand) as hit, connect(stand.web) as link:
        for at in range(0, len(data), 1000):
            link.sendall(data[at:at + 1000])
        got = b""
        while part := link.recv(65536):
            got += part
        hit.held(got.count(b"HTTP/1.1 200 ") == 1 and got.count(b"HTTP/1.1 400 ") == 3
                 and got.count(b"HTTP/1.1 ") == 4, got)


# What the library refuses alone has no document; all else has one.
TOLD = [b"GET /livez HTTP/1.1\r\n\r\n", b"GET /liv ez HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET  /livez  HTTP/1.1\r\nHost: x\r\n\r\n", b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        head(b"/livez", b"Foo : x"), head(b"/livez", b" x: y"), head(b"/livez", b"A: b\r\n c"),
        head(b"/livez", b": x"), head(b"/livez", b"A: b\x00c"), b"GET /livez HTTP/1.1\nHost: x\n\n",
        head(b"/livez", b"Transfer-Encoding: gzip"), head(b"/livez", b"Host: y"), head(b"*", method=b"OPTIONS"),
        head(b"/livez?" + b"&".join(b"a%d=b" % at for at in range(500)))]
BARE = {400: [b"GET /livez\r\n\r\n", b"GET / HTTX/1.1\r\nHost: x\r\n\r\n", head(b"/livez", b"no colon"),
              head(b"/livez", b"Content-Length: abc", method=b"POST")],
        413: [head(b"/livez", b"Content-Length: " + b"9" * 30, method=b"POST")],
        414: [b"GET /" + b"a" * 200000], 431: [head(b"/livez", b"X: " + b"a" * 200000)],
        505: [b"GET / HTTP/9.9\r\nHost: x\r\n\r\n"], 0: [b"GET\r\n\r\n"]}


def test_refusals_have_a_document_but_for_those_of_the_library(stand):
    with attacked("F-18 refusals", stand) as hit:
        for data in TOLD:
            data = data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
            hit.refused(answer_of(exchange(stand.web, data)), 400, "SLUICE-1001")
        for status, list_of_data in BARE.items():
            for data in list_of_data:
                answer = answer_of(exchange(stand.web, data))
                hit.held(answer.status in (0, status) and "Content-Type" not in answer.headers,
                         f"{data[:60]}: {answer!r}")


def test_chunks_are_of_a_size_that_can_be_read(stand, ann):
    sizes = (b"-1", b"FFFFFFFFFFFFFFFFF", b"1" * 200, b"0x2", b"2 ;", b"g", b"", b"+2", b"2\x00", b"\n2",
             b"2;a=" + b"b" * 100000)
    with attacked("F-18 chunks", stand) as hit:
        for size in sizes:
            got = exchange(stand.web, post(ann, b"Transfer-Encoding: chunked")
                           + size + b"\r\n{}\r\n0\r\n\r\n")
            answer = answer_of(got)
            # 500: what the library says of an extension that is larger than its memory.
            hit.held(answer.status in (0, 400, 408, 413, 431, 500), f"{size[:40]}: {answer!r}")
        got = exchange(stand.web, post(ann, b"Transfer-Encoding: chunked", b"Connection: close")
                       + b"2\r\n{}XX0\r\n\r\n")
        hit.held(answer_of(got).status in (0, 400), got)


def test_heads_are_bounded_and_hold_what_heads_may(stand, ann):
    large = [b"X-A: " + b"a" * 70000, b"Cookie: " + b"a=b; " * 14000, b"X-" + b"a" * 40000 + b": b",
             b"\r\n".join(b"X-%d: y" % at for at in range(6000))]
    targets = [b"/" + b"a" * 70000, b"/livez?" + b"&" * 7000, b"/" + b"/" * 200, b"/%00", b"/a%", b"*",
               b"livez", b"/\xff\xfe", b"/v1/jobs?filter=" + b"(" * 20000]
    broken = [b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
              b"\x00\x01\x02\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
              b"GET /livez HTTP/1.1\r\n\r\n", b"GET  /livez  HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
              b"A" * 30000 + b" / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
              b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
              b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
              b"GET /livez HTTP/1.1\r\nHost: x\r\n folded: y\r\nX\r\n\r\n"]
    with attacked("F-18 heads", stand) as hit:
        for line in large:
            answer = answer_of(exchange(stand.web, head(b"/livez", b"Connection: close", line)))
            hit.held(answer.status in (0, 431), f"{line[:40]}: {answer!r}")
        for target in targets:
            answer = answer_of(exchange(stand.web, head(target, b"Connection: close")))
            hit.held(answer.status in (0, 400, 401, 404, 414, 431), f"{target[:40]}: {answer!r}")
        for data in broken:
            answer = answer_of(exchange(stand.web, data))
            hit.held(answer.status in (0, 400, 404, 405, 408, 413, 501, 505), f"{data[:40]}: {answer!r}")


def test_a_body_is_bounded_however_it_comes(stand, ann):
    before = resident(stand.web)
    with attacked("F-18 body", stand) as hit:
        hit.refused(answer_of(exchange(stand.web, post(ann, b"Content-Length: 1000000000"))), 413)
        hit.refused(ann.post("/v1/jobs", b" " * (5 * MIB), JSON), 413, "SLUICE-1040")
        for _ in range(3):
            sent, got = endless(stand.web, ann)
            hit.held(sent < 64 * MIB and got.split(b" ")[1:2] in ([], [b"413"]), got)
        hit.held(resident(stand.web) - before < 96 * MIB, "memory grows with the bodies")


def endless(web, ann):
    """A body in chunks for which no end comes: (bytes sent, what came back)."""
    chunk, sent, got = b"8000\r\n" + b" " * 0x8000 + b"\r\n", 0, b""
    with connect(web) as link:
        link.sendall(post(ann, b"Transfer-Encoding: chunked"))
        try:
            while sent < 64 * MIB:
                link.sendall(chunk)
                sent += 0x8000
        except OSError:
            pass
        try:
            got = link.recv(65536)
        except OSError:
            pass  # it is lost with what we were still sending
    return sent, got


GOOD = b'{"name":"x","command":["true"]%s}'


def test_json_is_read_strictly(stand, ann):
    bodies = [
        b"[" * 100000, b'{"a":' * 100000, b"[" * 33 + b"]" * 33, b'{"a":' * 40 + b"1" + b"}" * 40,
        GOOD % b',"name":"y"', GOOD % b',"env":{"A":"1","A":"2"}', GOOD % b',"notes":"\\u0000"',
        GOOD % b',"notes":"\xff"', GOOD % b',"notes":"\xc0\x80"', GOOD % b',"notes":"\xed\xa0\x80"',
        GOOD % b',"notes":"\\ud800"', GOOD % b',"notes":"\\udc00\\ud800"', GOOD % b',"notes":"a\nb"',
        GOOD % b',"nodeCount":NaN', GOOD % b',"nodeCount":Infinity', GOOD % b',"nodeCount":1e999',
        GOOD % b',"nodeCount":01', GOOD % b',"nodeCount":+1', GOOD % b',"nodeCount":.5',
        GOOD % b"," , GOOD % b',"notes":"x', b"\xef\xbb\xbf" + GOOD % b"", GOOD % b"" + b"x",
        GOOD % b"" + GOOD % b"", GOOD % b" // no", b"{'name':'x'}", b"", b" ", b"null", b"7", b'"x"',
        b"[]", b"\x00", (GOOD % b"").decode().encode("utf-16"), GOOD % b',"__proto__":{}',
        GOOD % b',"unknown":1', GOOD % (b',"nodeCount":' + b"9" * 5000)]
    with attacked("F-18 JSON", stand) as hit:
        for body in bodies:
            problem = hit.refused(ann.post("/v1/jobs", body, JSON), (400, 413))
            many = body.count(b'{"a":') > 50000  # names and values are counted before depth
            assert problem["status"] == (413 if many else 400), body
            assert problem["code"] in (("SLUICE-1040",) if many else
                                       ("SLUICE-1001", "SLUICE-1002", "SLUICE-1003")), body
            hit.refused(ann.post("/v1/jobs:batch", b'{"jobs":[' + body + b"]}", JSON),
                        (200, 400, 413))
    assert ann.post("/v1/jobs", GOOD % b"", JSON).status == 201


def test_numbers_and_texts_have_limits(stand, ann):
    wrong = {
        "/nodeCount": (0, -1, 100001, 1.5, "1", True, None, 2 ** 63, 2 ** 64, -2 ** 63),
        "/coresPerNode": (0, -1, 4097, 1e3, [1]), "/memoryMB": (-1, 16 * MIB + 1, "64"),
        "/maxMinutes": (0, -1, 10 ** 9, 0.5), "/maxSeconds": (0, -5, 10 ** 12),
        "/name": ("", "x" * 129, "a/b", "a\nb", "\u0007", " x", 7, None, ["x"]),
        "/command": ([], [""], "true", [1], ["a"] * 1025, [["a"]], {"0": "a"}, None),
        "/tags": (["x"] * 33, ["y" * 65], [1], "x"), "/notes": ("n" * 4097, 1),
        "/args": (["a"] * 1025, [None]), "/env": ([], {"A": 1}, {"A": None}),
        "/archive": ({"mode": "x"}, {"includes": "x"}, {"includes": ["a"] * 65}, []),
        "/fileInputs": ({}, [{}], [{"targetPath": "x"}], [1], [{"content": "a", "targetPath": "x"}] * 257)}
    with attacked("F-18 numbers", stand) as hit:
        for pointer, values in wrong.items():
            for value in values:
                request = {"name": "x", "command": ["true"], pointer[1:]: value}
                problem = hit.refused(ann.post("/v1/jobs", request), 400)
                assert problem["code"] == "SLUICE-1001" or problem["errors"][0][
                    "pointer"].startswith(pointer), (pointer, value, problem)
        for query in ("limit=0", "limit=-1", "limit=1001", "limit=1e2", "limit=99999999999999999999",
                      "limit=", "limit=0x10", "limit=%D9%A1"):
            hit.refused(ann.get(f"/v1/jobs?{query}"), 400)
        hit.refused(ann.get(f"/v1/jobs/{stand.job}?wait=-1"), 400)
        hit.refused(ann.get(f"/v1/jobs/{stand.job}?wait=99999999999"), 400)


def test_what_is_packed_is_not_unpacked(stand, ann):
    good = GOOD % b""
    bomb = gzip.compress(b" " * (50 * MIB) + good)
    packed = {"gzip": gzip.compress(good), "deflate": zlib.compress(good), "br": b"\x0b\x02\x80",
              "zstd": b"x", "gzip, gzip": gzip.compress(gzip.compress(good)), "x-gzip": bomb, "GZIP": bomb}
    before = resident(stand.web)
    with attacked("F-19 encoding", stand) as hit:
        for encoding, body in packed.items():
            hit.refused(ann.post("/v1/jobs", body, JSON | {"Content-Encoding": encoding}), 415,
                        "SLUICE-1041")
        for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x", "",
                     "application/json, text/html"):
            hit.refused(ann.post("/v1/jobs", good, {"Content-Type": kind}), 415)
        hit.held(resident(stand.web) - before < 40 * MIB, "memory grows")


class Bomb(http.server.BaseHTTPRequestHandler):
    """A megabyte of zeros packed twice, told to be packed; and a body that has no end."""
    packed = gzip.compress(gzip.compress(b"\0" * (64 * MIB)))

    def do_GET(self):
        self.send_response(200)
        if self.path == "/packed":
            self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(self.packed)))
            self.end_headers()
            self.wfile.write(self.packed)
            return
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"\0" * 65536)
        except OSError:
            pass

    def log_message(self, *unused):
        pass


@pytest.fixture(scope="module")
def bombs():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bomb)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_input_is_not_unpacked_and_has_a_limit(stand, ann, bombs):
    stand.site.worker(worker_input_max_bytes=MIB)
    with attacked("F-19 input", stand) as hit:
        job = ann.submit("wc", "-c", "in", fileInputs=[
            {"sourceUrl": bombs + "/packed", "targetPath": "in"}])
        ended = ann.wait_end(job, 60)
        hit.held(ended["status"] == "FINISHED"
                 and int(ann.output(job).split()[0]) == len(Bomb.packed), ended)
        job = ann.submit("true", fileInputs=[{"sourceUrl": bombs + "/endless", "targetPath": "in"}])
        ended = ann.wait_end(job, 60)
        hit.held((ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED"), ended)
