# SPDX-License-Identifier: MIT
"""A site as docker/ deploys it: from no containers to a finished job, and every container restarted
in turn while jobs come in: nothing lost, nothing doubled."""

import collections
import glob
import os
import re
import shutil
import ssl
import threading

import pytest

from engine import HERE, ROOT, Engine, documented, run
from rest import Client, TERMINAL
from waiting import wait_until

URL = "http://127.0.0.1:8080"
SIDE = "/srv/side/runs"  # in a folder that all workers share: side.yml
OVERRIDE = "compose.override.yml"  # docker/up and docker-compose take it by themselves
PROJECT = "site"
OURS = ("web", "worker", "recovery", "alternate", "deadletter", "webhook")
SERVICES = OURS + ("rabbitmq", "db")
SYSTEM_CA = "/etc/ssl/certs/ca-certificates.crt"  # of the image: none of it has signed ours


class Deployment:
    """The containers of docker/compose.yml."""

    def __init__(self, engine, folder):
        self.engine, self.folder, self.token = engine, folder, None
        self.url, self.tls, self.files = URL, None, ["compose.yml", OVERRIDE]
        self.kept = None  # a job that ended early on
        shutil.copytree(f"{ROOT}/docker", folder, ignore=shutil.ignore_patterns("secrets"))
        shutil.copy(f"{HERE}/side.yml", f"{folder}/{OVERRIDE}")
        os.mkdir(f"{folder}/side")
        os.chmod(f"{folder}/side", 0o777)
        engine.environment |= {"COMPOSE_PROJECT_NAME": PROJECT, "SLUICE_IMAGE": "sluice:local"}

    def follow(self, blocks):
        """Blocks of a page, in a folder that has docker/ in it."""
        script = "".join(block.text for block in blocks)
        return run("bash", "-e", "-c", script.replace("SLUICE_TOKEN=...",
                                                      f"SLUICE_TOKEN={self.token}"),
                   env=self.engine.environment, cwd=os.path.dirname(self.folder))

    def up(self, page="README.md", marker="compose"):
        told = self.follow(documented(page, marker))
        self.token = re.search(r"^  token +(\S+)$", told, re.M)[1]
        return told

    def compose(self, *words, **options):
        files = [word for name in self.files for word in ("-f", f"{self.folder}/{name}")]
        return run("docker-compose", *files, *words, env=self.engine.environment, **options)

    def sluice(self, *words, **settings):
        """The command line in a container of its own."""
        settings = {"SLUICE_TOKEN": self.token} | settings
        given = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
        return self.compose("run", "--rm", "-T", *given, "cli", "sluice", *words)

    def wait_healthy(self):
        for service in SERVICES:
            for container in self.containers(service):
                wait_until(lambda at=container: f"{service} to be healthy: {self.told(at)}",
                           lambda at=container: self.healthy(at), 120, 0.5)

    def identities(self):
        return {service: set(self.containers(service)) for service in SERVICES}

    def containers(self, service):
        return self.compose("ps", "-q", service).split()

    def healthy(self, container):
        return self.engine.docker("inspect", "-f", "{{.State.Health.Status}}",
                                  container).strip() == "healthy"

    def told(self, container):
        """What the engine and the program say of it."""
        state = self.engine.docker("inspect", "-f", "{{json .State}}", container)
        return state + self.engine.docker("logs", "--tail", "20", container)

    def client(self):
        return Client(self.url, self.token, timeout_s=30, tls=self.tls)


