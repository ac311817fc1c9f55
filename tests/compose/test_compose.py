# SPDX-License-Identifier: MIT
"""A site as docker/ deploys it: from no containers to a finished job, and every container restarted
in turn while jobs come in: nothing lost, nothing doubled."""

import collections
import glob
import os
import re
import shutil
import threading

import pytest

from engine import ROOT, Engine, documented, run
from rest import Client, TERMINAL
from waiting import wait_until

URL = "http://127.0.0.1:8080"
SIDE = "/var/lib/sluice/archive/side"  # a volume that all workers share
PROJECT = "site"
SERVICES = ("web", "worker", "recovery", "alternate", "deadletter", "webhook", "rabbitmq", "db")


class Deployment:
    """The containers of docker/compose.yml."""

    def __init__(self, engine, folder):
        self.engine, self.folder, self.token = engine, folder, None
        shutil.copytree(f"{ROOT}/docker", folder, ignore=shutil.ignore_patterns("secrets"))
        engine.environment |= {"COMPOSE_PROJECT_NAME": PROJECT, "SLUICE_IMAGE": "sluice:local"}

    def follow(self, blocks):
        """Blocks of a page, in a folder that has docker/ in it."""
        script = "".join(block.text for block in blocks)
        return run("bash", "-e", "-c", script.replace("SLUICE_TOKEN=...",
                                                      f"SLUICE_TOKEN={self.token}"),
                   env=self.engine.environment, cwd=os.path.dirname(self.folder))

    def up(self):
        told = self.follow(documented("README.md", "compose"))
        self.token = re.search(r"^  token +(\S+)$", told, re.M)[1]
        return told

    def compose(self, *words, **options):
        return run("docker-compose", "-f", f"{self.folder}/compose.yml", *words,
                   env=self.engine.environment, **options)

    def sluice(self, *words):
        """The command line in a container of its own."""
        return self.compose("run", "--rm", "-T", "-e", f"SLUICE_TOKEN={self.token}", "cli",
                            "sluice", *words)

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
        return Client(URL, self.token, timeout_s=30)


class Load(threading.Thread):
    """Submits a job every fraction of a second until it is stopped; whatever a restart answers,
    it asks again with the same key."""

    def __init__(self, site):
        super().__init__(daemon=True)
        self.site, self.ids, self.refused = site, [], 0
        self.fault, self.ending = None, threading.Event()

    def run(self):
        try:
            while not self.ending.wait(0.05):
                self.ids.append(self._submit(f"job-{len(self.ids)}"))
        except BaseException as fault:  # pylint: disable=broad-except
            self.fault = fault

    def _submit(self, key):
        body = {"name": key, "command": ["sh", "-c", f"echo $SLUICE_JOB_ID >>{SIDE}; sleep 0.2"]}

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
                made.compose("down", "-v", "-t", "5")


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


def test_all_that_was_started_serves(site):
    for service in SERVICES:
        for container in site.containers(service):
            wait_until(lambda at=container: f"{service} to be healthy: {site.told(at)}",
                       lambda at=container: site.healthy(at), 60, 0.5)


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
    password = open(f"{site.folder}/secrets/db_password", encoding="ascii").read().strip()
    assert len(password) == 48
    for service in SERVICES[:5]:
        for container in site.containers(service):
            assert password not in site.engine.docker("inspect", container)
    assert password not in site.compose("logs")


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
    load.stop()
    assert len(set(load.ids)) == len(load.ids)
    client = site.client()

    def left():
        return [name for name in load.ids
                if client.get(f"/v1/jobs/{name}").expect(200).json["status"] not in TERMINAL]
    wait_until(lambda: f"the rest to end: {left()[:5]}", lambda: not left(), 180, 1)
    jobs = [client.get(f"/v1/jobs/{name}").json for name in load.ids]
    states = collections.Counter(job["status"] for job in jobs)
    worker = site.containers("worker")[0]
    lines = collections.Counter(site.engine.docker("exec", worker, "cat", SIDE).split())
    print(f"\n{len(jobs)} jobs {dict(states)}, refused and asked again {load.refused}, "
          f"ran twice {sum(count > 1 for count in lines.values())}")
    assert states == {"FINISHED": len(jobs)}
    assert lines == collections.Counter(load.ids), "each ran once"
    assert "no breach found" in site.sluice("audit")


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
