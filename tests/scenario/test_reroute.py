# SPDX-License-Identifier: MIT
"""Jobs that wait in a queue without workers: it is said at once, and they can be moved."""

import signal
import threading

import pytest

import sluice
from waiting import wait_until

NOBODY = "has no worker"


@pytest.fixture(scope="module")
def ann(site):
    client = site.client(site.web())
    site.worker()
    wait_until("the worker to be known", lambda: not client.post(
        "/v1/jobs", {"name": "first", "command": ["true"]}).expect(201).json["warnings"])
    return client


@pytest.fixture(scope="module")
def root(site, ann):  # pylint: disable=unused-argument
    return site.client(site.processes[0], "root", "admin")


@pytest.fixture(scope="module")
def rob(site, ann):  # pylint: disable=unused-argument
    return site.client(site.processes[0], "rob", "operator")


@pytest.fixture
def queue(request, site, root):
    """A queue of this test that nobody serves, and its filter: a tag of its name."""
    name = request.node.name.replace("_", "-")[5:40].strip("-")
    root.put_queue(name, 100 + site.count("job_queues"), f"'{name}' IN tags").expect(201)
    return name


def waiting(ann, queue, count=3, **request):
    return [ann.submit("true", tags=[queue], **request) for _ in range(count)]


def close(root, queue):
    """Its filter takes nothing more."""
    priority = root.get(f"/v1/queues/{queue}").expect(200).json["priority"]
    root.put_queue(queue, priority, "name = 'nothing'").expect(200)


def preview(client, queue, **more):
    return client.post(f"/v1/queues/{queue}:reroute", {"dryRun": True, **more}).expect(200).json


def act(client, queue, seen, **more):
    return client.post(f"/v1/queues/{queue}:reroute",
                       {"plan": seen["plan"], "expectedCount": seen["count"], **more})


def rows(site, jobs):
    return [site.job_row(job, "queue", "epoch", "status") for job in jobs]


def test_a_queue_without_workers_is_told_at_submission_and_when_it_is_made(site, ann, root):
    made = root.put_queue("alone", 90, "'alone' IN tags").expect(201).json
    assert any(NOBODY in text for text in made["warnings"])
    body = {"name": "x", "command": ["true"], "tags": ["alone"]}
    warned = ann.post("/v1/jobs", body).expect(201).json
    assert warned["queue"] == "alone" and NOBODY in warned["warnings"][0]
    served = {"name": "x", "command": ["true"]}
    items = ann.post("/v1/jobs:batch", {"jobs": [body, served]}).expect(200).json["items"]
    assert NOBODY in items[0]["warnings"][0] and items[1]["warnings"] == []
    told = site.run("submit", "--tag", "alone", "--", "true", client=ann)
    assert told.returncode == 0 and NOBODY in told.stderr, told
    site.worker("alone", "alone-w")
    wait_until("the worker to be known",
               lambda: ann.post("/v1/jobs", body).expect(201).json["warnings"] == [])
    assert root.put_queue("alone", 91, "'alone' IN tags").expect(200).json["warnings"] == []


def test_a_worker_that_has_just_come_is_known(site, ann, root):
    for at in range(4):
        root.put_queue(f"fresh{at}", 900 + at, f"'fresh{at}' IN tags").expect(201)
        worker = site.worker(f"fresh{at}")
        answer = ann.post("/v1/jobs", {"name": "x", "command": ["true"], "tags": [f"fresh{at}"]}).expect(201)
        assert answer.json["warnings"] == []
        worker.stop()


def test_a_preview_shows_and_changes_nothing(site, ann, root, rob, queue):
    jobs = waiting(ann, queue)
    assert preview(rob, queue) | {"looked": 0} == {
        "queue": queue, "looked": 0, "count": 0, "moves": [], "staying": 3, "tooLong": 0,
        "unreadable": 0, "sample": [], "plan": None, "next": None, "moved": 0, "left": 0}
    close(root, queue)
    before = rows(site, jobs)
    seen = preview(rob, queue)
    assert (seen["looked"], seen["count"], seen["staying"]) == (3, 3, 0)
    assert seen["moves"] == [{"queue": "default", "count": 3, "isServed": True}]
    assert [one["id"] for one in seen["sample"]] == jobs
    assert rows(site, jobs) == before == [[queue, "1", "PENDING"]] * 3


def test_what_was_shown_is_moved_and_runs(site, ann, root, rob, queue):
    jobs = waiting(ann, queue)
    close(root, queue)
    seen = preview(rob, queue)
    later = site.job_row(jobs[0], "queue")
    done = act(rob, queue, seen).expect(200).json
    assert (done["moved"], done["left"], later) == (3, 0, [queue])
    for job in jobs:
        assert ann.wait_end(job)["status"] == "FINISHED"
        assert site.job_row(job, "queue", "epoch", "attempts", "losses") == ["default", "2", "1", "0"]
        events = ann.get(f"/v1/jobs/{job}/events").expect(200).json["events"]
        moved = [event for event in events if event["kind"] == "rerouted"]
        assert [(event["actor"], event["detail"], event["epoch"]) for event in moved] == [
            ("rob", f"from queue {queue} to default", 2)]
        noted = root.get(f"/v1/audit?subject=/v1/jobs/{job}").expect(200).json["audit"]
        assert [(row["actor"], row["action"]) for row in noted] == [("rob", "queue_reroute")]
    assert preview(rob, queue)["looked"] == 0


