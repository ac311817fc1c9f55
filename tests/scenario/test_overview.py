# SPDX-License-Identifier: MIT
"""What a page shows first, queues with their load, acts on many jobs, draining."""

import pytest

from waiting import wait_until


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def worker(site, web):
    return site.worker(slots=2)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web, "ann")


@pytest.fixture(scope="module")
def olga(site, web):
    return site.client(web, "olga", "operator")


@pytest.fixture(scope="module")
def root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(scope="module")
def parked(root):
    """A queue that nobody serves."""
    root.put_queue("parked", 900, "'parked' IN tags").expect(201)
    return "parked"


def park(client, count, **request):
    return [client.submit("/bin/true", tags=["parked"], **request) for _ in range(count)]


def waiting(client, **query):
    text = "&".join(f"{name}={value}" for name, value in query.items())
    return client.get(f"/v1/jobs?status=PENDING&limit=1000&{text}").expect(200).json["jobs"]


# ---- the overview

def test_the_overview_tells_what_there_is(ann, worker, parked):
    ended = ann.submit("/bin/true")
    ann.wait_status(ended, "FINISHED")
    first = park(ann, 2)[0]
    seen = ann.get("/v1/overview?minutes=5").expect(200).json
    assert seen["jobs"]["PENDING"] == {"count": 2, "isMore": False}
    assert seen["longestWaiting"]["id"] == first and seen["longestWaiting"]["queue"] == "parked"
    assert seen["longestWaiting"]["seconds"] >= 0
    assert seen["longestRunning"] is None and seen["blocked"] == []
    assert seen["deadMessages"] == {"count": 0, "isMore": False}
    health = seen["health"]
    assert health["database"]["status"] == "up" and health["broker"]["status"] == "up"
    assert [(row["workers"], row["slots"]) for row in health["workers"]] == [(1, 2)]
    assert len(seen["rates"]) == 5
    ann.post("/v1/jobs:cancel?queue=parked", {"expectedCount": 2}).expect(200)


def test_what_happened_is_counted_by_minute(site, ann, worker):
    before = ann.get("/v1/overview").expect(200).json
    jobs = [ann.submit("/bin/true") for _ in range(5)] + [ann.submit("/bin/false")]
    for job in jobs:
        ann.wait_end(job)

    def total(name):
        rates = ann.get("/v1/overview?minutes=10").expect(200).json["rates"]
        return sum(row[name] for row in rates)

    assert sum(row["accepted"] for row in before["rates"]) <= total("accepted")
    # All of this module's jobs, and none twice.
    wanted = len(ann.get("/v1/jobs?limit=1000").expect(200).json["jobs"])
    wait_until("all events to be counted",
               lambda: site.count("job_rate_reader", "seq = (SELECT MAX(seq) FROM job_events)") == 1, 30)
    wait_until("the rates", lambda: total("accepted") == wanted, 30)
    assert total("finished") >= 5 and total("failed") >= 1 and total("started") >= 6
    assert total("accepted") == wanted, "they are counted again although nothing has happened"


def test_the_running_job_that_used_most_of_its_time_is_shown(ann, worker):
    slow = ann.submit("/bin/sleep", "600", maxMinutes=600)
    close = ann.submit("/bin/sleep", "600", maxMinutes=2)
    for job in (slow, close):
        ann.wait_status(job, "RUNNING")

    def shown():
        seen = ann.get("/v1/overview").expect(200).json["longestRunning"]
        return seen if seen and seen["id"] == close else None

    assert wait_until("the job close to its limit", shown)["maxSeconds"] == 120
    answer = ann.post("/v1/jobs:cancel", {"ids": [slow, close]}).expect(200).json
    assert answer["asked"] == 2 and answer["failed"] == 0
    for job in (slow, close):
        ann.wait_status(job, "CANCELLED")


@pytest.mark.parametrize("query", ["minutes=0", "minutes=1441", "minutes=x", "hours=1"])
def test_an_overview_of_no_sensible_time_is_refused(ann, query):
    ann.get(f"/v1/overview?{query}").problem(400)


