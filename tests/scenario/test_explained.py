# SPDX-License-Identifier: MIT
"""What is said of jobs that wait, of queues, workers and losses: tests/support/explained_where.py."""

import datetime
import json
import os
import re
import signal

import pytest

from explained import explained
from jobs import Traces
from sluice import parent
from waiting import wait_until

SPAN = re.compile(r"has waited for \d+(\.\d)? (s|min)")
NOTHING = "There is nothing to do"


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web()


@pytest.fixture(name="root", scope="module")
def fixture_root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    return site.client(web)


@pytest.fixture(name="bob", scope="module")
def fixture_bob(site, web):
    return site.client(web, "bob")


def told(client, job):
    return client.get(f"/v1/jobs/{job}/why").expect(200).json


def why(client, job):
    return told(client, job)["why"]


def wait_why(client, job, part):
    """The answer as soon as this is said."""
    def said():
        text = why(client, job)
        return text if part in text else None
    return wait_until(lambda: f"'{part}' in: {why(client, job)}", said)


def queue(root, name):
    root.put_queue(name, 1 + len(root.get("/v1/queues").json["queues"]), f"'{name}' IN tags").expect(201)
    return {"tags": [name]}


def busy(client, traces, name, where):
    """A job that runs until it is let go."""
    job = client.submit(*traces.command(name), **where)
    client.wait_status(job, "RUNNING")
    return job


def test_no_worker(site, root, ann):
    where = queue(root, "alone")
    worker = site.worker("alone")
    host = root.get("/v1/workers").json["workers"][0]["host"]
    assert worker.stop() == 0
    job = ann.submit("true", **where)
    with explained("no worker") as row:
        row.said(why(ann, job), cause=["queue 'alone'", "no worker serves", f"'alone-1' of host {host}, was stopped"],
                 limit=["it is the next", SPAN, re.compile(r"was heard of \d+\.\d s ago")],
                 step=["Ask an administrator of this site to start one."], never=["sluice-worker", "busy"])
        row.said(why(root, job), step=["Start one: 'sluice-worker --tenant acme --queue alone'."], never=["Ask"])
    ann.cancel(job).expect(200)


def test_a_line(site, root, ann, bob, tmp_path):
    where = queue(root, "line")
    traces = Traces(str(tmp_path / "t"))
    worker = site.worker("line", slots=1)
    runs = busy(ann, traces, "a", where)
    mine = [client.submit("true", **where) for client in (ann, bob, bob, ann)][-1]
    wait_until("the slot to be counted", lambda: told(ann, mine)["data"]["queue"]["busy"] == 1)
    with explained("behind others") as row:
        row.said(why(ann, mine),
                 cause=["3 jobs are before it (2 of bob, 1 of ann)", "1 of 1 slots of its 1 worker are busy",
                        re.compile(r"\(as of \d+\.\d s ago\)")],
                 limit=["1 of 1 slots", SPAN],
                 step=[NOTHING, "Ask an administrator of this site to start a further worker"],
                 never=["it should start"])  # nothing has ended here, so nothing is known
        row.said(why(root, mine), step=["'sluice-worker --tenant acme --queue line'"])
    assert told(ann, mine)["data"]["estimatedStart"] is None
    assert told(ann, mine)["data"]["estimateBasis"] is None
    traces.open()
    ann.wait_status(mine, "FINISHED")
    ann.wait_status(runs, "FINISHED")
    estimate(site, ann, where, tmp_path)
    assert worker.stop() == 0


