# SPDX-License-Identifier: MIT
"""Events: each once, in order, however often a listener is cut; nobody waits for the slow."""

import os
import random
import re
import subprocess
import threading

import pytest

from sluice import TENANT
from sse import Stream
from waiting import stays_true, wait_until

LISTENERS = 200
CUTS = 20


@pytest.fixture(scope="module")
def web(site):
    site.audited = False  # events are written by hand here
    return site.web()


@pytest.fixture(scope="module")
def worker(site, web):
    return site.worker(slots=4)


@pytest.fixture(scope="module")
def ann(site, web, worker):
    return site.client(web, "ann")


@pytest.fixture(scope="module")
def vic(site, web):
    return site.client(web, "vic", "viewer")


def history_of(site, after):
    """Numbers of the tenant's events, in order."""
    return [int(row[0]) for row in site.sql(
        f"SELECT seq FROM job_events WHERE tenant = '{TENANT}' AND seq > {after} ORDER BY seq")]


class Session:
    """A session of the database in which a transaction may stay open."""

    def __init__(self, site):
        db = site.servers.mariadb
        self.child = subprocess.Popen(
            ["mariadb", *db.address, "-N", "-B", "--unbuffered", site.schema],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env=os.environ | {"MYSQL_PWD": db.password})

    def run(self, text):
        self.child.stdin.write(text + "; SELECT 'done';\n")
        self.child.stdin.flush()
        answer = []
        for line in self.child.stdout:
            if line.strip() == "done":
                return answer
            answer.append(line.strip())
        raise AssertionError(f"the session ended at: {text}")

    def close(self):
        """What is not committed is rolled back."""
        self.child.kill()
        self.child.wait(10)


@pytest.fixture
def slow(site):
    session = Session(site)
    yield session
    session.close()


def add_event(job, kind="noise", rows=1):
    """SQL that writes events; the job stays as it is."""
    return ("INSERT INTO job_events (job_id, tenant, at, kind, from_status, to_status, epoch, "
            "fence) SELECT j.id, j.tenant, UTC_TIMESTAMP(6), "
            f"'{kind}', j.status, 'QUEUED', j.epoch, j.fence FROM jobs j "
            f"JOIN seq_1_to_{rows} s WHERE j.id = 0x{job.replace('-', '')}")


def ended_job(ann, vic):
    """A job that has ended, and a stream that has told so: it is at the newest event."""
    stream = Stream(vic).begun()
    job = ann.submit("/bin/true")
    stream.until(lambda event: event.data["job"] == job and event.data["to"] == "FINISHED")
    return job, stream


# ---- what is told

def test_the_way_of_a_job_is_told(ann, vic):
    with_all = Stream(vic).begun()
    job = ann.submit("/bin/true", name="told")
    seen = with_all.until(lambda event: event.data["to"] == "FINISHED")
    with_all.close()
    assert {event.data["job"] for event in seen} == {job}
    assert [event.name for event in seen] == ["job"] * len(seen)
    assert seen[0].data["kind"] == "submitted" and seen[0].data["from"] is None
    assert {event.data["name"] for event in seen} == {"told"}
    assert {event.data["owner"] for event in seen} == {"ann"}
    assert {event.data["queue"] for event in seen} == {"default"}
    listed = ann.get(f"/v1/jobs/{job}/events").expect(200).json["events"]
    assert [event.id for event in seen] == [event["seq"] for event in listed]


def test_a_listener_chooses_by_type_job_and_queue(site, web, ann, vic):
    site.client(web, "root", "admin").put_queue("aside", 900, "'aside' IN tags").expect(201)
    start = ended_job(ann, vic)[1].last
    other = ann.submit("/bin/true", tags=["aside"])
    first, second = ann.submit("/bin/true"), ann.submit("/bin/true")
    for job in (first, second):
        ann.wait_end(job)
    ann.cancel(other).expect(200)

    def told(query, count):
        stream = Stream(vic, f"/v1/events?{query}", last=start)
        seen = [stream.next() for _ in range(count)]
        stream.close()
        return [(event.data["job"], event.data["to"]) for event in seen]

    assert set(told("type=FINISHED", 2)) == {(first, "FINISHED"), (second, "FINISHED")}
    assert told("type=FINISHED,CANCELLED&type=submitted", 6)[-1] == (other, "CANCELLED")
    assert told("queue=aside", 2) == [(other, "PENDING"), (other, "CANCELLED")]
    assert told(f"job={second}&type=FINISHED", 1) == [(second, "FINISHED")]