# ---- queues

def test_a_queue_tells_its_load(ann, worker, parked):
    jobs = park(ann, 3)
    queues = {queue["name"]: queue
              for queue in ann.get("/v1/queues").expect(200).json["queues"]}
    served, alone = queues["default"], queues["parked"]
    assert (served["workers"], served["slots"]) == (1, 2)
    assert served["longestWaitSeconds"] is None and served["longestWaitIsBound"] is False
    assert (alone["workers"], alone["slots"], alone["busy"]) == (0, 0, 0)
    assert alone["longestWaitSeconds"] >= 0 and alone["longestWaitIsBound"] is False
    wait_until("the worker's beat, which tells that no slot is busy",
               lambda: ann.get("/v1/queues/default").expect(200).json["busy"] == 0)
    one = ann.get("/v1/queues/parked").expect(200).json
    assert one["longestWaitSeconds"] >= alone["longestWaitSeconds"]
    ann.post("/v1/jobs:cancel", {"ids": jobs}).expect(200)


def test_a_queue_whose_jobs_nobody_takes_is_told(site, web, ann, olga, worker, parked):
    def told(queue):
        return {one["queue"]: one for one in
                ann.get("/v1/overview").expect(200).json["unserved"]}.get(queue)

    def queue(name):
        return ann.get(f"/v1/queues/{name}").expect(200).json

    assert told("parked") is None and queue("default")["takers"] == 1
    jobs = park(ann, 2)
    seen = told("parked")
    assert seen["waiting"] == {"count": 2, "isMore": False} and seen["workers"] == 0
    assert seen["longestWaitSeconds"] >= 0 and queue("parked")["waiting"]["count"] == 2
    live = next(row for row in ann.get("/v1/workers").expect(200).json["workers"]
                if row["queue"] == "default" and row["state"] == "live")
    olga.post(f"/v1/workers/{live['id']}/drain").expect(200)
    assert queue("default")["takers"] == 0 and queue("default")["workers"] == 1
    assert told("default") is None, "no job of it waits"
    late = ann.submit("/bin/true")
    assert told("default")["workers"] == 1
    olga.post(f"/v1/workers/{live['id']}/undrain").expect(200)
    wait_until("a worker takes it", lambda: told("default") is None)
    ann.wait_end(late)
    ann.post("/v1/jobs:cancel", {"ids": jobs}).expect(200)


# ---- many jobs

def test_jobs_that_a_search_finds_are_cancelled(ann, parked):
    jobs = park(ann, 12, name="herd")
    path = "/v1/jobs:cancel?queue=parked&filter=" + "name%20%3D%20'herd'"
    counted = ann.post(path, {"dryRun": True}).expect(200).json
    assert counted["matched"] == {"count": 12, "isMore": False} and counted["cancelled"] == 0
    refused = ann.post(path, {"expectedCount": 10}).problem(409)
    assert "12" in refused["detail"] and "10" in refused["detail"]
    assert len(waiting(ann, name="herd")) == 12
    some = ann.post(path + "&limit=5", {"expectedCount": 12}).expect(200).json
    assert some["cancelled"] == 5 and some["remaining"]["count"] == 7
    assert ann.job(jobs[0])["status"] == "CANCELLED"  # the oldest first
    rest = ann.post(path, {"expectedCount": 7}).expect(200).json
    assert rest["cancelled"] == 7 and rest["remaining"]["count"] == 0
    assert waiting(ann, name="herd") == []


