# SPDX-License-Identifier: MIT
"""Text that somebody's database, shell, terminal, log or browser might take for something else."""

import json
import urllib.parse

import pytest

from attacks import attacked
from test_requests import GOOD, JSON, answer_of, exchange, head

SQL = ("' OR '1'='1", "'; DROP TABLE jobs; --", "\" OR \"\"=\"", "1) UNION SELECT password FROM mysql.user --",
       "\\'; SELECT SLEEP(5); --", "%' AND 1=0 UNION ALL SELECT 1,2 --", "admin'/*", "\u02bc OR 1=1")
ANSI = "\x1b[31mred\x1b]0;title\x07"
C1 = "\u009b31m\u0090x\u009c"
BIDI = "\u202egnp.exe\u2066x\u2069\u200f"
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def worker(stand):
    return stand.site.worker()


def quoted(text):
    return urllib.parse.quote(text, safe="")


def tables(site):
    return sorted(row[0] for row in site.sql("SHOW TABLES"))


def test_sql_in_a_request_is_text(stand, ann):
    before = tables(stand.site)
    with attacked("F-22 members", stand) as hit:
        for text in SQL:
            for request in ({"notes": text}, {"env": {"A": text}}, {"args": [text]}, {"tags": [text]},
                            {"command": ["true", text]}, {"idempotencyKey": text},
                            {"fileInputs": [{"content": text, "targetPath": "in"}]}):
                answer = ann.post("/v1/jobs", {"name": "sql", "command": ["true"]} | request)
                if answer.status == 201:
                    kept = ann.job(answer.json["id"])
                    hit.held(text in json.dumps(kept, ensure_ascii=False).replace('\\"', '"').replace(
                        "\\\\", "\\") or "idempotencyKey" in request or "fileInputs" in request, kept)
                else:
                    hit.refused(answer, 400)
            for member in ("systemId", "appId", "name"):
                request = {"name": "sql", "command": ["true"], member: text}
                hit.refused(ann.post("/v1/jobs", request), (201, 400, 404))
    assert tables(stand.site) == before and stand.site.count("jobs") > 0


def found(answer):
    return {job["name"] for job in answer.expect(200).json["jobs"]}


def test_sql_in_a_query_finds_nothing(stand, ann):
    root, before = stand.root, tables(stand.site)
    with attacked("F-22 queries", stand) as hit:
        for text in SQL:
            told = quoted(text)
            for name in ("status", "owner", "queue", "name", "appId", "hidden", "filter", "orderBy",
                         "limit", "cursor"):
                answer = ann.get(f"/v1/jobs?{name}={told}")
                hit.held(answer.status == 400 or found(answer) <= {text}, answer)
            for path in (f"/v1/audit?actor={told}", f"/v1/audit?action={told}",
                         f"/v1/audit?subject={told}", f"/v1/dead-messages?state={told}",
                         f"/v1/overview?minutes={told}", f"/v1/queues/{told}", f"/v1/systems/{told}",
                         f"/v1/apps/{told}/1", f"/v1/quotas/{told}", f"/v1/workers/{told}",
                         f"/v1/recovery/{told}", f"/v1/dead-messages/{told}", f"/v1/jobs/{told}",
                         f"/v1/events?job={told}&after=x"):
                answer = root.get(path)
                hit.held(answer.status in (400, 404) or answer.expect(200).json["audit"] == [], answer)
            inside = text.replace("'", "''")
            answer = ann.get(f"/v1/jobs?filter={quoted(f'name = {chr(39)}{inside}{chr(39)}')}")
            hit.held(found(answer) <= {text}, answer)
            answer = ann.get("/v1/jobs?filter=" + quoted("name = 'x' " + text))
            hit.held(answer.status == 400 or answer.json["jobs"] == [], answer)
            hit.refused(root.put_queue("sql", 3, "name = 'x" + text), 400)
    assert tables(stand.site) == before


def names(lines):
    return {line.get("event") for line in lines}


