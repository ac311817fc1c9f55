# SPDX-License-Identifier: MIT
"""Memory, descriptors, threads and processes run out under programs that work: what cannot be done
is refused or waits, no job is lost or doubled, and all is as before when there is enough again."""

import contextlib
import os
import signal
import socket
import threading

import pytest

from attacks import FULL, attacked
from injection import doubled, traced, wait_rows
from jobs import Traces
from scarcity import NoDescriptors, Scarce
from sluice import read_proc, runner_of
from waiting import let_pass, stays_true, wait_until

ENV = {f"V{at}": "x" * at for at in range(12)}
REQUEST = {"name": "scarce", "command": ["true", "a", "b"], "env": ENV, "notes": "n", "tags": ["t"]}
AWAY = (500, 503, 504)


@pytest.fixture(scope="module")
def scarce(stand):
    with Scarce(stand.site) as made:
        yield made


@pytest.fixture(scope="module")
def web(stand, scarce):
    return stand.site.web("scarce", web_threads=2, web_deadline_ms=3000,
                         db_query_timeout_ms=1000)


@pytest.fixture(scope="module")
def client(stand, web):
    return stand.site.client(web, keep=True, timeout_s=20)


@pytest.fixture(scope="module")
def worker(stand, scarce):
    return stand.site.worker(worker_stage_timeout_ms=5000)


def accounted(hit, stand, jobs, *ends):
    """Each of them ended so, and once."""
    rows, runs = wait_rows(stand.site, jobs, 60), traced(stand.site.folder)
    for job in jobs:
        hit.held(job in rows and rows[job].status in (ends or ("FINISHED",)), stand.ann.job(job))
        assert not doubled(rows[job], runs.get(job)), job


def runs_again(hit, stand, count=4):
    jobs = [stand.ann.submit("true") for _ in range(count)]
    accounted(hit, stand, jobs)


# ---- the web -----------------------------------------------------------------------------------

def same(made, sent):
    return all(made["request"][name] == value for name, value in sent.items())


def submitted(hit, client, key):
    """One try, and one more for the answer that did not come: never two jobs, never half of one."""
    head, first = {"Idempotency-Key": key}, None
    with contextlib.suppress(OSError):
        first = client.post("/v1/jobs", REQUEST, head)
    hit.held(first is None or first.status == 201 or first.status in AWAY, first)
    if first is not None and first.status in AWAY:
        assert first.problem(first.status)["code"] and first.headers["Retry-After"], first
    return first


def sweep(orders, ask, check, step):
    """Lets one allocation after the other fail; whoever asks gets an answer of check() each time."""
    ask()
    before = orders.asked
    ask()
    for at in range(1, orders.asked - before + 8, step):
        orders.memory_in = at
        try:
            check(at)
        finally:
            orders.memory_in = 0


def test_each_allocation_of_a_submission_may_fail(stand, scarce, web, client):
    orders, count = scarce.of("sluice-web"), stand.site.count
    with attacked("F-28 submission", stand) as hit:
        before, asked = count("jobs"), set()

        def check(at):
            key = f"sweep-{at}"
            asked.add(key)
            first = submitted(hit, client, key)
            orders.memory_in = 0
            again = client.post("/v1/jobs", REQUEST, {"Idempotency-Key": key}).expect(200, 201).json
            assert same(again, REQUEST), again
            if first is not None and first.status == 201:
                hit.held(first.json["id"] == again["id"] and same(first.json, REQUEST), first)
        sweep(orders, lambda: client.post("/v1/jobs", REQUEST), check, 1 if FULL else 3)
        hit.held(orders.memory_failed > 50, "allocations failed")
        hit.held(count("jobs") == before + 2 + len(asked), "a job for each key")


def test_each_allocation_of_a_question_may_fail(stand, scarce, web, client):
    orders = scarce.of("sluice-web")
    job, told = client.submit(*REQUEST["command"], env=ENV), {}
    asks = {
        "get": lambda: client.get(f"/v1/jobs/{job}"),
        "list": lambda: client.get("/v1/jobs?filter=name%20=%20'nobody'%20OR%20nodeCount%20%3E%209&limit=3"),
        "why": lambda: client.get(f"/v1/jobs/{job}/why"),
        "explain": lambda: client.post("/v1/queues:explain", REQUEST),
        "nothing": lambda: client.get("/v1/nothing")}
    with attacked("F-28 questions", stand) as hit:
        for name, ask in asks.items():
            good = ask()

            def check(_at, name=name, ask=ask, good=good):
                with contextlib.suppress(OSError):
                    answer = ask()
                    told[answer.status] = told.get(answer.status, 0) + 1
                    hit.held(answer.status in AWAY or answer.status == good.status
                             and len(answer.body) == len(good.body), f"{name}: {answer}, not {good}")
            sweep(orders, ask, check, 1 if FULL else 2)
            assert ask().status == good.status
        hit.held(told[503] > 4, told)


