# SPDX-License-Identifier: MIT
"""Who gets in: the algorithm is the key's, the key is the tenant's, the role decides the rest."""

import json
import os
import socket
import subprocess
import time

import pytest

import tokens
from sse import Stream
from waiting import wait_until


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def strange(site):
    return tokens.Key(site.path("private"), "strange")


def call(site, web, token, path="/v1/whoami"):
    client = site.client(web)
    client.token = token
    return client.get(path)


def good(**more):
    return tokens.claims("ann", ["user"], "acme", **more)


def test_a_good_token_is_let_in_and_told_who_it_is(site, web):
    me = call(site, web, tokens.token(site.key, good())).expect(200).json
    assert me["user"] == "ann" and me["tenant"] == "acme" and "user" in str(me["roles"])


def bad_tokens(site, strange):
    wrong_kid = tokens.Key.__new__(tokens.Key)
    wrong_kid.__dict__ = dict(strange.__dict__, kid=site.key.kid)
    public_as_secret = tokens.SharedSecret(site.key.kid, site.key.public)
    right = tokens.token(site.key, good())
    head, body, signature = right.split(".")
    return {
        "none": None,
        "empty": "",
        "no token": "x",
        "many dots": "." * 1000,
        "huge": "a" * 20000,
        "expired": tokens.token(site.key, good(exp=1_000_000_000)),
        "not yet": tokens.token(site.key, good(nbf=4_000_000_000)),
        "no exp": tokens.token(site.key, good(exp=None)),
        "no sub": tokens.token(site.key, good(sub=None)),
        "no tenant": tokens.token(site.key, good(tenant=None)),
        "wrong key": tokens.token(wrong_kid, good()),
        "unknown kid": tokens.token(strange, good()),
        "kid is a path": tokens.token(site.key, good(), kid="../acme/k1"),
        "alg none": tokens.unsigned(good(), kid=site.key.kid),
        "alg None": tokens.unsigned(good(), alg="None", kid=site.key.kid),
        "hs256 with the public key": tokens.token(public_as_secret, good()),
        "other alg": tokens.token(site.key, good(), alg="RS512"),
        "unknown crit": tokens.token(site.key, good(), crit=["x"], x=1),
        "changed body": f"{head}.{tokens.b64(b'{}')}.{signature}",
        "cut signature": f"{head}.{body}.{signature[:-4]}",
        "no signature": f"{head}.{body}.",
    }


def test_every_bad_token_is_401_with_one_code(site, web, strange):
    for name, token in bad_tokens(site, strange).items():
        answer = call(site, web, token)
        assert answer.status in (401, 431), f"{name}: {answer!r}"
        if answer.status == 401:
            assert answer.problem(401)["code"] == "SLUICE-1010", name
            assert answer.headers["WWW-Authenticate"].startswith("Bearer"), name


def test_a_tenant_cannot_use_the_key_of_another(site, web):
    other = tokens.Key(site.path("private"), "k1-other")
    site.add_tenant("globex", other)
    call(site, web, tokens.token(other, tokens.claims("zoe", ["user"], "acme"))).problem(401)
    wait_until("the new tenant's key to count", lambda: call(
        site, web, tokens.token(other, tokens.claims("zoe", ["user"], "globex"))).status == 200)


def test_a_job_of_another_tenant_is_404(site, web):
    job = site.client(web).submit("true")
    key = tokens.Key(site.path("private"), "initech")
    site.add_tenant("initech", key)
    theirs = site.client(web)
    theirs.token = tokens.token(key, tokens.claims("root", ["admin"], "initech"))
    wait_until("the key", lambda: theirs.get("/v1/whoami").status == 200)
    for method, path in (("GET", ""), ("GET", "/events"), ("GET", "/output/stdout"),
                         ("POST", "/cancel"), ("POST", "/resubmit"), ("POST", "/hide")):
        theirs.call(method, f"/v1/jobs/{job}{path}").problem(404)
    assert site.job_row(job, "status") == ["PENDING"]