class Load(threading.Thread):
    """Submits a job every fraction of a second until it is stopped; whatever a restart answers,
    it asks again with the same key."""

    def __init__(self, site, side=SIDE):
        super().__init__(daemon=True)
        self.side = side
        self.site, self.ids, self.refused = site, [], 0
        self.fault, self.ending = None, threading.Event()

    def run(self):
        try:
            while not self.ending.wait(0.05):
                self.ids.append(self._submit(f"job-{len(self.ids)}"))
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault

    def _submit(self, key):
        key = f"{os.path.basename(self.side)}-{key}"
        body = {"name": key,
                "command": ["sh", "-c", f"echo $SLUICE_JOB_ID >>{self.side}; sleep 0.2"]}

        def accepted():
            try:
                answer = self.site.client().call("POST", "/v1/jobs", body,
                                                 {"Idempotency-Key": key})
            except OSError:
                answer = None
            if answer is not None and answer.status in (200, 201):
                return answer.json["id"]
            assert answer is None or answer.status in (500, 502, 503, 504), answer
            self.refused += 1
            return None
        return wait_until(f"{key} to be taken", accepted, 120, 0.2)

    def stop(self):
        self.ending.set()
        self.join(150)
        assert self.fault is None, self.fault

    def wait_more(self, count):
        least = len(self.ids) + count
        wait_until(lambda: f"jobs to be taken {self.fault}", lambda: len(self.ids) >= least, 120)

    def finish(self):
        """All have ended, each after one run."""
        self.stop()
        site, client = self.site, self.site.client()
        assert len(set(self.ids)) == len(self.ids)

        def left():
            return [name for name in self.ids
                    if client.get(f"/v1/jobs/{name}").expect(200).json["status"] not in TERMINAL]
        wait_until(lambda: f"the rest to end: {left()[:5]}", lambda: not left(), 180, 1)
        jobs = [client.get(f"/v1/jobs/{name}").json for name in self.ids]
        states = collections.Counter(job["status"] for job in jobs)
        worker = site.containers("worker")[0]
        lines = collections.Counter(site.engine.docker("exec", worker, "cat", self.side).split())
        print(f"\n{len(jobs)} jobs {dict(states)}, refused and asked again {self.refused}, "
              f"ran twice {sum(count > 1 for count in lines.values())}")
        assert states == {"FINISHED": len(jobs)}
        assert lines == collections.Counter(self.ids), "each ran once"
        assert "no breach found" in site.sluice("audit")


@pytest.fixture(scope="module", name="site")
def deployed(tmp_path_factory):
    with Engine() as engine:
        engine.make_site_images()
        engine.isolate()
        made = Deployment(engine, str(tmp_path_factory.mktemp("site") / "docker"))
        try:
            yield made
        finally:
            if os.path.exists(f"{made.folder}/secrets/db_password"):
                print(made.compose("logs", "--tail", "20"))
                made.compose("down", "-v", "-t", "5", "--remove-orphans")


def test_from_nothing_to_a_finished_job(site):
    told = site.up()
    print(told[-1500:])
    assert "\nhello from sluice\n" in told
    answer = site.client().call("POST", "/v1/jobs?wait=30",
                                {"name": "port", "command": ["echo", "by the published port"]})
    job = answer.expect(200).json
    assert job["status"] == "FINISHED", job
    output = site.client().get(f"/v1/jobs/{job['id']}/output/stdout")
    assert output.body == b"by the published port\n"
    site.kept = job["id"]


def test_all_that_was_started_serves(site):
    site.wait_healthy()
    assert len(site.containers("worker")) == 2


def test_images_are_small_and_nobody_is_root(site):
    docker = site.engine.docker
    size = int(docker("inspect", "-f", "{{.Size}}", "sluice:local"))
    base = int(docker("inspect", "-f", "{{.Size}}", "debian:bookworm-slim"))
    print(f"\nimage sluice:local {size / 1e6:.0f} MB, {(size - base) / 1e6:.0f} MB over its base")
    assert size - base < 60e6
    for service in SERVICES[:5]:
        for container in site.containers(service):
            users = docker("top", container, "-eo", "uid,pid,args").splitlines()[1:]
            print("\n".join(f"{service:12}{line}" for line in users))
            assert users and not any(line.split()[0] == "0" for line in users), users
            read_only = docker("inspect", "-f", "{{.HostConfig.ReadonlyRootfs}}", container)
            assert read_only.strip() == "true"


