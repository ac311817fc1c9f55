# SPDX-License-Identifier: MIT
"""What a submission may be, and what happens to one that is sent twice."""

import concurrent.futures
import json

import pytest


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


GOOD = {"name": "good", "command": ["true"]}

BAD = [
    (b"", 400, None),
    (b"{", 400, None),
    (b"[]", 400, None),
    (b'{"name":"a","name":"b","command":["x"]}', 400, None),
    (b'{"name":"a","command":["x"]} x', 400, None),
    (b'{"name":"\xff","command":["x"]}', 400, None),
    (b'{"name":"a\\u0000b","command":["x"]}', 400, None),
    (b'{"name":"a","command":["x"],"memoryMB":NaN}', 400, None),
    (b"[" * 100000, 400, None),
    ({"command": ["x"]}, 400, "/name"),
    ({"name": "a"}, 400, "/command"),
    (GOOD | {"colour": "red"}, 400, "/colour"),
    (GOOD | {"memoryMB": "much"}, 400, "/memoryMB"),
    (GOOD | {"memoryMB": -1}, 400, "/memoryMB"),
    (GOOD | {"nodeCount": 0}, 400, "/nodeCount"),
    (GOOD | {"maxMinutes": 10 ** 9}, 400, "/maxMinutes"),
    (GOOD | {"name": "n" * 5000}, 400, "/name"),
    (GOOD | {"command": ["x", 3]}, 400, "/command/1"),
    (GOOD | {"env": {"A=B": "x"}}, 400, "/env/A=B"),
    (GOOD | {"fileInputs": [{"content": "x", "targetPath": "../up"}]}, 400,
     "/fileInputs/0/targetPath"),
    (GOOD | {"fileInputs": [{"content": "x", "targetPath": "/abs"}]}, 400,
     "/fileInputs/0/targetPath"),
    (GOOD | {"archive": {"mode": "sometimes"}}, 400, "/archive/mode"),
    ({"name": "a", "appId": "nowhere", "appVersion": "1"}, 404, None),
]


@pytest.mark.parametrize("body,status,pointer", BAD)
def test_a_bad_request_is_refused_with_its_place_and_nothing_is_stored(site, ann, body, status,
                                                                       pointer):
    before = site.count("jobs"), site.count("job_events")
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = ann.post("/v1/jobs", sent, {"Content-Type": "application/json"})
    problem = answer.problem(400 if status == 400 else answer.expect(400, status).status)
    if pointer is not None:
        assert problem["errors"][0]["pointer"] == pointer, problem
        assert problem["errors"][0]["reason"]
    assert (site.count("jobs"), site.count("job_events")) == before


def test_too_large_a_body_is_413_and_other_content_is_415(ann):
    large = b'{"name":"a","command":["' + b"x" * (5 << 20) + b'"]}'
    ann.post("/v1/jobs", large, {"Content-Type": "application/json"}).problem(413)
    ann.post("/v1/jobs", b"name=a", {"Content-Type": "text/plain"}).problem(415)
    ann.post("/v1/jobs", json.dumps(GOOD).encode(), {
        "Content-Type": "application/json", "Content-Encoding": "gzip"}).problem(415)


def test_unknown_paths_and_methods_are_told(ann):
    ann.get("/v1/nothing").problem(404)
    answer = ann.call("PATCH", "/v1/jobs")
    answer.problem(405)
    assert "POST" in answer.headers["Allow"] and "GET" in answer.headers["Allow"]


def test_twenty_equal_posts_with_a_key_give_one_job(site, ann):
    before = site.count("jobs")
    headers = {"Idempotency-Key": "order-66"}
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ann.post("/v1/jobs", GOOD, headers), range(20)))
    ids = {answer.expect(200, 201).json["id"] for answer in answers}
    assert len(ids) == 1 and site.count("jobs") == before + 1
    ann.post("/v1/jobs", GOOD | {"name": "other"}, headers).problem(422)
    assert site.count("jobs") == before + 1