@pytest.mark.parametrize("role,status", [
    ("viewer", 403), ("user", 201), ("operator", 201), ("admin", 201), ("nobody", 403)])
def test_the_role_decides_who_submits(site, web, role, status):
    answer = site.client(web, "rob", role).post("/v1/jobs", {"name": "r", "command": ["true"]})
    answer.expect(status)


ROLES = ["viewer", "user", "operator", "admin"]
NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.mark.parametrize("role", [None] + ROLES)
def test_every_route_is_open_to_the_roles_that_the_contract_names(site, web, role):
    client = site.client(web, "rob", role or "x")
    if role is None:
        client.token = None
    for path, item in client.get("/v1/openapi.json").expect(200).json["paths"].items():
        for name in ("{id}", "{name}", "{stream}", "{path}", "{version}"):
            path = path.replace(name, {"{stream}": "stdout", "{id}": NOBODY}.get(name, "none"))
        for method, operation in item.items():
            if method == "parameters":  # of all methods
                continue
            body = b"{}" if "requestBody" in operation else None
            answer = client.call(method.upper(), path, body, {"Content-Type": "application/json"})
            if "x-role" not in operation:
                answer.expect(404 if "{" in path else 200)  # a file of the page
            elif role is None:
                answer.problem(401)
            elif ROLES.index(role) < ROLES.index(operation["x-role"]):
                answer.problem(403)
            else:
                assert answer.status not in (401, 403), (method, path, answer)


def test_a_user_acts_on_own_jobs_only(site, web):
    job = site.client(web, "ann").submit("true")
    site.client(web, "bob", "viewer").get(f"/v1/jobs/{job}").expect(200)
    site.client(web, "bob", "user").cancel(job).problem(403)
    site.client(web, "bob", "operator").cancel(job).expect(200, 202)


@pytest.mark.parametrize("alg", ["RS256", "ES256"])
def test_a_key_rotated_by_kid_counts_without_a_restart(site, web, alg):
    new = tokens.Key(site.path("private"), f"rotated-{alg.lower()}", alg)
    mine = tokens.token(new, good())
    call(site, web, mine).problem(401)
    site.add_tenant("acme", new)
    wait_until("the new key to count", lambda: call(site, web, mine).status == 200, 10)
    call(site, web, tokens.token(site.key, good())).expect(200)


def test_the_token_command_makes_tokens_that_work(site, web):
    done = site.run("token", "--user", "tom", "--role", "user", "--tenant", "acme",
                    "--kid", site.key.kid, "--key", site.key.path)
    assert done.returncode == 0, done
    me = call(site, web, done.stdout.strip()).expect(200).json
    assert me["user"] == "tom" and me["tenant"] == "acme"


def leaked(site, web, name, tenant="acme"):
    """A key that will be removed: (path of its file, a client whose token it signs)."""
    key = tokens.Key(site.path("private"), name)
    path, client = site.add_tenant(tenant, key), site.client(web)
    client.token = tokens.token(key, tokens.claims("ann", ["user"], tenant))
    wait_until("the key to count", lambda: client.get("/v1/whoami").status == 200)
    return path, client


def test_a_removed_key_is_refused_beside_more_files_than_are_read(site, web):
    path, client = leaked(site, web, "leaked", "crowded")
    _, kept = leaked(site, web, "kept", "crowded")
    for number in range(130):
        with open(os.path.join(os.path.dirname(path), f"junk-{number}.pem"), "w", encoding="ascii") as out:
            out.write("junk")

    def keys():
        return client.get("/readyz").expect(200).json["reasons"]["keys"]

    wait_until("the folder to be too full", lambda: client.get("/v1/whoami").status and keys() != "up")
    assert "crowded" not in keys()
    assert "\nsluice_auth_folders_refused 1\n" in client.get("/metrics").body.decode()
    assert "crowded" in web.wait_log("auth.key.refused")
    os.unlink(path)
    wait_until("the key to be gone", lambda: client.get("/v1/whoami").status == 401, 15)
    kept.get("/v1/whoami").expect(200)
    for number in range(130):
        os.unlink(os.path.join(os.path.dirname(path), f"junk-{number}.pem"))
    wait_until("the folder to be read", lambda: kept.get("/v1/whoami").status and keys() == "up")
    kept.get("/v1/whoami").expect(200)
    client.get("/v1/whoami").problem(401)