def test_secrets_are_in_files_only(site):
    secrets = {}
    for name in ("db_password", "db_web", "db_worker", "db_recovery", "db_reader", "db_webhook",
                 "amqp_password"):
        with open(f"{site.folder}/secrets/{name}", encoding="ascii") as text:
            secrets[name] = text.read().strip()
        assert len(secrets[name]) == 48
    secrets["token"] = site.token
    for service in SERVICES:
        for container in site.containers(service):
            told = (site.engine.docker("inspect", container)
                    + site.engine.docker("top", container, "-eo", "pid,args"))
            assert not [name for name, value in secrets.items() if value in told], service
    logs = site.compose("logs")
    assert not [name for name, value in secrets.items() if value in logs]


def test_a_worker_has_no_secret_but_its_own(site):
    for container in site.containers("worker"):
        files = site.engine.docker("exec", container, "ls", "/run/secrets").split()
        assert files == ["amqp_password", "db_worker"], files


def test_a_job_reaches_no_secret_and_no_output_of_others(site):
    for command in (["cat", "/run/secrets/db_worker"], ["cat", "/run/secrets/amqp_password"],
                    ["ls", "/run/secrets"], ["ls", "/var/lib/sluice/archive"], ["touch", "/tmp/x"]):
        answer = site.client().call("POST", "/v1/jobs?wait=30",
                                    {"name": "reach", "command": command})
        job = answer.expect(200).json
        said = site.client().get(f"/v1/jobs/{job['id']}/output/stderr").body.decode()
        assert job["status"] == "FAILED" and "Permission denied" in said, (command, said)


def test_jobs_are_confined_and_the_filter_denies_new_namespaces(site):
    for container in site.containers("worker"):
        assert "worker.jobs.confined" in site.engine.docker("logs", container)
    for command in (["unshare", "--user", "true"], ["unshare", "--net", "true"], ["dmesg"]):
        answer = site.client().call("POST", "/v1/jobs?wait=30",
                                    {"name": "namespace", "command": command})
        job = answer.expect(200).json
        said = site.client().get(f"/v1/jobs/{job['id']}/output/stderr").body.decode()
        assert job["status"] == "FAILED" and "not permitted" in said, (command, said)


def test_more_workers(site):
    site.compose("up", "-d", "--scale", "worker=3")
    workers = wait_until("three workers", lambda: [
        found for found in [site.client().get("/v1/workers").expect(200).json["workers"]]
        if sum(one["state"] == "live" for one in found) == 3], 60)
    assert len({one["host"] for one in workers[0] if one["state"] == "live"}) == 3


def test_each_container_is_restarted_under_load(site):
    load = Load(site)
    load.start()
    for service in SERVICES:
        for container in site.containers(service):
            before = len(load.ids)
            site.engine.docker("restart", "-t", "45", container)
            wait_until(lambda at=container: f"{service} to be healthy: {site.told(at)}",
                       lambda at=container: site.healthy(at), 120, 0.5)
            wait_until(f"jobs to be taken after {service}",
                       lambda least=before: len(load.ids) > least + 5, 120)
    load.finish()


def test_the_doctor_finds_no_fault(site):
    print(site.sluice("doctor"))


def pages():
    found = glob.glob("docs/*.md", root_dir=ROOT) + ["docker/README.md"]
    return sorted(path for path in found if documented(path, "compose"))


@pytest.mark.parametrize("path", pages())
def test_the_commands_of_a_page_work(site, path):
    print(site.follow(documented(path, "compose")))


def test_the_commands_that_end_it_work(site):
    for path in pages():
        site.follow(documented(path, "compose-end"))
    assert not site.containers("worker")


# ---- the same site, as it is kept


def check_kept(site):
    """What was there before is there still, by the same token; and something new runs."""
    client = site.client()
    assert client.get(f"/v1/jobs/{site.kept}").expect(200).json["status"] == "FINISHED"
    assert client.get(f"/v1/jobs/{site.kept}/output/stdout").body == b"by the published port\n"
    job = client.call("POST", "/v1/jobs?wait=30", {"name": "new", "command": ["true"]})
    assert job.expect(200).json["status"] == "FINISHED", job