def estimate(site, ann, where, tmp_path):
    """Five jobs have run here."""
    traces = Traces(str(tmp_path / "u"))
    runs = busy(ann, traces, "b", where)
    site.sql("UPDATE jobs SET started_at = ended_at - INTERVAL 20 SECOND WHERE queue = 'line' "
             "AND status = 'FINISHED'")
    waits = [ann.submit("true", **where) for _ in range(3)]
    wait_until("the slot to be counted", lambda: told(ann, waits[0])["data"]["queue"]["busy"] == 1)
    answer = told(ann, waits[-1])
    with explained("when will it start") as row:
        row.said(answer["why"], cause=["A job took 20 s here (median of 5 that ended in the last hour)"],
                 limit=["2 jobs are before it", "it should start in about 50 s, at ",
                        re.compile(r"at \d\d:\d\d:\d\d UTC")], step=[NOTHING])
    data = answer["data"]
    assert data["estimateBasis"] == {"jobsBefore": 2, "slots": 1, "medianRunSeconds": 20.0, "runs": 5,
                                     "windowSeconds": 3600}
    estimated = datetime.datetime.fromisoformat(data["estimatedStart"].replace("Z", "+00:00"))
    assert 0 < (estimated - datetime.datetime.now(datetime.timezone.utc)).total_seconds() <= 50
    assert told(ann, runs)["data"].get("estimatedStart") is None
    traces.open()
    for job in waits:
        ann.wait_status(job, "FINISHED")


def test_a_drained_worker(site, web, root, ann):
    where = queue(root, "drained")
    worker = site.worker("drained")
    row_of = next(row for row in root.get("/v1/workers").json["workers"] if row["queue"] == "drained")
    olga = site.client(web, "olga", "operator")
    olga.post(f"/v1/workers/{row_of['id']}/drain").expect(200)
    job = ann.submit("true", **where)
    with explained("drained worker") as row:
        row.said(why(ann, job), cause=[f"its only worker 'drained-1' of host {row_of['host']} was drained by olga"],
                 limit=[re.compile(r"by olga \d+\.\d s ago"), SPAN],
                 step=["Ask an operator of this site to let it take jobs again."],
                 never=["busy", "free slot has", NOTHING, "sluice undrain"])
        row.said(why(olga, job), step=[f"Let it take jobs again: 'sluice undrain {row_of['id']}'."])
    assert told(ann, job)["data"]["queue"]["drained"] == 1
    olga.post(f"/v1/workers/{row_of['id']}/undrain").expect(200)
    ann.wait_status(job, "FINISHED")
    assert worker.stop() == 0


def test_a_disabled_queue(site, root, ann, tmp_path):
    where = queue(root, "shut")
    traces = Traces(str(tmp_path / "t"))
    worker = site.worker("shut", slots=1)
    runs = busy(ann, traces, "a", where)
    job = ann.submit("true", **where)
    wait_until("the slot to be counted", lambda: told(ann, job)["data"]["queue"]["busy"] == 1)
    given = root.get("/v1/queues/shut").json
    root.put("/v1/queues/shut", {"priority": given["priority"], "filter": given["filter"], "enabled": False}).expect(200)
    with explained("disabled queue") as row:
        row.said(why(ann, job), cause=["The queue was disabled by root", "no new jobs come to it, those on it still run",
                                       "slots of its 1 worker are busy"],
                 limit=["1 of 1 slots", re.compile(r"by root \d+\.\d s ago")], step=[NOTHING])
    assert told(ann, job)["data"]["queue"]["enabled"] is False
    traces.open()
    ann.wait_status(job, "FINISHED")
    ann.wait_status(runs, "FINISHED")
    assert worker.stop() == 0


def test_a_lost_message(fresh):
    ann = fresh.client(fresh.web())
    job = ann.submit("true")
    wait_until("its message to be confirmed", lambda: fresh.count("outbox") == 0)
    with fresh.amqp() as link:
        link.purge("sluice.acme.submit.default")
    fresh.worker()
    with explained("lost message") as row:
        row.said(wait_why(ann, job, "lost"),
                 cause=["it is the next and a slot is free, so the broker seems to have lost its message"],
                 limit=["sluice-recovery sends it again within two leases (4 s)", SPAN],
                 step=["there is nothing to do."], never=["waits for a free slot", "for a free slot", "busy"])


