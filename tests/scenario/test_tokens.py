# SPDX-License-Identifier: MIT
"""Who gets in: the algorithm is the key's, the key is the tenant's, the role decides the rest."""

import pytest

import tokens
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