def streams(site, web, job, token):
    """Both kinds, begun."""
    client = site.client(web)
    client.token = token
    output = Stream(client, f"/v1/jobs/{job}/output/stdout?follow")
    wait_until("output", lambda: output.drain(0.2) or output.bytes)
    return Stream(client).begun(), output


@pytest.fixture(scope="module")
def running(site, web):
    """A job that says something twice a second, for as long as the tests of streams take."""
    site.worker()
    ann = site.client(web)
    job = ann.submit("sh", "-c", "while :; do echo x; sleep 0.5; done", maxSeconds=600)
    ann.wait_status(job, "RUNNING")
    yield job
    ann.cancel(job)


def test_streams_end_with_their_key(site, web, running):
    path, client = leaked(site, web, "streamed")
    events, output = streams(site, web, running, client.token)
    others = streams(site, web, running, site.token())
    os.unlink(path)
    last = events.until(lambda event: event.name == "dropped", 30)[-1]
    assert last.data["reason"] == "the key of the token was removed"
    wait_until("both streams to end", lambda: events.drain(0.1) and output.drain(0.1), 30)
    assert not any(stream.drain(0.1) for stream in others)


def test_streams_end_with_their_token_and_its_leeway(site, running):
    brief = site.web("brief", auth_leeway_s=5)
    late = tokens.token(site.key, good(exp=int(time.time()) - 1))  # lives by leeway
    events, output = streams(site, brief, running, late)
    last = events.until(lambda event: event.name == "dropped", 30)[-1]
    assert last.data["reason"] == "the token has expired"
    assert int(time.time()) >= json.loads(tokens.unb64(late.split(".")[1]))["exp"] + 5  # and not before
    wait_until("both streams to end", lambda: events.drain(0.1) and output.drain(0.1), 30)


def test_the_command_sends_the_profiles_token_to_the_profiles_address_only(site, web):
    folder = site.path("profile")
    os.makedirs(os.path.join(folder, "sluice"))
    secret = site.token("ann")
    trap = socket.create_server(("127.0.0.1", 0))
    trap.settimeout(1)
    other = f"http://127.0.0.1:{trap.getsockname()[1]}"

    def run(url, **env):
        with open(os.path.join(folder, "sluice", "profile.json"), "w", encoding="utf-8") as out:
            json.dump({"url": web.url, "token": secret, "tenant": "acme"}, out)
        env = site.environment() | {"XDG_CONFIG_HOME": folder} | env | ({"SLUICE_URL": url} if url else {})
        return subprocess.run([os.path.join(site.programs, "sluice"), "jobs"], env=env, timeout=60,
                              capture_output=True, text=True, check=False)

    own = web.url.replace("http://", "HTTP://") + "/"
    assert run(None).returncode == 0 and run(web.url).returncode == 0 and run(own).returncode == 0
    for url in (other, other.replace("127.0.0.1", "localhost"), web.url.replace("http:", "https:"),
                web.url.replace("127.0.0.1", "127.0.0.2"), web.url + ".example.org",
                f"{web.url.replace('http://', 'http://x@')}@{other[7:]}", web.url.rsplit(":", 1)[0]):
        done = run(url, SLUICE_CLIENT_TIMEOUT_MS="1000")
        assert done.returncode == 2 and "SLUICE_TOKEN" in done.stderr and url in done.stderr, done
        assert secret not in done.stderr
    with pytest.raises(TimeoutError):
        trap.accept()
    assert run(web.url.replace("127.0.0.1", "localhost"), SLUICE_TOKEN=secret).returncode == 0
    trap.close()