def test_a_listener_hears_of_his_own_tenant_only(site, web, ann, vic):
    eve = site.stranger(web)
    hers, ours = Stream(eve).begun(), Stream(vic).begun()
    start = hers.last
    job = ann.submit("/bin/true")
    foreign = eve.submit("/bin/true")
    assert hers.next().data["job"] == foreign
    ours.until(lambda event: event.data["to"] == "FINISHED" and event.data["job"] == job)
    again = Stream(eve, last=max(start - 50, 0))
    assert {event.data["job"] for event in again.until(
        lambda event: event.data["job"] == foreign)} == {foreign}
    eve.get(f"/v1/events?job={job}").problem(404)
    for stream in (hers, ours, again):
        stream.close()


@pytest.mark.parametrize("query,headers,pointer", [
    ("type=NONE", {}, "?type"), ("type=finished", {}, "?type"), ("type=nonsense", {}, "?type"), ("type=a%20b", {}, "?type"), ("job=x", {}, "?job"),
    ("queue=", {}, "?queue"), ("after=x", {}, "?after"), ("after=99999999999", {}, "?after"),
    ("", {"Last-Event-ID": "x"}, "Last-Event-ID"),
    ("", {"Last-Event-ID": "99999999999"}, "Last-Event-ID"), ("what=1", {}, "?what")])
def test_a_wish_that_makes_no_sense_is_refused(vic, query, headers, pointer):
    problem = vic.call("GET", f"/v1/events?{query}", headers=headers).problem(400)
    assert problem["errors"][0]["pointer"] == pointer


def test_a_queue_that_nobody_knows_is_refused(vic):
    assert "nonsense" in vic.get("/v1/events?queue=nonsense").problem(404)["detail"]


def test_each_kind_that_is_in_the_history_can_be_asked_for(site, vic):
    kinds = [row[0] for row in site.sql("SELECT DISTINCT kind FROM job_events")]
    assert "submitted" in kinds and "claimed" in kinds
    for kind in kinds:
        Stream(vic, f"/v1/events?type={kind}").begun().close()


def test_events_want_a_token(web, vic):
    vic.__class__(web.url).get("/v1/events").problem(401)


# ---- each once, in order

def test_a_listener_who_is_cut_again_and_again_misses_nothing(site, ann, vic):
    start = Stream(vic).begun().last
    jobs, stop = [], threading.Event()

    def submit():
        while not stop.is_set():
            jobs.append(ann.submit("/bin/true"))

    submitters = [threading.Thread(target=submit) for _ in range(4)]
    for thread in submitters:
        thread.start()
    chance = random.Random(7)
    seen, last = [], start
    for _ in range(CUTS):
        stream = Stream(vic, last=last)
        for _ in range(chance.randrange(60)):
            event = stream.next()
            assert event.name == "job", event
            seen.append(event.id)
        last = stream.last
        stream.close()
    stop.set()
    for thread in submitters:
        thread.join()
    for job in jobs:
        ann.wait_end(job)
    wanted = history_of(site, start)
    stream = Stream(vic, last=last)
    while len(seen) < len(wanted):
        seen.append(stream.next().id)
    stream.close()
    assert seen == wanted
    print(f"{CUTS} cuts, {len(jobs)} jobs, {len(seen)} events: each once, in order")


