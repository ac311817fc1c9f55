# SPDX-License-Identifier: MIT
"""Batches: what they may hold, and what becomes of one whose answer was lost."""

import pytest


@pytest.fixture(scope="module")
def web(site):
    return site.web(limits_batch_bytes=2000000)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


def batch(client, key, *jobs):
    return client.post("/v1/jobs:batch", {"jobs": list(jobs)}, {"Idempotency-Key": key})


def named(*names):
    return [{"name": name, "command": ["true"]} for name in names]


def test_a_batch_is_bounded_with_its_applications_merged_in(site, web, ann):
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/wide/1", {
        "command": ["true"], "fileInputs": [{"content": "x" * 100000, "targetPath": "in"}]}).expect(201)
    small = {"name": "small", "appId": "wide", "appVersion": "1"}
    ann.post("/v1/jobs:batch", {"jobs": [small] * 15}).expect(200)
    before = site.count("jobs")
    problem = ann.post("/v1/jobs:batch", {"jobs": [small] * 200}).problem(413)
    assert "2000000 (limits.batch_bytes)" in problem["detail"], problem
    assert "the first 20 of 200 jobs have 200" in problem["detail"], problem
    assert site.count("jobs") == before


def test_a_batch_sent_again_with_its_key_gets_the_same_jobs(site, web, ann):
    jobs = [*named("one", "two"), {"name": "bad/name", "command": ["true"]}, *named("four")]
    first = batch(ann, "k1", *jobs).expect(200).json["items"]
    assert [item["status"] for item in first] == [201, 201, 400, 201]
    before = site.count("jobs")
    site.client(web, "root", "admin").cancel(first[1]["job"]["id"]).expect(200)
    again = batch(ann, "k1", *jobs).expect(200).json["items"]
    assert [item["status"] for item in again] == [200, 200, 400, 200]
    assert [item.get("job", {}).get("id") for item in again] == [
        item.get("job", {}).get("id") for item in first]
    assert [item["job"]["status"] for item in again if "job" in item] == [
        "PENDING", "CANCELLED", "PENDING"]
    assert site.count("jobs") == before
    assert site.count("outbox", "epoch > 1") == 0


def test_a_key_of_another_batch_is_refused_and_nothing_is_stored(site, ann):
    batch(ann, "k2", *named("one", "two")).expect(200)
    before = site.count("jobs")
    for other in (named("one"), named("one", "other"), named("one", "two", "three")):
        assert batch(ann, "k2", *other).problem(422)["code"] == "SLUICE-1043"
    assert site.count("jobs") == before
    batch(ann, "", *named("one")).problem(400)
    batch(ann, "x" * 129, *named("one")).problem(400)


def test_a_key_belongs_to_its_user_and_to_batches(site, web, ann):
    first = batch(ann, "k3", *named("one")).expect(200).json["items"][0]
    bob = batch(site.client(web, "bob"), "k3", *named("one")).expect(200).json["items"][0]
    alone = ann.submit("true", headers={"Idempotency-Key": "k3"})
    assert len({first["job"]["id"], bob["job"]["id"], alone}) == 3