def test_the_message_that_stays_behind_is_harmless(site, ann, root, rob, queue):
    job = waiting(ann, queue, 1)[0]
    wait_until("its message", lambda: not site.count("outbox"))
    close(root, queue)
    act(rob, queue, preview(rob, queue)).expect(200)
    ann.wait_status(job, "FINISHED")
    worker = site.worker(queue, f"{queue}-w")
    wait_until("it to be read", lambda: not any(queue in name for name in site.messages()))
    assert site.moves(job).count("FINISHED") == 1 and site.job_row(job, "attempts") == ["1"]
    worker.stop()


def test_what_is_no_longer_as_shown_is_refused(site, ann, root, rob, queue):
    jobs = waiting(ann, queue)
    close(root, queue)
    seen = preview(rob, queue)
    for wrong in ({"expectedCount": 2}, {"plan": "x" * 30}, {"after": jobs[0]}):
        sent = {"plan": seen["plan"], "expectedCount": seen["count"]} | wrong
        rob.post(f"/v1/queues/{queue}:reroute", sent).problem(409)
    root.put_queue("another", 89, "name = 'none'").expect(201)
    act(rob, queue, seen).problem(409)
    root.delete("/v1/queues/another").expect(204)
    assert {row[0] for row in rows(site, jobs)} == {queue}
    ann.cancel(jobs[0])
    waiting(ann, "default", 1)
    done = act(rob, queue, seen).expect(200).json
    assert (done["count"], done["moved"]) == (2, 2)
    assert site.job_row(jobs[0], "queue", "status") == [queue, "CANCELLED"]


def test_a_job_that_came_after_the_preview_stays(site, ann, root, rob, queue):
    first = waiting(ann, queue, 1)[0]
    close(root, queue)
    seen = preview(rob, queue)
    root.put_queue(queue, root.get(f"/v1/queues/{queue}").json["priority"], f"'{queue}' IN tags")
    late = waiting(ann, queue, 1)[0]
    act(rob, queue, seen).problem(409)
    close(root, queue)
    again = preview(rob, queue)
    assert again["count"] == 2
    assert act(rob, queue, again).expect(200).json["moved"] == 2
    assert site.job_row(first, "queue") == site.job_row(late, "queue") == ["default"]


def test_a_job_that_is_too_long_for_its_new_queue_stays(site, ann, root, rob, queue):
    job = waiting(ann, queue, 1, maxMinutes=90)[0]
    close(root, queue)
    root.put_queue("brief", 88, "name <> 'nothing'", maxMinutes=1).expect(201)
    try:
        seen = preview(rob, queue)
        assert (seen["tooLong"], seen["count"], seen["plan"]) == (1, 0, None)
    finally:
        root.delete("/v1/queues/brief").expect(204)
    assert site.job_row(job, "queue") == [queue]


def test_only_operators_may_and_bad_bodies_are_refused(ann, rob, queue):
    path = f"/v1/queues/{queue}:reroute"
    ann.post(path, {"dryRun": True}).problem(403)
    for body in ({}, {"dryRun": 1}, {"plan": "x"}, {"after": "x", "dryRun": True}, {"dry": True}):
        rob.post(path, body).problem(400)
    rob.post("/v1/queues/no-such-queue:reroute", {"dryRun": True}).problem(404)
    rob.post("/v1/queues/:reroute", {"dryRun": True}).problem(405)


def test_a_worker_that_claims_at_the_same_moment_wins_or_loses_cleanly(site, ann, root, rob, queue):
    jobs = waiting(ann, queue, 60)
    close(root, queue)
    seen = preview(rob, queue)
    answers = []
    mover = threading.Thread(target=lambda: answers.append(act(rob, queue, seen)))
    mover.start()
    worker = site.worker(queue, f"{queue}-w", slots=8)
    mover.join()
    done = answers[0].expect(200).json
    assert done["moved"] + done["left"] <= 60
    for job in jobs:
        assert ann.wait_end(job)["status"] == "FINISHED"
        assert site.job_row(job, "attempts", "losses") == ["1", "0"]
        assert site.moves(job).count("FINISHED") == 1
    moved = sum(site.job_row(job, "queue") == ["default"] for job in jobs)
    assert moved == done["moved"]
    worker.stop()


def test_a_claim_between_the_look_and_the_move_wins(fresh):
    site, ann = fresh, fresh.client(fresh.web())
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue("lone", 90, "'lone' IN tags").expect(201)
    job = waiting(ann, "lone", 1)[0]
    close(root, "lone")
    frozen = site.web("frozen", fault="queue.reroute.planned=stop@1")
    other = site.client(frozen, "rob", "operator", timeout_s=300)
    seen = preview(other, "lone")
    answers = []
    mover = threading.Thread(target=lambda: answers.append(act(other, "lone", seen)))
    mover.start()
    wait_until("it to stop there", lambda: sluice.stopped(frozen.pid))
    site.worker("lone")
    assert ann.wait_end(job)["status"] == "FINISHED"
    frozen.signal(signal.SIGCONT)
    mover.join()
    done = answers[0].expect(200).json
    assert (done["moved"], done["left"]) == (0, 1)
    assert site.job_row(job, "queue", "epoch", "attempts") == ["lone", "1", "1"]
    site.wait_clean()


def test_the_command_line_shows_and_moves(site, ann, root, rob, queue):
    jobs = waiting(ann, queue, 2)
    close(root, queue)
    shown = site.run("queue", "reroute", queue, "--dry-run", client=rob)
    assert shown.returncode == 0 and "2 go to queue default" in shown.stdout, shown
    assert "2 would be moved" in shown.stdout
    assert {row[0] for row in rows(site, jobs)} == {queue}
    done = site.run("queue", "reroute", queue, client=rob)
    assert done.returncode == 0 and "2 moved" in done.stdout, done
    for job in jobs:
        ann.wait_status(job, "FINISHED")
