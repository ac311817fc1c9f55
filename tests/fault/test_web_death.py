# SPDX-License-Identifier: MIT
"""The web process dies at each of its kill points, or its broker takes no messages."""

import concurrent.futures
import time

import pytest

from injection import injected
from matrix import WEB_POINTS
from waiting import wait_until

REQUEST = {"name": "once", "command": ["true"]}
QUERY_S = 4
LATE_S = 4  # a machine that is busy


@pytest.mark.parametrize("key", WEB_POINTS)
def test_a_submission_that_is_cut_short_and_sent_again_is_one_job(own, key):
    with injected(f"F-1 {key}", own) as hit:
        first = own.web("first", fault=f"{WEB_POINTS[key][0]}=kill@1")
        headers = {"Idempotency-Key": f"cut at {key}"}
        try:
            own.client(first).post("/v1/jobs", REQUEST, headers).expect(201)
        except OSError:
            pass
        assert first.wait() == -9
        hit.healed()
        second = own.web("second")
        ann = own.client(second)
        job = ann.post("/v1/jobs", REQUEST, headers).expect(200, 201).json["id"]
        own.worker()
        ann.wait_status(job, "FINISHED")
        assert own.count("jobs") == 1
        own.wait_clean()


def test_submissions_are_refused_while_the_broker_is_short_of_memory(own, servers):
    with injected("F-9 memory", own) as hit:
        web = own.web()
        ann = own.client(web)
        first = ann.submit("true")
        wait_until("its message", lambda: own.count("outbox") == 0)
        before = own.count("jobs")
        servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.00001")
        try:
            wait_until("the refusal", lambda: ann.post("/v1/jobs", REQUEST).status == 503)
            problem = ann.post("/v1/jobs", REQUEST)
            assert problem.problem(503)["code"] == "SLUICE-1052"
            assert int(problem.headers["Retry-After"]) > 0
            assert web.ready() == 503
            ann.get(f"/v1/jobs/{first}").expect(200)
            assert own.count("jobs") >= before
        finally:
            servers.rabbitmq.ctl("set_vm_memory_high_watermark", "0.6")
        hit.healed()
        wait_until("submissions again", lambda: ann.post("/v1/jobs", REQUEST).status == 201)
        own.worker()
        wait_until("all to end", lambda: own.count("jobs", "status <> 'FINISHED'") == 0, 60)
        own.wait_clean()


def test_with_a_database_that_hangs_every_answer_comes_soon(own, servers):
    with injected("F-5 hang", own) as hit:
        web = own.web(db_query_timeout_ms=3000, web_deadline_ms=5000)
        ann = own.client(web)
        ann.submit("true")
        servers.mariadb.suspend()
        try:
            def ask(_):
                began = time.monotonic()
                answer = ann.post("/v1/jobs", REQUEST)
                return answer.status, time.monotonic() - began
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(ask, range(8)))
            assert {status for status, _ in answers} <= {503, 504}
            assert max(took for _, took in answers) < 5 + LATE_S  # one statement has 10 s by default
            ann.get("/livez").expect(200)
        finally:
            servers.mariadb.resume()
        hit.healed()
        wait_until("submissions again", lambda: ann.post("/v1/jobs", REQUEST).status == 201, 30)
        own.worker()


def test_with_all_threads_held_up_by_the_database_the_service_tells_of_itself(own, servers):
    web = own.web(db_query_timeout_ms=QUERY_S * 1000, web_deadline_ms=8000, web_threads=2)
    ann = own.client(web)
    ann.submit("true")
    servers.mariadb.suspend()
    try:
        def ask(_):
            began = time.monotonic()
            return ann.get("/v1/jobs").status, time.monotonic() - began
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            held = [pool.submit(ask, at) for at in range(12)]
            wait_until("requests in line", lambda: b"sluice_http_waiting 10" in
                       ann.get("/metrics").expect(200).body, QUERY_S, 0.01)
            for path, status in (("/livez", 200), ("/v1/whoami", 200), ("/metrics", 200),
                                 ("/readyz", 503)):
                began = time.monotonic()
                ann.get(path).expect(status)
                assert time.monotonic() - began < QUERY_S - 1, path
            answers = [answer.result() for answer in held]
        assert {status for status, _ in answers} == {503}
        # In line, then a connection that hangs; one after the other is 24 s.
        assert max(took for _, took in answers) < 2 * QUERY_S + LATE_S
    finally:
        servers.mariadb.resume()
    wait_until("answers again", lambda: ann.get("/v1/jobs").status == 200, 30)


def test_with_a_database_that_is_gone_the_answer_comes_at_once(own, servers):
    with injected("F-5 submit", own) as hit:
        web = own.web()
        ann = own.client(web)
        ann.submit("true")
        servers.mariadb.kill9()
        try:
            began = time.monotonic()
            answer = ann.post("/v1/jobs", REQUEST)
            assert answer.problem(503)["code"] == "SLUICE-1050"
            assert int(answer.headers["Retry-After"]) > 0
            assert time.monotonic() - began < 5
            assert web.ready() == 503
        finally:
            servers.mariadb.start()
            servers.mariadb.wait_ready()
        hit.healed()
        wait_until("submissions again", lambda: ann.post("/v1/jobs", REQUEST).status == 201, 30)
        own.worker()
