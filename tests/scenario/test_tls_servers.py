# SPDX-License-Identifier: MIT
"""TLS to the broker and to the database, from every program: whom they trust, and what they say of
servers that they do not. The broker wants a certificate of ours as well."""

import json
import os
import shlex

import pytest

from certificates import Authority
from rest import Client
from servers import USER, Servers, free_port
from sluice import Site
from waiting import wait_until


class Secured(Site):
    """Every program speaks TLS to both servers; `trust` can be changed for one start."""

    def __init__(self, servers, trust):
        self.trust = trust
        super().__init__(servers)

    def environment(self, **settings):
        return super().environment(**(self.trust | settings))


@pytest.fixture(scope="module")
def cas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ca")
    return Authority(str(folder / "own")), Authority(str(folder / "foreign"), "Another CA")


@pytest.fixture(scope="module")
def secured(cas):
    ca, _ = cas
    cert, key = ca.issue("server")
    mine, my_key = ca.issue("sluice", names="", purpose="clientAuth")
    port = free_port()
    config = {"listeners.ssl.1": f"127.0.0.1:{port}", "ssl_options.cacertfile": ca.ca,
              "ssl_options.certfile": cert, "ssl_options.keyfile": key,
              "ssl_options.verify": "verify_peer", "ssl_options.fail_if_no_peer_cert": "true"}
    options = [f"--ssl-ca={ca.ca}", f"--ssl-cert={cert}", f"--ssl-key={key}"]
    with Servers(config=config, mariadb_options=options) as servers:
        servers.mariadb.sql(f"ALTER USER '{USER}'@'%' REQUIRE SSL")
        trust = {"db_tls_ca": ca.ca, "amqp_port": port, "amqp_tls_ca": ca.ca,
                 "amqp_tls_cert": mine, "amqp_tls_key": my_key}
        with Secured(servers, trust) as made:
            yield made


def start_all(site):
    web = site.web()
    site.worker()
    site.reader("recovery")
    site.reader("alternate")
    site.reader("deadletter")
    return site.client(web)


def test_every_program_does_its_work_over_tls(secured):
    ann = start_all(secured)
    jobs = [ann.submit("echo", str(which)) for which in range(40)]
    for which, job in enumerate(jobs):
        assert ann.wait_end(job)["status"] == "FINISHED"
        assert ann.output(job) == f"{which}\n".encode()
    text = secured.servers.rabbitmq.ctl("--no-table-headers", "list_connections", "name", "ssl")
    links = [line.split("\t")[1] for line in text.splitlines() if "\t" in line]
    assert len(links) >= 8 and set(links) == {"true"}, text


def test_much_at_once_passes_through_one_tls_connection(secured):
    """Records of TLS that hold many frames: none waits in a buffer that nobody looks at."""
    if not secured.processes:
        start_all(secured)
    ann = secured.client(secured.processes[0])
    secured.worker(name="wide", slots=24)
    jobs = []
    for _ in range(3):
        batch = [{"name": "many", "command": ["true"]} for _ in range(100)]
        answer = ann.post("/v1/jobs:batch", {"jobs": batch}).expect(200, 201, 207)
        jobs += [item["job"]["id"] for item in answer.json["items"]]
    wait_until("the jobs", lambda: secured.count("jobs", "status = 'FINISHED'") >= len(jobs), 60)
    assert secured.count("jobs", "status = 'FAILED'") == 0


def test_the_doctor_looks_at_both_servers_over_tls(secured):
    if not secured.processes:
        start_all(secured)
    found = json.loads(secured.run("doctor", "-o", "json").stdout)
    broker = [one for one in found if one["check"] in ("broker", "database")]
    assert broker and {one["result"] for one in broker} == {"ok"}, broker


def documented(start, end):
    """What docs/security.md has between these words: the first of it."""
    path = os.path.join(os.path.dirname(__file__), "../../docs/security.md")
    with open(path, encoding="utf-8") as page:
        return page.read().split(start, 1)[1].split(end, 1)[0]