def test_a_silent_worker(site, web, ann, root):
    where = queue(root, "mute")
    patient = site.client(site.web(name="patient", fleet_lease_ms=30000), "ann")
    worker = site.worker("mute", slots=1)
    worker.signal(signal.SIGSTOP)
    try:
        job = ann.submit("true", **where)
        host = root.get("/v1/workers").json["workers"][0]["host"]
        with explained("silent worker") as row:
            row.said(wait_why(ann, job, "silent"), cause=[f"its worker 'mute-1' of host {host} has been silent for"],
                     limit=[re.compile(r"silent for \d+\.\d s, longer than the lease of 2\.0 s")],
                     step=["Ask an administrator of this site to look at its host, or start another worker."],
                     never=["busy", NOTHING, "a slot is free"])
            row.said(why(root, job), step=["Look at its host, or start another worker: 'sluice-worker --tenant acme"])
        # A service with another lease: half of it has passed, and not the whole.
        site.sql("UPDATE workers SET beat_at = UTC_TIMESTAMP(6) - INTERVAL 16 SECOND WHERE queue = 'mute'")
        with explained("worker misses beats") as row:
            row.said(why(patient, job), cause=["it has not been heard of"],
                     limit=[re.compile(r"heard of for 1\d s and is given up after 30 s")], step=[NOTHING],
                     never=["longer than the lease"])
    finally:
        worker.signal(signal.SIGCONT)
    ann.wait_status(job, "FINISHED")
    assert worker.alive() and web.alive()
    assert worker.stop() == 0


# ---- jobs that a worker has, or had

LATE = 30000  # a lease, of a service that is asked before it has passed


def silence(site, name, seconds):
    """The worker's last beat was so long ago."""
    site.sql(f"UPDATE workers SET beat_at = UTC_TIMESTAMP(6) - INTERVAL {seconds} SECOND WHERE name = '{name}'")


def test_a_host_that_is_lost(fresh, tmp_path):
    """From the first missed beats over its death to the second run, and its end by poison."""
    web = fresh.web()
    ann, root = fresh.client(web), fresh.client(web, "root", "admin")
    patient = fresh.client(fresh.web(name="patient", fleet_lease_ms=LATE))
    traces = Traces(str(tmp_path / "t"))
    worker = fresh.worker(name="wone", worker_max_losses=2)
    host = root.get("/v1/workers").json["workers"][0]["host"]
    job = ann.submit(*traces.command("a"), maxSeconds=40, name="nightly")
    ann.wait_status(job, "RUNNING")
    traces.wait_runs("a")
    worker.kill9()
    silence(fresh, "wone", 16)
    with explained("worker killed, running job") as row:
        row.said(why(patient, job), cause=["Its command runs for", f"on worker 'wone' of host {host}"],
                 limit=["of its 40 s left", re.compile(r"has not been heard of for 1\d s and is declared dead after 30 s")],
                 never=["takes the job over"])
    with explained("host lost, running job") as row:
        row.said(why(ann, job), cause=[f"Its worker 'wone' of host {host} has been silent for", "it is being declared dead"],
                 limit=["longer than the lease of 2.0 s"],
                 step=["would take the job over, and there is none. Ask an administrator of this site to start one."],
                 never=["Its command runs", "takes the job over:"])
        row.said(why(root, job), step=["Start one: 'sluice-worker --tenant acme --queue default'."])
    fresh.worker("elsewhere", name="watcher")
    wait_until("its death", lambda: fresh.count("workers", "state = 'dead'") == 1)
    with explained("host lost, no other worker") as row:
        row.said(why(ann, job), cause=[f"Its worker 'wone' of host {host} is dead"], limit=["was heard of"],
                 step=["there is none. Ask an administrator"], never=["Its command runs", "takes the job over:"])
    second_run(fresh, ann, job, host)
    fresh.worker(name="wthree", worker_max_losses=2)
    ann.wait_status(job, "FAILED")
    with explained("poison") as row:
        row.said(why(ann, job), cause=[f"with worker 'wone' of host {host} at", f"with worker 'wtwo' of host {host} at"],
                 limit=["lost 2 times", "the limit is 2"], step=["See whether it takes its host's memory", f"'sluice resubmit {job}'"])


