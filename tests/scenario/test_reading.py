# SPDX-License-Identifier: MIT
"""What a client reads: conditional requests, words for states, times, errors by their type."""

import urllib.parse

import pytest

from rest import Client


@pytest.fixture(scope="module")
def ann(site):
    client = site.client(site.web())
    site.worker()
    return client


@pytest.fixture(scope="module")
def ended(ann):
    return ann.wait_end(ann.submit("true", name="ended"))


@pytest.fixture(scope="module")
def waits(site, ann):
    root = site.client(site.processes[0], "root", "admin")
    root.put_queue("nobody", 7, "'nobody' IN tags").expect(201)
    return ann.submit("true", name="waits", tags=["nobody"])


def names(ann, **query):
    found = ann.get("/v1/jobs?" + urllib.parse.urlencode(query)).expect(200).json["jobs"]
    return [job["name"] for job in found]


def test_the_type_of_a_problem_leads_to_its_help(ann):
    refused = Client(ann.url).get("/v1/jobs").problem(401)
    page = Client(ann.url).get(refused["type"]).expect(200).json
    assert (page["code"], page["status"]) == (refused["code"], 401)
    assert page["title"] == refused["title"] and "token" in page["help"]
    for path in ("/errors/SLUICE-9999", "/errors/SLUICE-0", "/errors/x", "/errors/SLUICE-01010"):
        Client(ann.url).get(path).problem(404)


def test_what_is_kept_is_not_sent_again(ann, ended, waits):
    for path in (f"/v1/jobs/{ended['id']}", "/v1/jobs?name=ended"):
        tag = ann.get(path).expect(200).headers["ETag"]
        assert tag.startswith('W/"')
        for sent in (tag, f'"other", {tag}', tag[2:], "*"):
            kept = ann.call("GET", path, headers={"If-None-Match": sent}).expect(304)
            assert kept.body == b"" and kept.headers["ETag"] == tag
        for sent in ('"other"', 'W/""', tag[:-2] + '"'):
            ann.call("GET", path, headers={"If-None-Match": sent}).expect(200)
    tag = ann.get(f"/v1/jobs/{waits}").expect(200).headers["ETag"]
    ann.cancel(waits)
    changed = ann.call("GET", f"/v1/jobs/{waits}", headers={"If-None-Match": tag}).expect(200)
    assert changed.headers["ETag"] != tag and changed.json["status"] == "CANCELLED"


def test_what_an_administrator_made_is_kept_until_it_changes(site, ann):
    root = site.client(site.processes[0], "root", "admin")
    for path, body in (("/v1/apps/tool/1", {"command": ["true"]}),
                       ("/v1/systems/west", {"maxActive": 5})):
        root.put(path, body).expect(201)
        tag = ann.get(path).expect(200).headers["ETag"]
        ann.call("GET", path, headers={"If-None-Match": tag}).expect(304)
        root.post(path + "/disable").expect(200)
        ann.call("GET", path, headers={"If-None-Match": tag}).expect(200)


def test_active_and_ended_stand_for_states(ann, ended):
    queue = site_queue(ann)
    here = ann.submit("true", name="here", tags=[queue])
    assert ended["name"] in names(ann, status="ended") and "here" not in names(ann, status="ended")
    assert "here" in names(ann, status="active") and "ended" not in names(ann, status="active")
    both = names(ann, status="active,FINISHED")
    assert "here" in both and "ended" in both
    refused = ann.get("/v1/jobs?status=nonsense").problem(400)
    assert "active" in refused["detail"]
    ann.cancel(here)


def site_queue(ann):
    assert any(queue["name"] == "nobody" for queue in ann.get("/v1/queues").json["queues"])
    return "nobody"