def test_the_key_is_each_owners_own(site, web, ann):
    headers = {"Idempotency-Key": "shared-word"}
    mine = ann.post("/v1/jobs", GOOD, headers).expect(201).json["id"]
    bobs = site.client(web, "bob").post("/v1/jobs", GOOD, headers).expect(201).json["id"]
    assert mine != bobs


def test_a_batch_tells_a_result_per_item(site, ann):
    answer = ann.post("/v1/jobs:batch", {"jobs": [GOOD, {"name": "x"}, GOOD]}).expect(200, 207)
    items = answer.json["items"]
    assert [item["status"] for item in items] == [201, 400, 201]
    assert items[1]["problem"]["code"].startswith("SLUICE-")
    assert site.job_row(items[2]["job"]["id"], "status") == ["PENDING"]


def test_a_list_pages_without_gaps_or_doubles(site, ann):
    made = {ann.submit("true", name=f"page-{at % 2}") for at in range(25)}
    seen, path = [], "/v1/jobs?limit=7"
    while path:
        page = ann.get(path).expect(200).json
        seen += [job["id"] for job in page["jobs"]]
        cursor = page.get("nextCursor")
        path = f"/v1/jobs?limit=7&cursor={cursor}" if cursor else None
    assert len(seen) == len(set(seen)) and made <= set(seen)
    odd = ann.get("/v1/jobs?limit=1000&filter=name%20%3D%20'page-1'").expect(200).json["jobs"]
    assert len(odd) == 12 and {job["name"] for job in odd} == {"page-1"}
    ann.get("/v1/jobs?cursor=AAAA").problem(400)
    ann.get("/v1/jobs?filter=nonsense%20%3D").problem(400)
    ann.get("/v1/jobs?limit=0").problem(400)


def test_a_disabled_app_still_takes_jobs(site, web, ann):
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/tool/1", {"command": ["echo"], "env": {"A": "1"}}).expect(201)
    request = {"name": "a", "appId": "tool", "appVersion": "1", "args": ["x"]}
    job = ann.post("/v1/jobs", request).expect(201).json
    assert job["appId"] == "tool"
    root.post("/v1/apps/tool/1/disable").expect(200, 204)
    ann.post("/v1/jobs", request).expect(201)  # it is held when its turn comes (test_systems)
    ann.post("/v1/jobs", request | {"appVersion": "2"}).problem(404)


def test_an_application_runs_its_command_and_no_other(site, web, ann):
    """A queue whose filter is an application is what an administrator gives to that command."""
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/safe/1", {"command": ["echo", "safe"]}).expect(201)
    root.put_queue("safe-only", 78, "appId = 'safe'").expect(201)
    request = {"name": "a", "appId": "safe", "appVersion": "1", "command": ["id"]}
    answers = [ann.post("/v1/jobs", request), ann.post("/v1/queues:explain", request),
               ann.post("/v1/jobs", request | {"appId": "none"})]
    for answer in answers:
        problem = answer.problem(400)
        assert problem["errors"][0]["pointer"] == "/command"
        assert "appId" in problem["detail"] and "command" in problem["detail"]
    item = ann.post("/v1/jobs:batch", {"jobs": [request]}).expect(200).json["items"][0]
    assert item["status"] == 400 and item["problem"]["errors"][0]["pointer"].endswith("/command")
    assert site.count("jobs", "queue = 'safe-only'") == 0
    del request["command"]
    good = ann.post("/v1/jobs", request | {"args": ["x"]}).expect(201).json
    assert good["queue"] == "safe-only" and good["request"]["command"] == ["echo", "safe"]
    again = ann.post(f"/v1/jobs/{good['id']}/resubmit").expect(201).json  # what is stored has both
    assert again["request"]["command"] == ["echo", "safe"]