def test_a_row_that_is_committed_late_is_not_skipped(site, ann, vic, slow):
    job, stream = ended_job(ann, vic)
    slow.run("BEGIN; " + add_event(job, "late"))
    late = int(slow.run("SELECT LAST_INSERT_ID()")[0])
    after = ann.submit("/bin/true")
    ann.wait_end(after)
    # Far longer than a number alone is waited for: the row is there, and not committed.
    stays_true("nothing is told past the open row", lambda: stream.next(0.1) is None, 3)
    fresh = Stream(vic, last=stream.last)
    slow.run("COMMIT")
    for listener in (stream, fresh):
        seen = listener.until(lambda event: event.data["to"] == "FINISHED"
                              and event.data["job"] == after)
        assert (seen[0].id, seen[0].data["kind"]) == (late, "late")
        assert [event.id for event in seen] == history_of(site, late - 1)
        listener.close()


def test_a_row_that_is_rolled_back_holds_nobody_up_for_long(ann, vic, slow):
    job, stream = ended_job(ann, vic)
    slow.run("BEGIN; " + add_event(job, "never"))
    after = ann.submit("/bin/true")
    slow.run("ROLLBACK")
    seen = stream.until(lambda event: event.data["to"] == "FINISHED" and event.data["job"] == after,
                        timeout_s=30)
    stream.close()
    assert "never" not in {event.data["kind"] for event in seen}


def test_a_stream_is_taken_up_at_another_process(site, web, ann, vic):
    first, stream = ended_job(ann, vic)
    second = site.web("web2")
    moved = Stream(site.client(second, "vic", "viewer"), last=stream.last)
    stream.close()
    job = ann.submit("/bin/true")
    seen = moved.until(lambda event: event.data["to"] == "FINISHED")
    assert {event.data["job"] for event in seen} == {job} and job != first
    assert second.stop() == 0
    assert moved.next() is None and moved.over


# ---- many, and the slow

def memory_kb(process):
    with open(f"/proc/{process.child.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def test_one_who_does_not_read_harms_nobody(site, web, ann, vic):
    """200 listeners; one of them reads nothing while 30,000 events go by."""
    job = ended_job(ann, vic)[0]
    before_kb = memory_kb(web)
    idle = [Stream(vic, "/v1/events?type=FINISHED").begun() for _ in range(LISTENERS - 2)]
    fast = Stream(vic).begun()
    slow = Stream(vic).begun()
    start = fast.last
    opened_kb = memory_kb(web)
    count = 0
    for _ in range(5):
        site.sql(add_event(job, rows=6000))
        wanted = count + 6000
        while count < wanted:
            event = fast.next(20)
            assert event and event.name == "job", event
            count += 1
    flooded_kb = memory_kb(web)
    ended = ann.submit("/bin/true")
    for stream in idle:
        event = stream.next(20)
        assert (event.data["job"], event.data["to"]) == (ended, "FINISHED")
    # Now the slow one reads what the sockets held, and is told that he is too slow.
    seen = slow.until(lambda event: event.name == "dropped", timeout_s=60)
    assert "slow" in seen[-1].data["reason"] and seen[-1].id == seen[-2].id
    assert slow.next() is None and slow.over
    numbers = [event.id for event in seen[:-1]]
    again = Stream(vic, last=slow.last)
    wanted = history_of(site, start)
    while len(numbers) < len(wanted):
        numbers.append(again.next(20).id)
    assert numbers == wanted
    after_kb = memory_kb(web)
    print(f"{LISTENERS} listeners: {before_kb} kB before, {opened_kb} kB open, {flooded_kb} kB "
          f"after {count} events, {after_kb} kB at the end; the slow one was dropped after "
          f"{len(seen) - 1} events and took up the other {len(wanted) - len(seen) + 1}")
    for stream in idle + [fast, slow, again]:
        stream.close()
    assert flooded_kb - opened_kb < 32 * 1024
    # Each is found out when it is written to for the second time.
    wait_until("the streams to be forgotten", lambda: "sluice_http_listeners 0"
               in vic.get("/metrics").body.decode(), 60)