def test_ranges_of_time_choose_jobs(ann, ended):
    later = ann.wait_end(ann.submit("true", name="later"))
    assert "ended" not in names(ann, createdAfter=ended["ended"])
    assert "later" in names(ann, createdAfter=ended["ended"])
    assert "later" not in names(ann, createdBefore=later["created"])
    assert "ended" in names(ann, createdBefore=later["created"])
    assert names(ann, endedAfter=ended["ended"], name="later") == ["later"]
    assert names(ann, endedBefore=ended["started"], name="ended") == []
    assert names(ann, endedBefore="2999-01-01T00:00:00+02:00", status="ended", name="ended") == ["ended"]
    for name in ("createdAfter", "createdBefore", "endedAfter", "endedBefore"):
        for wrong in ("yesterday", "", "2026-13-01T00:00:00Z"):
            refused = ann.get(f"/v1/jobs?{name}={wrong}").problem(400)
            assert refused["errors"][0]["pointer"] == f"?{name}"


def test_pages_of_a_range_go_on_and_belong_to_it(ann, ended):
    jobs = [ann.submit("true", name="paged") for _ in range(5)]
    query = urllib.parse.urlencode({"createdAfter": ended["ended"], "name": "paged", "limit": 2})
    seen, cursor = [], ""
    while cursor is not None:
        page = ann.get(f"/v1/jobs?{query}{cursor and '&cursor=' + cursor}").expect(200).json
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["nextCursor"]
        if cursor:
            ann.get(f"/v1/jobs?name=paged&limit=2&cursor={cursor}").problem(400)
    assert sorted(seen) == sorted(jobs)


def test_the_content_of_inputs_is_not_sent_back(ann):
    text = "Grüße" * 1000
    body = {"name": "big", "command": ["cat", "in"], "fileInputs": [
        {"content": text, "targetPath": "in"},
        {"sourceUrl": "http://127.0.0.1:1/x", "targetPath": "other"}]}
    made = ann.post("/v1/jobs", body).expect(201)
    for answer in (made, ann.get(f"/v1/jobs/{made.json['id']}").expect(200)):
        assert text[:50].encode() not in answer.body
        assert answer.json["inlineInputs"] == [
            {"targetPath": "in", "bytes": len(text.encode())}]
        assert answer.json["request"]["fileInputs"][0] == {"targetPath": "in"}
        assert answer.json["request"]["fileInputs"][1]["sourceUrl"].startswith("http:")
    ann.cancel(made.json["id"])


def test_a_job_that_is_sent_again_has_its_inputs(ann):
    job = ann.wait_end(ann.submit("cat", "in", fileInputs=[{"content": "text", "targetPath": "in"}]))
    again = ann.post(f"/v1/jobs/{job['id']}/resubmit").expect(201).json
    ann.wait_status(again["id"], "FINISHED")
    assert ann.output(again["id"]) == b"text"


def test_a_file_is_saved_under_its_name(ann):
    job = ann.wait_end(ann.submit("sh", "-c", "echo x >'a b;\"ü.html'; : >none",
                                  archive={"includes": ["*"]}))
    for listed in ann.get(f"/v1/jobs/{job['id']}/files").expect(200).json["files"]:
        answer = ann.get(listed["href"]).expect(200)
        quoted = urllib.parse.quote(listed["path"], safe="-._~")
        assert answer.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{quoted}"


def test_only_the_fields_that_are_wanted_are_shown(ann, ended):
    found = ann.get("/v1/jobs?name=ended&fields=id,status").expect(200).json["jobs"]
    assert found == [{"id": ended["id"], "status": "FINISHED"}]
    path = f"/v1/jobs/{ended['id']}"
    one = ann.get(f"{path}?fields=runSeconds&fields=name").expect(200)
    assert one.json == {"name": "ended", "runSeconds": ended["runSeconds"]}
    assert one.headers["ETag"] != ann.get(path).headers["ETag"]
    for wrong in ("fields=", "fields=id,,name", "fields=colour", "fields=" + "x" * 99,
                  "fields=Id", "fields=output.stdout"):
        for where in ("/v1/jobs", path):
            refused = ann.get(f"{where}?{wrong}").problem(400)
            assert refused["errors"][0]["pointer"] == "?fields", wrong
    ann.get(f"{path}?fields=id&wait=1").problem(400)