def test_a_blank_at_an_end_makes_no_other_key_and_no_other_user(site, web, ann):
    """The database compares texts without the blanks at their end."""
    request = {"name": "keyed", "command": ["true"]}
    first = ann.post("/v1/jobs", request, {"Idempotency-Key": "blank"}).expect(201).json["id"]
    same = ann.post("/v1/jobs", request, {"Idempotency-Key": "blank \t "}).expect(200)  # RFC 9110, 5.5
    assert same.json["id"] == first
    for key in ("blank ", " blank", " "):
        ann.post("/v1/jobs", request | {"idempotencyKey": key}).problem(400)
    other = site.client(web)
    for user in ("ann ", " ann", "*", " "):
        other.token = site.token(user, "admin")
        other.post("/v1/jobs", request, {"Idempotency-Key": "blank"}).problem(401)
        other.get("/v1/whoami").problem(401)
    root = site.client(web, "root", "admin")
    root.put("/v1/quotas/ann", {"maxActive": 100}).expect(201)
    for owner in ("ann%20", "%20ann", "%20"):
        root.get(f"/v1/quotas/{owner}").problem(400)
        root.put(f"/v1/quotas/{owner}", {"maxActive": 1}).problem(400)
        root.delete(f"/v1/quotas/{owner}").problem(400)
        root.post(f"/v1/queues:explain?owner={owner}", request).problem(400)
    root.delete("/v1/quotas/ann").expect(204)


def test_a_resubmitted_job_has_the_same_request(site, web, ann):
    root = site.client(web, "root", "admin")
    root.put("/v1/apps/again/1", {"command": ["echo"], "args": ["a"], "tags": ["t"]}).expect(201)
    first = ann.post("/v1/jobs", {"name": "a", "appId": "again", "appVersion": "1", "args": ["b"],
                                  "tags": ["u"]}).expect(201).json
    second = ann.post(f"/v1/jobs/{first['id']}/resubmit").expect(201).json
    assert second["id"] != first["id"] and second["request"] == first["request"]
    assert second["queue"] == first["queue"] and second["tags"] == first["tags"]
    root.delete("/v1/apps/again/1").expect(204)
    ann.post(f"/v1/jobs/{first['id']}/resubmit").problem(404)


def test_a_queues_limit_bounds_its_jobs(site, web, ann):
    root = site.client(web, "root", "admin")
    root.put_queue("brief", 77, "'brief' IN tags", maxMinutes=2).expect(201)
    root.put("/v1/apps/slow/1", {"command": ["true"], "maxMinutes": 90}).expect(201)
    brief = {"name": "a", "command": ["true"], "tags": ["brief"]}
    assert ann.post("/v1/jobs", brief).expect(201).json["maxSeconds"] == 120
    assert ann.post("/v1/jobs", brief | {"maxMinutes": 1}).expect(201).json["maxSeconds"] == 60
    problem = ann.post("/v1/jobs", brief | {"maxMinutes": 3}).problem(400)
    assert problem["errors"][0]["pointer"] == "/maxMinutes"
    app = ann.post("/v1/jobs", {"name": "a", "appId": "slow", "appVersion": "1",
                                "tags": ["brief"]}).expect(201).json
    assert app["maxSeconds"] == 120
    ann.post(f"/v1/jobs/{app['id']}/resubmit").expect(201)


def test_hidden_jobs_are_not_listed(ann):
    job = ann.submit("true", name="shy")
    ann.post(f"/v1/jobs/{job}/hide").problem(409)  # one that has not ended is not hidden
    ann.cancel(job).expect(200)
    ann.post(f"/v1/jobs/{job}/hide").expect(200, 204)
    listed = ann.get("/v1/jobs?name=shy").expect(200).json["jobs"]
    assert not listed
    ann.post(f"/v1/jobs/{job}/unhide").expect(200, 204)
    assert len(ann.get("/v1/jobs?name=shy").json["jobs"]) == 1


def test_health_metrics_and_the_contract_are_served(web, ann):
    for path in ("/livez", "/readyz"):
        ann.get(path).expect(200)
    assert b"sluice_build_info" in ann.get("/metrics").expect(200).body
    contract = ann.get("/v1/openapi.json").expect(200).json
    assert contract["openapi"].startswith("3.1") and "/v1/jobs" in contract["paths"]
    assert web.alive()
