# SPDX-License-Identifier: MIT
"""Who somebody says he is: tokens that are forged, and what a good one of another tenant opens."""

import base64
import json
import os
import socket
import statistics
import subprocess
import threading
import time

import pytest

import tokens
from attacks import FULL, attacked
from sse import Stream
from waiting import wait_until

ISSUER, AUDIENCE = "https://issuer.example", "sluice"
NOBODY = "00000000-0000-7000-8000-000000000000"


def claims(**more):
    return tokens.claims("ann", ["user"], "acme", **more)


def call(stand, token, web=None, path="/v1/whoami"):
    client = stand.site.client(web or stand.web)
    client.token = token
    return client.get(path)


def refuse_all(row, stand, forged, statuses=401, web=None):  # statuses: as Hit.refused()
    """Every one of these tokens, cached or not."""
    with attacked(row, stand) as hit:
        for name, token in forged.items():
            for _ in range(2):
                answer = call(stand, token, web)
                assert answer.status in (401, 431), f"{row}, {name}: {answer!r}"
                hit.refused(answer, statuses, "SLUICE-1010" if answer.status == 401 else None)
                assert answer.status != 401 or answer.headers["WWW-Authenticate"], name


def raw(head, body, signature=b"x" * 256):
    """A token of these bytes; texts are taken as JSON already."""
    parts = [part.encode() if isinstance(part, str) else part for part in (head, body)]
    return ".".join([*map(tokens.b64, parts), tokens.b64(signature)])


def signed(key, head, body):
    """As raw(), with a signature that is right."""
    text = tokens.b64(head) + "." + tokens.b64(body)
    return text + "." + tokens.b64(key.sign(text.encode("ascii")))


@pytest.fixture(scope="module")
def key(stand):
    return stand.site.key


@pytest.fixture(scope="module")
def strange(stand):
    return tokens.Key(stand.site.path("private"), "strange")


@pytest.fixture(scope="module")
def strict(stand):
    """A web that asks for issuer and audience, and takes shared secrets."""
    path = stand.site.path("keys", "acme", "shared.hs256")
    with open(path, "wb") as out:
        out.write(b"0123456789abcdef0123456789abcdef")
    os.chmod(path, 0o600)
    return stand.site.web("strict", auth_issuer=ISSUER, auth_audience=AUDIENCE,
                          auth_allow_hs256="true", auth_cache_max=0)


def test_no_signature_is_no_token(stand, key):
    right = tokens.token(key, claims()).split(".")[2]
    forged = {}
    for alg in ("none", "None", "NONE", "nOnE", "", " none", "none\u0000"):
        forged[alg] = tokens.unsigned(claims(), alg, key.kid)
        forged[alg + " signed"] = tokens.unsigned(claims(), alg, key.kid) + right
    refuse_all("F-20 none", stand, forged)


def test_a_public_key_is_no_secret(stand, key):
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key.public,
                         capture_output=True, check=True).stdout
    forms = {"pem": key.public, "pem without end": key.public.rstrip(b"\n"), "der": der,
             "base64": b"".join(key.public.splitlines()[1:-1])}
    forged = {name: tokens.token(tokens.SharedSecret(key.kid, secret), claims())
              for name, secret in forms.items()}
    refuse_all("F-20 confusion", stand, forged)
    assert call(stand, tokens.token(key, claims())).status == 200


def test_the_algorithm_is_the_keys(stand, key, strict):
    algs = ("RS384", "RS512", "PS256", "ES256", "ES384", "HS256", "HS512", "EdDSA", "rs256",
            "RS256 ", ["RS256"], None, 256, {"a": "RS256"}, True)
    forged = {str(alg): tokens.token(key, claims(), alg=alg) for alg in algs}
    refuse_all("F-20 alg", stand, forged)
    shared = tokens.SharedSecret("shared", b"0123456789abcdef0123456789abcdef")
    good = claims(iss=ISSUER, aud=AUDIENCE)
    wait_until("the secret to count", lambda: call(
        stand, tokens.token(shared, good), strict).status == 200)
    refuse_all("F-20 alg", stand, {alg: tokens.token(shared, good, alg=alg)
                                   for alg in ("HS384", "HS512", "RS256", "none")}, web=strict)
    refuse_all("F-20 alg", stand, {"not allowed": tokens.token(shared, claims())})