def test_memory_is_short_for_a_while(stand, scarce, web):
    orders, told, stop = scarce.of("sluice-web"), [], threading.Event()
    mine = [stand.site.client(web, f"user{at}", timeout_s=20) for at in range(4)]

    def ask(client):
        while not stop.is_set():
            with contextlib.suppress(OSError):
                told.append(client.post("/v1/jobs", REQUEST))
                told.append(client.get(f"/v1/jobs/{stand.job}"))
    with attacked("F-28 memory", stand) as hit:
        askers = [threading.Thread(target=ask, args=(client,)) for client in mine]
        for asker in askers:
            asker.start()
        for every in (400, 40, 8, 1):
            orders.memory_every = every
            let_pass(1.0 if FULL else 0.3)
        orders.memory_every = 0
        stop.set()
        for asker in askers:
            asker.join()
        for answer in told:
            hit.held(answer.status in (200, 201, *AWAY), answer)
            if answer.status == 201:
                hit.held(same(answer.json, REQUEST), answer)
        for client in mine:
            wait_until("it serves again", lambda client=client: client.post(
                "/v1/jobs", REQUEST).status == 201, 20)


def test_no_descriptor_for_another_connection(stand, scarce, web):
    kept = [stand.site.client(web, keep=True, timeout_s=20) for _ in range(4)]
    for client in kept:
        client.get("/v1/whoami").expect(200)
    port, waiting = int(web.url.rsplit(":", 1)[1]), []
    with attacked("F-28 accept", stand) as hit:
        with NoDescriptors(web.pid):
            for _ in range(8):
                link = socket.create_connection(("127.0.0.1", port), 10)
                link.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                waiting.append(link)
            for client in kept:
                hit.refused(client.get("/v1/whoami"), 200)
                hit.refused(client.get(f"/v1/jobs/{stand.job}"), 200)
        for link in waiting:  # though nobody who is connected leaves
            with link:
                got = link.recv(65536)
                hit.held(got.startswith(b"HTTP/1.1 200 "), got)


def test_programs_that_find_no_thread_say_so_and_end(stand, scarce):
    site = stand.site
    starts = {
        "sluice-web": lambda: site.web("no-web", wait=False),
        "sluice-worker": lambda: site.worker(name="no-worker", wait=False),
        "sluice-recovery": lambda: site.reader("recovery", "no-recovery", wait=False),
        "sluice-alternate": lambda: site.reader("alternate", "no-alternate", wait=False),
        "sluice-deadletter": lambda: site.reader("deadletter", "no-deadletter", wait=False)}
    with attacked("F-28 threads", stand) as hit:
        tried = []
        for program, start in starts.items():
            scarce.of(program).no_threads = 1
            tried.append((program, start()))
        for program, process in tried:
            status = process.wait()
            site.processes.remove(process)
            hit.held(status == 1 and "thread" in process.log_text(), f"{program}: {process.log_tail()}")
            scarce.of(program).no_threads = 0
        stand.ann.get("/v1/whoami").expect(200)


# ---- the worker and its runner -----------------------------------------------------------------

def submit_many(stand, count=6):
    """Jobs with a file that must be there, and one to keep."""
    return [stand.ann.submit("sh", "-c", "cat in && mkdir out && cp in out/kept",
                             fileInputs=[{"content": "told\n", "targetPath": "in"}],
                             archive={"includes": ["out"]}) for _ in range(count)]


def whole(hit, stand, jobs):
    accounted(hit, stand, jobs)
    for job in jobs:
        hit.held(stand.ann.output(job) == b"told\n", "its output")
        hit.held(stand.ann.get(f"/v1/jobs/{job}/files/out/kept").body == b"told\n", "its file")


def test_the_worker_has_no_descriptors(stand, worker):
    whole_before = submit_many(stand, 1)
    with attacked("F-28 worker descriptors", stand) as hit:
        whole(hit, stand, whole_before)
        with NoDescriptors(worker.pid):
            jobs = submit_many(stand)
            worker.wait_log("worker.shortage", 20)
            hit.held(worker.alive(), "the worker lives")
        whole(hit, stand, jobs)