def test_what_was_taken_down_comes_back_with_its_jobs_output_and_keys(site):
    site.compose("up", "-d")
    site.wait_healthy()
    check_kept(site)


def test_up_again_makes_anew_only_what_a_change_concerns(site):
    before = site.identities()
    site.compose("up", "-d")
    assert site.identities() == before
    site.engine.environment["SLUICE_SLOTS"] = "6"
    site.compose("up", "-d")
    now = site.identities()
    assert {service for service in SERVICES if now[service] != before[service]} == {"worker"}
    assert len(now["worker"]) == 2 and not now["worker"] & before["worker"]
    site.engine.environment["SLUICE_WORKERS"] = "3"
    site.compose("up", "-d")
    more = site.identities()
    assert more["worker"] > now["worker"] and len(more["worker"]) == 3
    assert all(more[service] == now[service] for service in SERVICES if service != "worker")
    del site.engine.environment["SLUICE_WORKERS"]
    site.compose("up", "-d")
    assert len(site.containers("worker")) == 2
    site.wait_healthy()


def test_a_new_image_under_load_loses_and_doubles_nothing(site, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM sluice:local\nLABEL release=next\n")
    site.engine.build("sluice:next", f"{tmp_path}/Dockerfile", str(tmp_path))
    before = site.identities()
    load = Load(site, f"{SIDE}-next")
    load.start()
    load.wait_more(20)
    site.engine.environment["SLUICE_IMAGE"] = "sluice:next"
    site.compose("up", "-d")
    site.wait_healthy()
    load.wait_more(20)
    now = site.identities()
    assert {service for service in SERVICES if now[service] != before[service]} == set(OURS)
    load.finish()


def test_a_password_is_changed_as_the_page_says(site):
    before = open(f"{site.folder}/secrets/db_worker", encoding="ascii").read()
    site.follow(documented("docker/README.md", "compose-password"))
    assert open(f"{site.folder}/secrets/db_worker", encoding="ascii").read() != before
    site.wait_healthy()
    check_kept(site)


def trusting(ca):
    return ssl.create_default_context(cafile=ca)


def test_tls_is_turned_on_where_jobs_ran_without(site):
    site.files = ["compose.yml", "compose.tls.yml"]
    print(site.up("docker/README.md", "compose-tls")[-1500:])
    site.url, site.tls = URL.replace("http:", "https:"), trusting(f"{site.folder}/secrets/ca.pem")
    site.wait_healthy()
    check_kept(site)
    assert site.sluice("run", "--", "echo", "by", "https").endswith("by https\n")
    print(site.sluice("doctor"))


def test_a_certificate_of_another_ca_is_refused_on_all_legs(site):
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        Client(site.url, site.token, tls=trusting(SYSTEM_CA)).get("/v1/whoami")
    with pytest.raises(OSError):
        Client(URL, site.token).get("/v1/whoami")
    with pytest.raises(AssertionError, match="certificate"):
        site.sluice("jobs", SLUICE_CA=SYSTEM_CA)
    with pytest.raises(AssertionError, match=r"broker +fault[^\n]*verif"):
        site.sluice("doctor", SLUICE_AMQP_TLS_CA=SYSTEM_CA)
    with pytest.raises(AssertionError, match=r"database +fault[^\n]*certificate"):
        site.sluice("doctor", SLUICE_DB_TLS_CA=SYSTEM_CA)


def test_broker_and_database_take_nothing_in_the_clear(site):
    with pytest.raises(AssertionError, match="broker +fault"):
        site.sluice("doctor", SLUICE_AMQP_TLS_CA="", SLUICE_AMQP_PORT="5672")
    with pytest.raises(AssertionError, match="database +fault"):
        site.sluice("doctor", SLUICE_DB_TLS_CA="")
    links = site.compose("exec", "-T", "rabbitmq", "rabbitmqctl", "-q", "--no-table-headers",
                         "list_connections", "ssl").split()
    assert len(links) >= 5 and set(links) == {"true"}, links