def second_run(site, ann, job, host):
    """A worker takes it over; the times of the first run were long ago."""
    begun = "kind <> 'lost' AND seq < (SELECT s FROM (SELECT MAX(seq) AS s FROM job_events WHERE kind = 'lost') x)"
    worker = site.worker(name="wtwo", worker_max_losses=2)
    wait_until("the second run", lambda: site.count("job_events", "kind = 'lost'") == 1)
    site.sql(f"UPDATE job_events SET at = at - INTERVAL 60 SECOND WHERE {begun}")
    with explained("second run") as row:
        row.said(wait_why(ann, job, "Its second run"),
                 cause=["Its second run runs for", f"The first run was lost with worker 'wone' of host {host} at"],
                 limit=["1 of 3 losses", re.compile(r"at \d\d:\d\d:\d\d UTC")], never=["takes the job over"])
    with explained("second run, limit") as row:
        answer = told(ann, job)
        row.said(answer["why"], cause=["Its second run runs for"],
                 limit=[re.compile(r"with (3\d|[12]?\d(\.\d)?) s of its 40 s left")], never=["over its limit"])
    assert answer["data"]["limitSeconds"] == 40 and 0 < answer["data"]["leftSeconds"] <= 40
    assert [(loss["worker"], loss["host"]) for loss in answer["data"]["losses"]] == [("wone", host)]
    worker.kill9()


def test_a_cancel_that_nobody_carries_out(fresh, tmp_path):
    web = fresh.web()
    ann, root = fresh.client(web), fresh.client(web, "root", "admin")
    traces = Traces(str(tmp_path / "t"))
    worker = fresh.worker(name="wgone")
    job = ann.submit(*traces.command("a"))
    ann.wait_status(job, "RUNNING")
    worker.kill9()
    root.cancel(job).expect(202)
    with explained("cancelled, its worker is gone") as row:
        row.said(wait_why(ann, job, "silent"), cause=["Its worker 'wgone'", "it is being declared dead", "root asked to cancel it",
                                                      "it becomes CANCELLED when its worker is declared dead"],
                 limit=[re.compile(r"cancel it \d+\.\d s ago"), "longer than the lease of 2.0 s"],
                 step=["there is none. Ask an administrator"],
                 never=["Its command runs", "when its worker has stopped it", "would take"])
    fresh.worker(name="next")
    ann.wait_status(job, "CANCELLED")


def test_a_worker_that_hangs(fresh, tmp_path):
    ann = fresh.client(fresh.web())
    traces = Traces(str(tmp_path / "t"))
    worker = fresh.worker(name="whang")
    job = ann.submit(*traces.command("a"))
    ann.wait_status(job, "RUNNING")
    worker.signal(signal.SIGSTOP)
    with explained("worker hangs, running job") as row:
        row.said(wait_why(ann, job, "silent"), cause=["Its worker 'whang'", "its host hangs or is cut off"],
                 limit=[re.compile(r"silent for \d+\.\d s, longer than the lease of 2\.0 s")],
                 step=["there is none. Ask an administrator of this site to start one."], never=["Its command runs"])
    worker.signal(signal.SIGCONT)


def test_a_runner_that_dies(site, ann, root, tmp_path):
    where = queue(root, "fragile")
    traces = Traces(str(tmp_path / "t"))
    worker = site.worker("fragile", slots=1)
    job = busy(ann, traces, "a", where)
    traces.wait_runs("a")
    os.kill(parent(traces.wait_runs("a")[0]), signal.SIGKILL)
    with explained("runner killed") as row:
        row.said(wait_why(ann, job, "second run"), cause=["Its second run", "was lost when its runner died on worker 'fragile-1'"],
                 limit=["1 of 3 losses", re.compile(r"at \d\d:\d\d:\d\d UTC")], never=["takes the job over"])
    traces.open()
    ann.wait_status(job, "FINISHED")
    assert worker.stop() == 0


def test_a_job_that_runs_longer_than_usual(site, ann, root, tmp_path):
    where = queue(root, "usual")
    traces = Traces(str(tmp_path / "t"))
    worker = site.worker("usual", slots=1)
    for _ in range(3):
        ann.wait_status(ann.submit("true", name="nightly", **where), "FINISHED")
    job = ann.submit(*traces.command("a"), name="nightly", **where)
    with explained("longer than usual") as row:
        row.said(wait_why(ann, job, "longer than usual"), cause=["That is longer than usual", "the last 3 jobs named 'nightly' of ann"],
                 limit=[re.compile(r"took \d+\.\d s \(median\)")], step=[f"'sluice output {job} --follow'"])
    traces.open()
    ann.wait_status(job, "FINISHED")
    assert worker.stop() == 0