def test_what_a_search_was_seen_to_find_is_cancelled_and_nothing_else(ann, parked):
    seen = park(ann, 5, name="flock")
    path = "/v1/jobs:cancel?queue=parked&name=flock&limit=3"
    first = ann.post(path, {"dryRun": True}).expect(200).json
    assert first["matched"]["count"] == 5 and first["found"][0] == {
        "id": seen[0], "name": "flock", "owner": "ann", "status": "PENDING"}
    second = ann.post(f"{path}&cursor={first['nextCursor']}", {"dryRun": True}).expect(200).json
    found = [job["id"] for job in first["found"] + second["found"]]
    assert found == seen and second["nextCursor"] is None
    late = park(ann, 1, name="flock")[0]
    ann.cancel(seen[1]).expect(200)
    answer = ann.post("/v1/jobs:cancel", {"ids": found}).expect(200).json
    assert answer["cancelled"] == 4 and [job["id"] for job in answer["failures"]] == [seen[1]]
    assert "found" not in answer
    assert [job["id"] for job in waiting(ann, name="flock")] == [late]
    ann.cancel(late).expect(200)


def test_a_job_that_cannot_be_cancelled_is_told_by_itself(site, web, ann, olga, parked):
    mine, ended = park(ann, 2)
    ann.cancel(ended).expect(200)
    theirs = park(site.client(web, "bob"), 1)[0]
    foreign = park(site.client(web, "eve"), 1)[0]
    nobodys = "01890000-0000-7000-8000-000000000000"
    answer = ann.post("/v1/jobs:cancel", {"ids": [mine, ended, theirs, nobodys]}).expect(200).json
    assert answer["cancelled"] == 1 and answer["failed"] == 3
    assert {item["id"]: item["problem"]["status"] for item in answer["failures"]} == {
        ended: 409, theirs: 403, nobodys: 404}
    # A search of who is no operator finds his own; one for another's is refused.
    assert ann.post("/v1/jobs:cancel?queue=parked", {"dryRun": True}).json["matched"]["count"] == 0
    ann.post("/v1/jobs:cancel?owner=bob", {"expectedCount": 5}).problem(403)
    assert olga.post("/v1/jobs:cancel?queue=parked",
                     {"expectedCount": 2}).expect(200).json["cancelled"] == 2
    assert ann.job(theirs)["status"] == ann.job(foreign)["status"] == "CANCELLED"


@pytest.mark.parametrize("query,body,pointer", [
    ("", {}, "/expectedCount"), ("", {"expectedCount": -1}, "/expectedCount"),
    ("", {"expectedCount": "7"}, "/expectedCount"), ("", {"dryRun": 1}, "/dryRun"),
    ("", {"ids": []}, "/ids"), ("", {"ids": ["x"]}, "/ids/0"), ("", {"id": 1}, "/id"),
    ("?queue=parked", {"ids": ["01890000-0000-7000-8000-000000000000"]}, "/ids"),
    ("?status=FINISHED", {"expectedCount": 1}, "?status"),
    ("?status=NONE", {"expectedCount": 1}, "?status"),
    ("?filter=name", {"expectedCount": 1}, "?filter"),
    ("?cursor=x", {"expectedCount": 1}, "?cursor")])
def test_an_act_on_many_jobs_that_makes_no_sense_is_refused(ann, query, body, pointer):
    problem = ann.post("/v1/jobs:cancel" + query, body).problem(400)
    assert problem["errors"][0]["pointer"] == pointer


def test_a_viewer_acts_on_no_job(site, web):
    site.client(web, "vic", "viewer").post("/v1/jobs:cancel", {"expectedCount": 1}).problem(403)


# ---- draining

def test_a_worker_is_drained_by_an_operator(site, web, ann, olga, worker):
    live = [row for row in ann.get("/v1/workers").expect(200).json["workers"]
            if row["state"] == "live"]
    path = f"/v1/workers/{live[0]['id']}"
    ann.post(path + "/drain").problem(403)
    other = site.stranger(web, "op", "operator")
    other.post(path + "/drain").problem(404)
    olga.post("/v1/workers/x/drain").problem(404)
    assert olga.post(path + "/drain").expect(200).json["draining"] is True
    assert ann.get(path).expect(200).json["draining"] is True
    assert olga.post(path + "/undrain").expect(200).json["draining"] is False
    worker.stop()
    wait_until("the worker's row", lambda: ann.get(path).json["state"] == "stopped")
    assert "stopped" in olga.post(path + "/drain").problem(409)["detail"]