def test_a_kid_names_a_key_and_nothing_else(stand, key):
    kids = ("../acme/k1", "k1.pem", "/etc/passwd", "../../../../../../etc/hostname", "k1\u0000",
            "k1/../k1", "http://127.0.0.1/k", "' OR '1'='1", "k1; DROP TABLE jobs", "|id", "k" * 500,
            "", " k1", "K1", "*", ["k1"], {"k": 1}, 1, True, "\u202ek1")
    refuse_all("F-20 kid", stand,
               {str(kid): tokens.token(key, claims(), kid=kid) for kid in kids})


def test_no_key_and_no_address_is_taken_from_a_header(stand, strange, key):
    asked = []
    listener = socket.create_server(("127.0.0.1", 0))

    def listen():
        while True:
            try:
                asked.append(listener.accept())
            except OSError:
                return
    threading.Thread(target=listen, daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/keys.json"
    jwk = {"kty": "oct", "k": tokens.b64(b"secret"), "kid": key.kid}
    forged = {}
    for name, value in (("jwk", jwk), ("jku", url), ("x5u", url), ("x5c", ["MIIB"])):
        wrong = tokens.SharedSecret(key.kid, b"secret")
        forged[name] = tokens.token(strange, claims(), kid=key.kid, **{name: value})
        forged[name + " secret"] = tokens.token(wrong, claims(), **{name: value})
    for crit in (["x"], ["exp"], ["b64"], [], "x", [1]):
        forged[f"crit {crit}"] = tokens.token(key, claims(), crit=crit, x=1, b64=False)
    refuse_all("F-20 header", stand, forged)
    listener.close()
    assert not asked, "something was fetched"


def test_a_token_counts_in_its_time(stand, key):
    now = int(time.time())
    wrong = {"exp": (now - 3600, 0, -1, None, "9999999999", str(now + 60), [now + 60], True, -1e300),
             "nbf": (now + 3600, 1e18, str(now), [0]), "iat": (now + 86400, "x")}
    forged = {f"{name} {value}": tokens.token(key, claims(**{name: value}))
              for name, values in wrong.items() for value in values}
    head = json.dumps({"alg": "RS256", "kid": key.kid}).encode()
    for text in (b"NaN", b"Infinity", b"1e999", b"99999999999999999999999"):
        body = json.dumps(claims(exp=7777)).encode().replace(b"7777", text)
        forged[f"exp {text}"] = signed(key, head, body)
    refuse_all("F-20 time", stand, forged)


def test_a_token_of_another_issuer_or_for_another_service(stand, key, strict):
    assert call(stand, tokens.token(key, claims(iss=ISSUER, aud=[AUDIENCE, "x"])), strict).status == 200
    wrong = [{}, {"iss": ISSUER}, {"aud": AUDIENCE}, {"iss": "x", "aud": AUDIENCE},
             {"iss": [ISSUER], "aud": AUDIENCE}, {"iss": ISSUER + "/", "aud": AUDIENCE},
             {"iss": ISSUER, "aud": "other"}, {"iss": ISSUER, "aud": ["a", "b"]},
             {"iss": ISSUER, "aud": []}, {"iss": ISSUER, "aud": {"a": AUDIENCE}},
             {"iss": ISSUER, "aud": AUDIENCE.upper()}]
    refuse_all("F-20 audience", stand,
               {str(more): tokens.token(key, claims(**more)) for more in wrong}, web=strict)


def test_a_key_is_good_for_its_tenant(stand, key, strange):
    stand.site.add_tenant("globex", strange)
    tenants = ("globex", "acme/../globex", "../keys/acme", "acme\u0000", "ACME", "", ".", "..", "a/b",
               ["acme"], {"t": "acme"}, 1, None, "a" * 64, "acme'--", "\u0430cme")
    forged = {str(name): tokens.token(key, tokens.claims("ann", ["admin"], name))
              for name in tenants}
    refuse_all("F-20 tenant", stand, forged)


def test_what_is_no_token_is_refused(stand, key):
    right = tokens.token(key, claims())
    head, body, signature = right.split(".")
    good_head = json.dumps({"alg": "RS256", "kid": key.kid}).encode()
    plain = json.dumps(claims()).encode()
    doubled = plain[:-1] + b', "tenant": "globex"}'
    forged = {
        "empty": "", "no token": "x", "dots": "." * 1000, "two parts": head + "." + body,
        "four parts": right + ".x", "blank": head + ". " + body + "." + signature,
        "padded": head + "=." + body + "." + signature, "plus": right.replace("A", "+", 1),
        "two tokens": right + " " + right, "comma": right + "," + right,
        "doubled claim": signed(key, good_head, doubled),
        "doubled alg": signed(key, good_head[:-1] + b', "alg": "none"}', plain),
        "not UTF-8": signed(key, good_head, plain.replace(b"ann", b"a\xff\xfe")),
        "NUL in sub": signed(key, good_head, plain.replace(b"ann", b"ann\\u0000root")),
        "surrogate": signed(key, good_head, plain.replace(b"ann", b"\\ud800")),
        "long sub": signed(key, good_head, plain.replace(b"ann", b"a" * 3000)),
        "empty sub": signed(key, good_head, plain.replace(b"ann", b"")),
        "list": signed(key, good_head, b"[1]"), "text": signed(key, good_head, b'"x"'),
        "deep": signed(key, good_head, b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        "trailing": signed(key, good_head, plain + b"x"), "cut": signed(key, good_head, plain[:-1]),
        "huge": "a" * 20000, "huge claims": raw(good_head, plain[:-1] + b',"x":"' + b"y" * 20000 + b'"}'),
    }
    refuse_all("F-20 shape", stand, forged, (401, 431))


def test_a_signature_is_whole_and_of_its_token(stand, key, strange):
    ec = tokens.Key(stand.site.path("private"), "curve", "ES256")
    stand.site.add_tenant("acme", ec)
    wait_until("the key", lambda: call(stand, tokens.token(ec, claims())).status == 200)
    right = tokens.token(key, claims())
    head, body, signature = right.split(".")
    curve = tokens.token(ec, claims()).rsplit(".", 1)[0] + "."
    other = tokens.token(key, claims(sub="bob")).split(".")[2]
    byte = bytearray(base64.urlsafe_b64decode(signature + "=="))
    byte[100] ^= 1
    wrong_kid = tokens.Key.__new__(tokens.Key)
    wrong_kid.__dict__ = dict(strange.__dict__, kid=key.kid)
    order = bytes.fromhex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
    forged = {
        "cut": right[:-4], "none": f"{head}.{body}.", "a byte more": right + "AAAA",
        "of another": f"{head}.{body}.{other}", "a bit": f"{head}.{body}.{tokens.b64(bytes(byte))}",
        "zeros": f"{head}.{body}.{tokens.b64(bytes(256))}",
        "other body": f"{head}.{tokens.b64(json.dumps(claims(sub='bob')).encode())}.{signature}",
        "other key": tokens.token(wrong_kid, claims()),
        "curve zeros": curve + tokens.b64(bytes(64)), "curve short": curve + tokens.b64(bytes(8)),
        "curve order": curve + tokens.b64(order + order),
        "curve one": curve + tokens.b64(bytes(31) + b"\1" + bytes(31) + b"\1"),
        "curve DER": curve + tokens.b64(b"\x30\x06\x02\x01\x00\x02\x01\x00"),
    }
    refuse_all("F-20 signature", stand, forged)


def test_a_key_that_is_removed_opens_nothing_any_more(stand):
    lost = tokens.Key(stand.site.path("private"), "lost")
    path = stand.site.add_tenant("acme", lost)
    token = tokens.token(lost, claims())
    wait_until("the key", lambda: call(stand, token).status == 200)
    with attacked("F-20 revoked", stand) as hit:
        os.unlink(path)
        wait_until("the key to be gone", lambda: call(stand, token).status == 401, 10)
        hit.refused(call(stand, token), 401, "SLUICE-1010")


def test_how_long_a_refusal_takes_tells_nothing(stand, strict):
    """The token's signature is compared as a whole: two groups, asked alternately."""
    good = claims(iss=ISSUER, aud=AUDIENCE)
    shared = tokens.SharedSecret("shared", b"0123456789abcdef0123456789abcdef")
    head, body, signature = tokens.token(shared, good).split(".")
    plain = base64.urlsafe_b64decode(signature + "=")
    first = bytes([plain[0] ^ 255]) + plain[1:]
    last = plain[:-1] + bytes([plain[-1] ^ 255])
    client = stand.site.client(strict, keep=True)

    def compare(hit):
        took = {first: [], last: []}
        for _ in range(1500 if FULL else 250):
            for wrong, times in took.items():
                client.token = f"{head}.{body}.{tokens.b64(wrong)}"
                began = time.perf_counter()
                answer = client.get("/v1/whoami")
                times.append(time.perf_counter() - began)
                hit.refused(answer, 401, "SLUICE-1010")
        one, other = (statistics.median(times) for times in took.values())
        print(f"wrong in the first byte {one * 1e6:.0f} us, in the last {other * 1e6:.0f} us")
        return 0.8 < one / other < 1.25
    with attacked("F-20 timing", stand) as hit:
        # What a signature tells it tells each time; other work on the machine does not.
        assert any(compare(hit) for _ in range(5))


# ---- F-21 ----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def ours(stand):
    """One of everything that has an id, all named so that it would be found."""
    root, ann = stand.root, stand.ann
    stand.site.worker(name="ours-worker")
    stand.site.reader("recovery")
    stand.site.reader("deadletter")
    stand.site.reader("webhook")
    root.put("/v1/subscriptions/ours-hook", {"url": "https://ours.invalid/hook"}).expect(201)
    wait_until("somebody to send",
               lambda: stand.site.count("webhook_sender", "holder IS NOT NULL") or None)
    root.put_queue("ours-queue", 77, "name = 'ours-never'").expect(201)
    root.put("/v1/apps/ours-app/1", {"command": ["true"]}).expect(201)
    root.put("/v1/systems/ours-system", {}).expect(201)
    root.post("/v1/systems/ours-system/disable").expect(200)
    root.put("/v1/quotas/ours-user", {"maxActive": 5}).expect(201)
    held = ann.submit("true", name="ours-held", systemId="ours-system")
    done = ann.submit("echo", "ours-output", name="ours-done")
    ann.wait_status(done, "FINISHED", timeout_s=60)
    ann.wait_status(held, "BLOCKED", timeout_s=60)
    with stand.site.amqp() as link:
        link.publish("sluice.submit", "sluice.acme.submit.default", b"ours-dead")
    dead = wait_until("the dead message", lambda: root.get("/v1/dead-messages").json["deadMessages"] or None,
                      60)[0]["id"]
    told = wait_until("a delivery", lambda: root.get("/v1/deliveries").json["deliveries"] or None, 60)
    ids = {
        "subscriptions": "ours-hook", "deliveries": told[0]["id"],
        "jobs": done, "queues": "ours-queue", "apps": "ours-app/1", "systems": "ours-system",
        "quotas": "ours-user", "workers": root.get("/v1/workers").json["workers"][0]["id"],
        "recovery": root.get("/v1/recovery").json["recovery"][0]["id"], "dead-messages": dead}
    return ids


@pytest.fixture(scope="module")
def eve(stand):
    """An administrator of another tenant."""
    return stand.site.stranger(stand.web)


def routes_with_ids(stand, ours):
    """(method, path, body) of every route of the contract that takes an id of ours."""
    for path, item in stand.root.get("/v1/openapi.json").expect(200).json["paths"].items():
        kind = path.split("/")[2].split(":")[0] if path.startswith("/v1/") else ""
        if "{" not in path or kind not in ours:
            continue
        head = f"/v1/{kind}/{ours[kind]}"
        tail = path.split("}", 2 if kind == "apps" else 1)[-1]
        tail = tail.replace("{stream}", "stdout").replace("{path}", "x")
        for method, operation in item.items():
            if method in ("get", "post", "delete") and not path.startswith("/v1/queues/{name}/check"):
                body = b'{"dryRun": true}' if tail == ":reroute" else b"{}"
                yield method.upper(), head + tail, body if "requestBody" in operation else None


def test_what_belongs_to_another_tenant_is_not_there(stand, ours, eve):
    routes = list(routes_with_ids(stand, ours))
    assert len(routes) >= 30, routes
    kinds = {path.split("/")[2] for _, path, _ in routes}
    assert kinds == set(ours), f"no route of {set(ours) - kinds} was asked"
    tables = ("jobs", "job_queues", "apps", "systems", "quotas", "subscriptions")
    before = [stand.site.count(table, "tenant = 'acme'") for table in tables]
    with attacked("F-21 routes", stand) as hit:
        for method, path, body in routes:
            answer = eve.call(method, path, body, {"Content-Type": "application/json"})
            hit.refused(answer, 404, "SLUICE-1020")
            assert "ours" not in answer.json["detail"].replace(path, "") or "ours" in path, answer
        ids = [ours["jobs"], stand.job]
        answer = eve.post("/v1/jobs:cancel", {"ids": ids}).expect(200)
        hit.held({item["problem"]["status"] for item in answer.json["failures"]} == {404}, answer)
    assert before == [stand.site.count(table, "tenant = 'acme'") for table in tables]
    wait_until("its rows", lambda: stand.site.count("audit_log", "status = 404 AND actor = 'eve'") > 0)


def test_no_list_shows_what_is_another_tenants(stand, ours, eve):
    lists = [path for path, item in stand.root.get("/v1/openapi.json").json["paths"].items()
             if "get" in item and "{" not in path and path.startswith("/v1/")
             and path not in ("/v1/openapi.json", "/v1/events", "/v1/audit")]
    lists += ["/v1/jobs?filter=name+LIKE+%27ours%25%27", "/v1/jobs?owner=ann", "/v1/jobs?hidden",
              "/v1/jobs?filter=tenant+%3D+%27acme%27", "/v1/dead-messages?state=all",
              "/v1/audit?actor=root"]
    with attacked("F-21 lists", stand) as hit:
        for path in lists:
            answer = eve.get(path)
            text = answer.body.replace(b"tenant = 'acme'", b"")
            hit.held(answer.status in (200, 400) and b"ours" not in text and b"acme" not in text
                     and ours["jobs"].encode() not in text, f"{path}: {answer!r}")
        for row in eve.get("/v1/audit?limit=500").expect(200).json["audit"]:
            hit.held(row["actor"] == "eve", row)
    assert "ours-done" in str(stand.root.get("/v1/jobs?name=ours-done").json)


def test_headers_make_nobody_another(stand, ours, eve):
    claimed = {"X-Tenant": "acme", "X-Tenant-Id": "acme", "Tenant": "acme", "X-User": "root",
               "X-Forwarded-User": "root", "X-Remote-User": "root", "X-Roles": "admin",
               "X-Original-URL": "/v1/whoami", "X-Rewrite-URL": f"/v1/jobs/{ours['jobs']}",
               "X-HTTP-Method-Override": "DELETE", "Cookie": "tenant=acme; token=x",
               "Forwarded": "for=127.0.0.1;host=acme", "X-Forwarded-For": "127.0.0.1"}
    with attacked("F-21 header", stand) as hit:
        for name, value in claimed.items():
            me = eve.get("/v1/whoami", **{name: value}).expect(200).json
            hit.held((me["tenant"], me["user"]) == ("other", "eve"), name)
            hit.refused(eve.get(f"/v1/jobs/{ours['jobs']}", **{name: value}), 404)


def test_a_role_is_one_of_ours_in_our_spelling(stand, key):
    shapes = ("Admin", "ADMIN", "admin\u0000", "admin,user", "admin\n", "root", "*", "",
              {"admin": True}, [["admin"]], [{"name": "admin"}], 3, True, None, ["viewer", "ADMIN"],
              ["viewer", 7], "\u0430dmin", "viewer\u00a0admin")
    with attacked("F-21 roles", stand) as hit:
        for shape in shapes:
            client = stand.site.client(stand.web)
            client.token = tokens.token(key, tokens.claims("ann", shape, "acme"))
            answer = client.put_queue("stolen", 5)
            hit.refused(answer, (401, 403))
    assert stand.root.get("/v1/queues/stolen").status == 404


def test_the_jobs_of_another_user_are_not_acted_on(stand, ours):
    bob = stand.site.client(stand.web, "bob")
    with attacked("F-21 users", stand) as hit:
        for act in ("cancel", "resubmit", "hide", "unhide"):
            hit.refused(bob.post(f"/v1/jobs/{stand.job}/{act}"), 403, "SLUICE-1011")
        answer = bob.post("/v1/jobs:cancel", {"ids": [stand.job, ours["jobs"]]})
        hit.held({item["problem"]["status"] for item in answer.expect(200).json["failures"]} == {403}
                 and answer.json["cancelled"] + answer.json["asked"] == 0, answer)
        mine = bob.post("/v1/jobs", {"name": "x", "command": ["true"], "owner": "ann"})
        hit.refused(mine, 400, "SLUICE-1003")


def test_a_cursor_is_good_for_whom_it_was_made(stand, eve, ours):
    path = "/v1/jobs?limit=1"
    cursor = stand.ann.get(path).expect(200).json["nextCursor"]
    plain = base64.urlsafe_b64decode(cursor)
    forged = [cursor[:-1], cursor + "A", cursor.lower(), "", "x", "A" * 44, "%00", "' OR 1=1 --",
              base64.urlsafe_b64encode(plain[:17] + bytes(16)).decode(), "A" * 5000]
    forged += [base64.urlsafe_b64encode(plain[:at] + bytes([plain[at] ^ 1]) + plain[at + 1:]).decode()
               for at in range(0, 33, 4)]
    with attacked("F-21 cursors", stand) as hit:
        for text in forged:
            quoted = text.replace(" ", "+").replace("'", "%27")
            hit.refused(stand.ann.get(f"{path}&cursor={quoted}"), 400)
        hit.refused(eve.get(f"{path}&cursor={cursor}"), 400, "SLUICE-1005")
        hit.refused(stand.ann.get(f"{path}&status=RUNNING&cursor={cursor}"), 400, "SLUICE-1005")
        hit.refused(stand.ann.get(f"/v1/jobs?limit=1&orderBy=-created&cursor={cursor}"), 400)
        for route in ("/v1/dead-messages", "/v1/audit", f"/v1/recovery/{ours['recovery']}"):
            hit.refused(stand.root.get(f"{route}?limit=1&cursor={cursor}"), 400, "SLUICE-1005")


def test_an_id_of_an_event_opens_no_other_history(stand, eve):
    newest = int(stand.site.sql("SELECT MAX(seq) FROM job_events")[0][0])
    with attacked("F-21 events", stand) as hit:
        for text in ("-1", "x", "1e3", "0x10", "' OR 1", "99999999999999999999", "1 2", "\u0661"):
            answer = eve.get("/v1/events", **{"Last-Event-ID": text.encode()})
            hit.refused(answer, 400)
        for last in (0, 1, newest // 2, newest - 1):
            with_stream = Stream(eve, last=last)
            event = with_stream.next(0.7)
            with_stream.close()
            hit.held(event is None, f"after {last}: {event}")
        follow = eve.get(f"/v1/jobs/{stand.job}/output/stdout?follow", **{"Last-Event-ID": "0"})
        hit.refused(follow, 404)


def test_a_key_of_another_finds_nothing_of_his(stand, eve):
    request = {"name": "keyed", "command": ["true"]}
    head = {"Idempotency-Key": "the-same"}
    first = stand.ann.post("/v1/jobs", request, head).expect(201).json["id"]
    bob = stand.site.client(stand.web, "bob")
    with attacked("F-21 keys", stand) as hit:
        for other in (eve, bob):
            answer = other.post("/v1/jobs", request, head)
            hit.held(answer.status == 201 and answer.json["id"] != first
                     and answer.json["owner"] != "ann", answer)
    assert stand.ann.post("/v1/jobs", request, head).json["id"] == first