def test_the_runner_has_no_descriptors(stand, worker):
    with attacked("F-28 runner descriptors", stand) as hit:
        runs_again(hit, stand, 1)
        with NoDescriptors(runner_of(stand.site.path("work"))):
            jobs = submit_many(stand)
            worker.wait_log('"error":"EMFILE"', 20)
        whole(hit, stand, jobs)


def test_the_runner_can_make_no_process(stand, scarce, worker):
    orders = scarce.of("sluice-runner")
    with attacked("F-28 processes", stand) as hit:
        orders.no_processes = 1
        jobs = submit_many(stand)
        wait_until("it has tried", lambda: orders.processes_failed > 4, 20)
        for job in jobs:
            hit.held(stand.ann.job(job)["status"] not in ("FAILED", "CANCELLED"), "it waits")
        stand.ann.cancel(jobs[0]).expect(200, 202)
        accounted(hit, stand, jobs[:1], "CANCELLED")
        orders.no_processes = 0
        whole(hit, stand, jobs[1:])


@pytest.mark.parametrize("program", ["sluice-worker", "sluice-runner"])
def test_memory_of_those_who_run_jobs_is_short(stand, scarce, worker, program):
    orders, traces = scarce.of(program), Traces(stand.site.path(f"traces-{program}"))
    with attacked(f"F-28 {program[7:]} memory", stand) as hit:
        running = stand.ann.submit(*traces.command("running"))
        traces.wait_runs("running")
        jobs = []
        for every in (300, 60, 17):
            failed = orders.memory_failed
            orders.memory_every = every
            jobs += submit_many(stand, 3)
            wait_until("allocations to fail", lambda failed=failed: orders.memory_failed > failed, 20)
            let_pass(1.0 if FULL else 0.3)
            orders.memory_every = 0
        traces.open()
        whole(hit, stand, jobs)
        accounted(hit, stand, [running])
        runs_again(hit, stand)


def test_signals_interrupt_every_wait(stand, worker, web):
    client = stand.site.client(web)
    pids = [worker.pid, web.pid, runner_of(stand.site.path("work"))]
    with attacked("F-28 signals", stand) as hit:
        jobs = submit_many(stand)
        stop = threading.Event()

        def storm():
            while not stop.wait(0.003):
                for pid in pids:
                    for signo in (signal.SIGSTOP, signal.SIGCONT):
                        signal.pidfd_send_signal(pidfds[pid], signo)
        pidfds = {pid: os.pidfd_open(pid) for pid in pids}
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            for _ in range(20):
                hit.refused(client.post("/v1/jobs", REQUEST | {"command": ["true"]}), 201)
            whole(hit, stand, jobs)
        finally:
            stop.set()
            thread.join()
        runs_again(hit, stand)


# ---- the readers -------------------------------------------------------------------------------

def test_readers_are_short_of_all(stand, scarce, worker):
    site = stand.site
    recovery = site.reader("recovery", "scarce-recovery")
    dead = site.reader("deadletter", "scarce-deadletter")
    stand.root.put("/v1/systems/away", {}).expect(200, 201)
    stand.root.post("/v1/systems/away/disable").expect(200)
    with attacked("F-28 readers", stand) as hit:
        held = [stand.ann.submit("true", systemId="away") for _ in range(4)]
        for job in held:
            stand.ann.wait_status(job, "BLOCKED", timeout_s=60)
        before = site.count("dead_messages")
        for every in (200, 30, 5) if FULL else (200, 30):
            for program in ("sluice-recovery", "sluice-deadletter"):
                scarce.of(program).memory_every = every
            with site.amqp() as link:
                for at in range(4):
                    link.publish("sluice.submit", "sluice.acme.submit.default", f"no message {every} {at}".encode())
            let_pass(1.0 if FULL else 0.4)
        with NoDescriptors(recovery.pid), NoDescriptors(dead.pid):
            stand.root.post("/v1/systems/away/enable").expect(200)
            let_pass(0.5)
        for program in ("sluice-recovery", "sluice-deadletter"):
            hit.held(scarce.of(program).memory_failed > 0, program)
            scarce.of(program).memory_every = 0
        accounted(hit, stand, held)
        wait_until("the dead messages", lambda: site.count("dead_messages") >= before + (12 if FULL else 8), 60)
        hit.held(recovery.alive() and dead.alive(), "they live")
