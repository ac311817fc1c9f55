# SPDX-License-Identifier: MIT
"""What a request takes of the service's memory follows from its own size and its answer's."""

import json
import re
import threading

import pytest

from waiting import wait_until

MIB = 1 << 20
JOBS = 200
JSON = {"Content-Type": "application/json"}


class Peak:
    """The largest resident size of a process since begin()."""

    def __init__(self, process):
        self.folder, self.began = f"/proc/{process.pid}", 0

    def _read(self, name):
        with open(f"{self.folder}/status", encoding="ascii") as status:
            return int(re.search(name + r":\s+(\d+)", status.read()).group(1)) * 1024

    def begin(self):
        with open(f"{self.folder}/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")  # VmHWM begins anew at the present size
        self.began = self.resident()
        return self

    def resident(self):
        return self._read("VmRSS")

    def grown(self):
        return self._read("VmHWM") - self.began


def at_once(count, ask):
    """The answers of so many calls that run at the same time."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


AT_ONCE = 8
KEPT = 4 * MIB  # the heap of a thread has holes: what its first large requests left between


@pytest.fixture(scope="module")
def web(site):
    """Its limits of batches at once do not refuse what is measured here."""
    return site.web(web_batches_per_user=AT_ONCE, web_batches_per_tenant=AT_ONCE)


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


@pytest.fixture(scope="module")
def large(site, ann):
    """200 waiting jobs with a request of 1 MB each."""
    site.audited = False  # rows are changed by hand
    jobs = [{"name": "large", "command": ["true"]}] * JOBS
    made = ann.post("/v1/jobs:batch", {"jobs": jobs}).expect(200).json["items"]
    assert all(item["status"] == 201 for item in made)
    small = ann.get(f"/v1/jobs?name=large&limit={JOBS}").expect(200)  # what is made once is made
    site.sql("UPDATE jobs SET request = JSON_SET(request, '$.notes', REPEAT('x', 1000000))")
    return len(small.body)


def test_a_list_takes_memory_for_its_answer_not_for_the_requests(web, ann, large):
    peak = Peak(web).begin()
    answers = at_once(4, lambda: ann.get(f"/v1/jobs?name=large&limit={JOBS}").expect(200))
    for answer in answers:
        assert len(answer.json["jobs"]) == JOBS and "request" not in answer.json["jobs"][0]
        assert len(answer.body) < large + 1000
    assert peak.grown() < 4 * 16 * large, f"{peak.grown()} bytes for 4 answers of {large}"


def test_a_cancel_by_search_takes_no_memory_for_the_requests(web, ann, large):
    peak = Peak(web).begin()
    done = ann.post(f"/v1/jobs:cancel?name=large&limit={JOBS}", {"expectedCount": JOBS}).expect(200)
    assert done.json["cancelled"] == JOBS
    assert peak.grown() < 16 * large, f"{peak.grown()} bytes; {JOBS} jobs are listed in {large}"


def nested(bytes_):
    """Valid JSON of this size, with as many values as it can have."""
    return b'{"a":[' + b",".join([b"{}"] * ((bytes_ - 10) // 3)) + b"]}"


@pytest.mark.parametrize("method, path, role, least", [
    ("POST", "/v1/jobs", "user", 3 * MIB), ("POST", "/v1/jobs:batch", "user", 3 * MIB),
    ("PUT", "/v1/apps/a/1", "admin", 3 * MIB), ("POST", "/v1/queues:explain", "user", 3 * MIB),
    ("POST", "/v1/queues/x/check", "viewer", 3 * MIB), ("POST", "/v1/jobs:cancel", "user", 3 * MIB),
    ("POST", "/v1/queues/x/check", "viewer", 64 << 10)])
def test_json_takes_memory_for_its_text_and_gives_it_back(site, web, method, path, role, least):
    client, body, count = site.client(web, "eve", role), nested(least), AT_ONCE
    client.call(method, path, b"{}", JSON).expect(400)
    peak = Peak(web).begin()
    answers = at_once(count, lambda: client.call(method, path, body, JSON))
    assert peak.grown() < count * 3 * least + 64 * MIB, f"{peak.grown()} bytes for {count} of {least}"
    wait_until(lambda: f"{peak.resident()} bytes to be given back to {peak.began}",
               lambda: peak.resident() < peak.began + count * KEPT)
    for answer in answers:
        answer.problem(400 if least < 3 * MIB else 413)


def test_the_refusal_names_the_number_of_values_and_the_limit(ann):
    problem = ann.post("/v1/jobs", nested(MIB), JSON).problem(413)
    assert problem["code"] == "SLUICE-1040" and "100000" in problem["detail"], problem
    assert str(json.loads(nested(MIB))["a"].__len__() + 3) in problem["detail"], problem


def test_a_small_body_is_all_that_most_routes_take(site, web):
    root = site.client(web, "root", "admin")
    large = {"priority": 1, "filter": "TRUE", "description": "x" * (64 << 10)}
    for method, path in (("PUT", "/v1/queues/q"), ("PUT", "/v1/systems/s"), ("PUT", "/v1/quotas/ann"),
                         ("PUT", "/v1/subscriptions/s"), ("POST", "/v1/jobs:cancel")):
        detail = root.call(method, path, large).problem(413)["detail"]
        assert "65536" in detail and "route" in detail, (path, detail)
    ids = [f"00000000-0000-7000-8000-{at:012}" for at in range(1000)]
    root.post("/v1/jobs:cancel", {"ids": ids, "dryRun": True}).expect(200)