# ---- queues, workers, groups of held jobs, dead messages


def said(site, client, name):
    """What the command says of it."""
    done = site.run("why", name, client=client)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_queue_and_its_worker(site, root, ann):
    where = queue(root, "lonely")
    job = ann.submit("true", **where)
    with explained("why of a queue") as row:
        row.said(said(site, ann, "lonely"), cause=["1 job waits on queue 'lonely' (1 of ann), and no worker serves this queue"],
                 limit=["1 job"], step=["Ask an administrator of this site to start one."])
        row.said(said(site, root, "lonely"), step=["'sluice-worker --tenant acme --queue lonely'"])
    root.get("/v1/queues/nothing/why").expect(404)
    worker = site.worker("lonely", name="hermit", slots=3)
    ann.wait_status(job, "FINISHED")
    found = next(row for row in root.get("/v1/workers").json["workers"] if row["name"] == "hermit")
    with explained("why of a worker") as row:
        row.said(said(site, ann, found["id"]), cause=[f"Worker 'hermit' of host {found['host']}, for queue 'lonely', is live"],
                 limit=["of its 3 slots are busy (as of"], step=[NOTHING])
        root.post(f"/v1/workers/{found['id']}/drain").expect(200)
        row.said(said(site, ann, "hermit"), cause=["It was drained by root"], step=["Ask an operator of this site"])
        row.said(said(site, root, "hermit"), step=[f"'sluice undrain {found['id']}'"])
    assert worker.stop() == 0
    with explained("why of a worker that is gone") as row:
        row.said(said(site, root, found["id"]), cause=["is stopped", "No other worker serves queue 'lonely'"],
                 limit=[re.compile(r"heard of \d+\.\d s ago")], step=["Start one: 'sluice-worker"], never=["is live"])
    assert "there is no job, queue, worker" in site.run("why", "nothing", client=ann).stderr


def test_a_worker_without_a_queue(site, root):
    root.get("/v1/queues").expect(200)  # the tenant is there, and its default queue
    worker = site.worker("nosuchq")
    found = next(row for row in root.get("/v1/workers").json["workers"] if row["queue"] == "nosuchq")
    with explained("worker of no queue") as row:
        warned = worker.wait_log("worker.queue.missing")
        row.said(warned, cause=["nosuchq"], limit=['"there":"', "default"], step=["sluice queue put"])
        row.said(said(site, root, found["id"]), cause=["Tenant acme has no queue 'nosuchq', so no job comes to it"],
                 limit=["queue 'nosuchq'"], step=["Make the queue: 'sluice queue put nosuchq"])
    assert worker.stop() == 0


def test_a_group_of_held_jobs(site, root, ann):
    root.put("/v1/apps/closed/1", {"command": ["true"]}).expect(201)
    root.post("/v1/apps/closed/1/disable").expect(200)
    worker = site.worker()
    job = ann.submit(appId="closed", appVersion="1")
    ann.wait_status(job, "BLOCKED")
    group = told(ann, job)["data"]["blocked"]["recovery"]
    with explained("why of a group") as row:
        row.said(said(site, ann, group), cause=["1 job is held since", "its application is disabled"],
                 limit=[re.compile(r"failed checks? so far"), re.compile(r"since \d\d:\d\d:\d\d UTC")], step=["Ask an operator of this site to put this right"])
        row.said(said(site, root, group), step=[f"'sluice recovery check {group}'"])
    ann.cancel(job).expect(200)
    assert worker.stop() == 0


def test_dead_messages(fresh):
    root = fresh.client(fresh.web(), "root", "admin")
    root.get("/v1/whoami").expect(200)
    worker = fresh.worker()
    fresh.reader("deadletter")
    place = "sluice.acme.submit.default"
    wait_until("it to receive", lambda: fresh.queues().get(place, (0, 0, 0))[2])
    stranger = "01900000-0000-7000-8000-000000000001"
    bodies = {"rubbish message": b"no json", "message of an unknown job":
              json.dumps({"v": 1, "job": stranger, "epoch": 1}).encode()}
    with fresh.amqp() as link:
        for body in bodies.values():
            link.publish("sluice.submit", place, body)
    wait_until("both to be kept", lambda: fresh.count("dead_messages", "outcome IS NOT NULL") == 2)
    for name, cause in (("rubbish message", "message is not JSON"), ("message of an unknown job", "there is no job of this id")):
        message = next(one["id"] for one in root.get("/v1/dead-messages").json["deadMessages"] if cause in one["detail"])
        with explained(name) as row:
            row.said(said(fresh, root, message), cause=[f"Queue '{place}' of the broker gave this message up", cause],
                     limit=[f"'{place}'"], step=[f"discard it: 'sluice dead discard {message}'"])
    assert worker.stop() == 0