def test_a_log_has_one_json_line_for_each_event(stand, ann, worker):
    evil = "x\r\n{\"level\":\"info\",\"event\":\"forged\"}\n" + ANSI + BIDI
    with attacked("F-24 log", stand) as hit:
        for request in ({"notes": evil}, {"env": {"A": evil}}, {"args": [evil]}, {"tags": [evil]},
                        {"name": evil}, {"systemId": evil}):
            hit.refused(ann.post("/v1/jobs", {"name": "log", "command": ["true"]} | request),
                        (201, 400, 404))
        named = ann.post("/v1/jobs", {"name": BIDI + "\u2028" + C1, "command": ["false"]})
        hit.refused(named, (201, 400))
        for path in ("/v1/jobs/" + quoted(evil), "/v1/queues/" + quoted(evil), "/" + quoted(evil)):
            hit.refused(ann.get(path), (400, 404))
        token, ann.token = ann.token, "x.y." + quoted(evil)
        hit.refused(ann.get("/v1/whoami", **{"User-Agent": ANSI, "Referer": ANSI}), (400, 401))
        ann.token = token
        hit.refused(ann.post("/v1/jobs", GOOD % b"", JSON | {"Idempotency-Key": "x" * 1000}), 400)
        with stand.site.amqp() as link:
            link.publish("sluice.submit", "sluice.acme.submit.default", evil.encode(), message_id=evil[:80])
        ann.wait_end(ann.submit("true", name="after"), 60)
        for process in stand.site.processes:
            for line in process.log_text().splitlines():
                plain = json.loads(line)
                hit.held(plain["event"] != "forged" and "\x1b" not in line and "\u202e" not in line
                         and "\u009b" not in line, line)


def test_nothing_is_repeated_in_a_header_that_could_end_it(stand, ann):
    split = b"a%0d%0aSet-Cookie: x=1"
    with attacked("F-24 headers", stand) as hit:
        for line in (b"X-Request-Id: " + split, b"X-Request-Id: a b", b"X-Request-Id: " + b"a" * 500,
                     b"X-Request-Id: <script>", b"traceparent: " + split, b"Origin: " + split,
                     b"X-Request-Id: a\rSet-Cookie: x=1", b"X-Request-Id: a\nSet-Cookie: x=1"):
            answer = answer_of(exchange(stand.web, head(b"/livez", line, b"Connection: close")))
            hit.held("Set-Cookie" not in answer.headers and answer.status in (0, 200, 400)
                     and answer.headers.get("X-Request-Id", "a") not in ("a b", "<script>"), answer)
        for target in (b"/%0d%0aSet-Cookie:x=1", b"/v1/queues/%0d%0aSet-Cookie:%20x", b"/ui/" + split):
            answer = answer_of(exchange(stand.web, head(target, b"Connection: close")))
            hit.held("Set-Cookie" not in answer.headers and answer.status in (0, 400, 401, 404), answer)
        location = ann.post("/v1/jobs", {"name": "x", "command": ["true"]}).headers["Location"]
        hit.held(location.startswith("/v1/jobs/"), location)


def test_a_terminal_gets_no_escapes_from_the_command(stand, ann, worker):
    texts = (ANSI, C1, BIDI)
    for text in texts:
        ann.post("/v1/jobs", {"name": "esc" + text, "command": ["false"], "notes": text, "tags": [text[:9]],
                              "env": {"A": text}}).expect(201, 400)
    jobs = [job["id"] for job in ann.get("/v1/jobs?limit=20").json["jobs"]]
    with attacked("F-24 terminal", stand) as hit:
        words = [["jobs"], ["jobs", "-o", "name"], ["submit", "--name", "x" + ANSI, "true"],
                 ["why", "x" + C1], ["job", ANSI], ["queues"], ["explain", ANSI], ["output", BIDI]]
        words += [[what, job] for job in jobs[:6] for what in ("job", "why")]
        for args in words:
            told = stand.site.run(*args, client=ann)
            text = told.stdout + told.stderr
            hit.held(not any(mark in text for mark in "\x1b\x07\u009b\u0090\u202e\u2066\u200f"),
                     f"{args}: {text!r}")