def test_accounts_with_no_more_than_the_documentation_gives_them_will_do(secured):
    """The statements of docs/security.md, on a schema and a virtual host of their own."""
    sql = documented("```sql", "```").replace("sluice.*", "least.*").replace("'sluice", "'least")
    secured.servers.mariadb.sql("CREATE DATABASE least CHARACTER SET utf8mb4;" + sql)
    words = shlex.split(documented("rabbitmqctl set_permissions -p sluice sluice", "\n"))
    secured.servers.rabbitmq.ctl("add_vhost", "least")
    secured.servers.rabbitmq.ctl("add_user", "least", "PASSWORD")
    secured.servers.rabbitmq.ctl("set_permissions", "-p", "least", "least", *words)
    own = {"db_name": "least", "db_password": "PASSWORD", "amqp_user": "least",
           "amqp_password": "PASSWORD", "amqp_vhost": "least", "worker_work_root": secured.path("w")}
    refused = secured.run("migrate", **(own | {"db_user": "least_web"}))
    assert refused.returncode != 0 and "denied" in refused.stderr, refused.stderr
    owner = own | {"db_user": "least_migrate"}
    for command in (("migrate",), ("grants", "--apply", "--prefix", "least_")):
        made = secured.run(*command, **owner)
        assert made.returncode == 0, made.stderr
    ann = secured.client(secured.web("least-web", **(own | {"db_user": "least_web"})))
    secured.worker(name="least-1", **(own | {"db_user": "least_worker"}))
    for kind in ("recovery", "alternate", "deadletter", "webhook"):
        account = {"recovery": "recovery", "webhook": "webhook"}.get(kind, "reader")
        secured.reader(kind, f"least-{kind}", **(own | {"db_user": f"least_{account}"}))
    own = owner
    assert ann.wait_end(ann.submit("true"))["status"] == "FINISHED"
    wait_until("its tenant to be led", lambda: secured.run("doctor", **own).returncode == 0, 30, 1)
    assert secured.run("audit", **own).returncode == 0
    ann.accepted.clear()  # they are in a schema that goes with the servers


def waiting(site, name, **settings):
    """Why a web process with these settings does not reach the broker."""
    web = site.web(name, wait=False, **settings)
    said = web.wait_log("bus.connect.waiting", 20)
    web.stop()
    return json.loads(said)["reason"]


def test_a_broker_that_cannot_be_trusted_is_refused_with_the_cure(secured, cas):
    _, foreign = cas
    said = waiting(secured, "foreign", amqp_tls_ca=foreign.ca)
    assert "verification failed" in said and "amqp.tls_ca must hold" in said, said
    said = waiting(secured, "nobody", amqp_tls_ca="/nonexistent/ca.pem")
    assert "amqp.tls_ca = /nonexistent/ca.pem" in said, said
    said = waiting(secured, "named", amqp_host="127.1")  # the same address, and not its name
    assert "verification failed" in said and "must name this host" in said, said


def test_of_several_nodes_each_is_checked_by_its_own_name(secured):
    web = secured.web("nodes", amqp_host="127.1, 127.0.0.1")  # ready: one of them was good enough
    assert "127.1" not in {one["host"] for one in web.log_events("bus.connected")}
    web.stop()


def test_a_broker_that_speaks_no_tls_and_one_that_speaks_nothing_else(secured):
    plain = secured.servers.environment()["SLUICE_TEST_AMQP_PORT"]
    said = waiting(secured, "plain", amqp_port=plain)
    assert "5671" in said, said
    assert waiting(secured, "reverse", amqp_tls_ca="", amqp_tls_cert="", amqp_tls_key="")
    assert waiting(secured, "without", amqp_tls_cert="", amqp_tls_key="")


def test_a_database_that_cannot_be_trusted_is_refused(secured, cas):
    _, foreign = cas
    done = secured.run("migrate", db_tls_ca=foreign.ca)
    assert done.returncode != 0 and "certificate" in done.stderr, done.stderr
    done = secured.run("migrate", db_tls_ca="")
    assert done.returncode != 0, done.stderr  # the user is one that must use TLS
    web = secured.web("no-db", wait=False, db_tls_ca=foreign.ca)
    web.wait_log("web.listening")
    said = Client(web.url).get("/readyz").expect(503).json["reasons"]["database"]
    assert said == "down: the log of this process has the reason"
    said = str(web.wait_log("web.database.away"))
    assert "certificate" in said and "db.tls_ca must hold" in said, said
    web.stop()