def test_an_expired_message(fresh):
    """A policy of the broker lets messages expire."""
    web = fresh.web()
    ann, root = fresh.client(web), fresh.client(web, "root", "admin")
    fresh.reader("deadletter")
    fresh.servers.rabbitmq.ctl("set_policy", "-p", fresh.vhost, "--apply-to", "queues", "ttl", "^sluice.acme.submit",
                               '{"message-ttl": 200}')
    job = ann.submit("true")
    ann.wait_status(job, "FAILED")
    message = wait_until("the message", lambda: root.get("/v1/dead-messages?state=settled").json["deadMessages"])[0]["id"]
    with explained("expired message") as row:
        row.said(said(fresh, root, message), cause=["it waited longer than a policy of the broker allows (message-ttl)", "Its job ended FAILED"],
                 limit=["'sluice.acme.submit.default'"], step=["'rabbitmqctl list_policies'", f"'sluice resubmit {job}'"])


# ---- which queue a job went to


def explain(site, client, job):
    done = site.run("explain", job, client=client)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_where_a_job_went(site, root, ann):
    where = queue(root, "vast")
    job = ann.submit("true", **where)
    given = root.get("/v1/queues/vast").json
    changed = {"priority": given["priority"], "filter": "'huge' IN tags"}
    root.put("/v1/queues/vast", changed).expect(200)
    with explained("filter changed since") as row:
        row.said(why(ann, job), cause=["It went to queue 'vast' by its filter (version 1): 'vast' IN tags"], limit=["version 1"],
                 step=[f"'sluice explain {job}'"])
        row.said(explain(site, ann, job), cause=["queue: vast", "it would go now to: default"], limit=["(version 1): 'vast' IN tags"])
    ann.cancel(job).expect(200)
    typo = ann.submit("true", tags=["hugee"])
    with explained("typo in a tag") as row:
        row.said(explain(site, ann, typo), cause=["at submission: to queue 'default': no filter was true"],
                 limit=["'huge' IN tags", '"hugee"'])
    ann.cancel(typo)
    root.put("/v1/queues/vast", changed | {"enabled": False}).expect(200)
    away = ann.submit("true", tags=["huge"])
    with explained("disabled queue, new job") as row:
        row.said(explain(site, ann, away),
                 cause=["to queue 'default': no filter was true; queue 'vast' would take it, but is disabled"], limit=["disabled"])
    again = ann.post(f"/v1/jobs/{away}/resubmit").expect(201).json["id"]
    first = ann.get(f"/v1/jobs/{again}/events").json["events"][0]["detail"]
    assert first.startswith(f"resubmitted from {away}, to queue 'default'"), first
    for one in (away, again):
        ann.cancel(one)
    site.stranger(site.processes[0]).get(f"/v1/jobs/{job}/explain").expect(404)


# ---- workers that do not start


def test_a_worker_that_cannot_start(site):
    worker = site.worker(name="twin")
    second = site.worker(name="twin", wait=False)
    assert second.wait() != 0
    with explained("worker name taken") as row:
        row.said(second.log_tail().splitlines()[-1], cause=["another worker with the name 'twin' runs on this host"],
                 limit=["(lock "], step=["give this one another worker.name"])
    assert worker.stop() == 0
    broken = site.worker(name="broken", wait=False, worker_runner="/opt/none")
    with explained("runner missing") as row:
        row.said(broken.wait_log("/opt/none"), cause=["No such file or directory"], limit=["/opt/none"], step=["worker.runner"])
    broken.signal(signal.SIGKILL)
    broken.wait()
