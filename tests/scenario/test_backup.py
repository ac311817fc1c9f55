# SPDX-License-Identifier: MIT
"""A site is lost with its database, archive and broker, and comes back by what docs/operations.md says."""

import os
import shutil
import subprocess

import markdown
from sluice import BIN
from waiting import wait_until

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operations.md")
QUICK = {"fleet_beat_ms": 200, "fleet_lease_ms": 800}  # the reconciler's times are leases


def follow(site, marker):
    """Runs the blocks of the page with this marker; what they print is as it shows."""
    with open(PAGE, encoding="utf-8") as text:
        blocks, _ = markdown.read("docs/operations.md", text.read())
    chosen = [block for block in blocks if block.marker == marker]
    assert chosen, marker
    environment = site.environment(**QUICK)
    environment["PATH"] = f"{BIN}:{environment['PATH']}"
    for block in chosen:
        done = subprocess.run(["bash", "-e", "-c", block.text], cwd=site.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=180, check=False)
        assert done.returncode == 0, f"{block.place}: {done.returncode}\n{done.stdout}"
        if block.shown is not None:
            assert markdown.agrees(block.shown.text, done.stdout), done.stdout


def start(site, queues):
    site.reader("recovery", recovery_tick_ms=200, recovery_first_test_ms=100, **QUICK)
    web = site.web(**QUICK)
    for queue in queues:
        site.worker(queue, **QUICK)
    return site.client(web, "root", "admin")


def test_a_lost_site_is_restored_from_its_backup(fresh):
    given = fresh.servers.environment()
    with open(os.path.join(fresh.folder, "backup.cnf"), "w", encoding="ascii") as out:
        out.write("[client]\n" + "".join(
            f"{name} = {given['SLUICE_TEST_DB_' + name.upper()]}\n"
            for name in ("host", "port", "user", "password")))
    root = start(fresh, ["default"])
    root.put("/v1/queues/later", {"priority": 10, "filter": "'later' IN tags"}).expect(201)
    root.put("/v1/apps/tool/1", {"command": ["echo", "released"]}).expect(201)
    root.post("/v1/apps/tool/1/disable").expect(200)
    ended = root.post("/v1/jobs?wait=50", {"name": "a", "command": ["echo", "kept"]}).expect(200)
    waiting = root.post("/v1/jobs", {"name": "b", "command": ["true"], "tags": ["later"]})
    held = root.post("/v1/jobs", {"name": "c", "appId": "tool", "appVersion": "1"})
    jobs = [answer.json["id"] for answer in (ended, waiting, held)]
    wait_until("the job to be held", lambda: status(root, jobs[2]) == "BLOCKED")
    follow(fresh, "backup")
    lost = root.post("/v1/jobs", {"name": "d", "command": ["true"]}).expect(201).json["id"]
    fresh.accepted.remove(lost)  # the backup is older

    fresh.end_programs()
    shutil.rmtree(fresh.path("archive"))
    os.mkdir(fresh.path("archive"))
    fresh.servers.rabbitmq.delete_vhost(fresh.vhost)
    fresh.servers.rabbitmq.add_vhost(fresh.vhost)
    follow(fresh, "restore")

    root = start(fresh, ["default", "later"])
    assert root.get(f"/v1/jobs/{jobs[0]}/output/stdout").expect(200).body == b"kept\n"
    root.get(f"/v1/jobs/{lost}").problem(404)
    root.post("/v1/apps/tool/1/enable").expect(200)
    wait_until("all jobs to end", lambda: [status(root, job) for job in jobs] == ["FINISHED"] * 3,
               60)
    follow(fresh, "restored")


def status(client, job):
    return client.get(f"/v1/jobs/{job}").expect(200).json["status"]