def test_markup_stays_text_and_the_page_takes_no_strangers_script(stand, ann, worker):
    job = ann.submit("sh", "-c", f"mkdir out; echo '{MARKUP}' | tee out/page.html",
                     name="<b>x<", notes=MARKUP, archive={"includes": ["out"]})
    ann.wait_end(job, 60)
    with attacked("F-24 page", stand) as hit:
        for path in (f"/v1/jobs/{job}", "/v1/jobs", f"/v1/jobs/{job}/why", f"/v1/jobs/{job}/events",
                     f"/v1/jobs/{job}/output/stdout", f"/v1/jobs/{job}/files",
                     f"/v1/jobs/{job}/files/out/page.html", f"/v1/queues/{quoted(MARKUP)}",
                     "/v1/jobs?" + quoted(MARKUP), "/v1/jobs?filter=" + quoted(MARKUP), "/" + quoted(MARKUP)):
            answer = ann.get(path, Accept="text/html")
            kind = answer.headers["Content-Type"]
            hit.held(kind in ("application/json", "application/problem+json", "application/octet-stream")
                     and answer.headers["X-Content-Type-Options"] == "nosniff", f"{path}: {kind}")
            policy = answer.headers["Content-Security-Policy"] or ""
            hit.held("default-src 'none'" in policy and "frame-ancestors 'none'" in policy,
                     f"{path}: no policy: {policy!r}")


def test_words_arrive_as_they_were_sent(stand, ann, worker):
    words = ["; touch /tmp/x", "$(id)", "`id`", "&& true", "| cat", "> /dev/null", "-rf", "--", "--help", "'",
             '"', "\\", "*", "~", "a\nb", "\r", "\t", "\u00fc\U0001f4a9", "", "$HOME", "%s%n", "#", "!!",
             "#SBATCH --wrap=x", "-oProxyCommand=id", "\x01\x7f"]
    with attacked("F-25 words", stand) as hit:
        job = ann.submit("printf", "%s\\0", *words)
        ann.wait_status(job, "FINISHED", timeout_s=60)
        got = ann.output(job).decode().split("\0")[:-1]
        for sent, arrived in zip(words, got, strict=True):
            hit.held(sent == arrived, (sent, arrived))
        stand.root.put("/v1/apps/words/1", {"command": ["printf", "%s\\0"]}).expect(201)
        job = ann.submit(appId="words", appVersion="1", args=words)
        ann.wait_status(job, "FINISHED", timeout_s=60)
        hit.held(ann.output(job).decode().split("\0")[:-1] == words, "args of an application")
        env = {f"V{at}": word for at, word in enumerate(words)}
        job = ann.submit("sh", "-c", "env -0 | sort -z", env=env)
        ann.wait_status(job, "FINISHED", timeout_s=60)
        seen = dict(item.split("=", 1) for item in ann.output(job).decode().split("\0")[:-1])
        for name, word in env.items():
            hit.held(seen[name] == word, name)
        for name in ("-rf", "--", "a;b", "$(id)"):
            job = ann.submit(name)
            hit.held(ann.wait_end(job, 60)["status"] == "FAILED", name)


def test_the_environment_of_a_job_is_the_jobs(stand, ann, worker):
    with attacked("F-25 environment", stand) as hit:
        for name in ("", "A=B", "A B", "1A", "A-B", "A\n", "A\u0000", "\u00dc", "SLUICE_FENCE",
                     "SLUICE_JOB_ID", "SLUICE_DB_PASSWORD", "A" * 129, "BASH_FUNC_x%%", "A;B"):
            hit.refused(ann.post("/v1/jobs", {"name": "x", "command": ["true"], "env": {name: "1"}}), 400)
        marks = {"LD_PRELOAD": "/nonexistent.so", "LD_LIBRARY_PATH": "/x", "LD_AUDIT": "/x.so",
                 "GCONV_PATH": "/x", "BASH_ENV": "/x", "IFS": "x", "PATH": "/bin:/usr/bin"}
        job = ann.submit("/bin/sh", "-c", "env; cat /proc/$PPID/environ | tr '\\0' '\\n' >&2", env=marks)
        ann.wait_end(job, 60)
        seen = ann.output(job).decode()
        hit.held("LD_PRELOAD=/nonexistent.so" in seen, "it is the job's own")
        above = ann.output(job, "stderr").decode()
        for name in ("LD_AUDIT", "GCONV_PATH", "BASH_ENV"):
            hit.held(f"{name}=/x" not in above, f"{name} reached our own process")
        password = stand.site.environment(program="sluice-worker")["SLUICE_DB_PASSWORD"]
        hit.held("SLUICE_DB" not in seen and "SLUICE_AMQP" not in seen and password not in seen,
                 "a job sees the settings of its worker")
        hit.held(worker.alive(), "the worker")
