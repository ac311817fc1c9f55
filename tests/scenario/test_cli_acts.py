# SPDX-License-Identifier: MIT
"""The command line on things that it finds: parts of ids, files, events, many jobs at once."""

import json
import os
import subprocess

import pytest

from sluice import BIN
from waiting import wait_until


@pytest.fixture(scope="module")
def web(site):
    return site.web()


@pytest.fixture(scope="module")
def worker(site):
    return site.worker()


@pytest.fixture(scope="module")
def ann(site, web, worker):
    assert worker
    return site.client(web)


@pytest.fixture(scope="module", name="boss")
def admin(site, web):
    return site.client(web, "boss", "admin")


def good(site, client, *args, **more):
    done = site.run(*args, client=client, **more)
    assert done.returncode == 0, (args, done)
    return done.stdout


# ---- parts of ids, names

def test_the_end_or_the_beginning_of_an_id_will_do(site, ann):
    jobs = [ann.submit("true", name=f"n{i}") for i in range(2)]
    for job in jobs:
        ann.wait_end(job)
        for part in (job, job[-8:], job[-8:].upper(), job[:-1]):
            assert json.loads(good(site, ann, "job", part, "-o", "json"))["id"] == job
        assert good(site, ann, "output", job[-12:]) == ""
        assert good(site, ann, "why", job[-8:]) == good(site, ann, "why", job)


def test_a_part_of_several_ids_is_refused_with_a_list(site, ann):
    jobs = [ann.submit("true", name=f"n{i}") for i in range(2)]
    common = os.path.commonprefix(jobs)
    done = site.run("cancel", common[:6], client=ann)
    assert done.returncode == 1 and all(job in done.stderr for job in jobs), done
    for job in jobs:
        ann.wait_end(job)


def test_what_is_part_of_no_id_is_said_so(site, ann):
    done = site.run("job", "ffffffff", client=ann)
    assert done.returncode == 1 and "begins or ends with 'ffffffff'" in done.stderr, done
    for text in ("abc", "no-uuid"):  # not even a part
        done = site.run("job", text, client=ann)
        assert done.returncode == 1 and "SLUICE-" in done.stderr, done


def test_a_job_of_another_tenant_is_not_found_by_a_part(site, web, ann):
    job = ann.submit("true")
    done = site.run("job", job[-8:], client=site.stranger(web))
    assert done.returncode == 1 and "begins or ends" in done.stderr, done
    ann.wait_end(job)


def test_a_worker_is_drained_by_its_name(site, boss, worker):
    def draining():
        return json.loads(good(site, boss, "workers", "-o", "json"))[0]["draining"]
    assert worker
    for name in ("default-1", "defau"):
        good(site, boss, "drain", name)
        assert draining()
        good(site, boss, "undrain", name)
        assert not draining()
    done = site.run("drain", "nobody", client=boss)
    assert done.returncode == 1 and "'nobody'" in done.stderr


# ---- archived files

@pytest.fixture(scope="module", name="kept")
def job_with_files(ann):
    job = ann.submit("sh", "-c", "mkdir d; echo one >a.txt; seq 1 50000 >d/big.csv; echo x >\"d/$(printf 'c\\033[31m')\"",
                     archive={"mode": "always", "includes": ["**"]})
    assert ann.wait_end(job)["status"] == "FINISHED"
    return job


BIG = "".join(f"{n}\n" for n in range(1, 50001))


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def test_archived_files_are_listed_and_chosen_by_a_pattern(site, ann, kept):
    shown = good(site, ann, "files", kept)
    assert shown.splitlines()[0].split() == ["PATH", "BYTES", "MODIFIED"] and "\033" not in shown
    assert good(site, ann, "files", kept, "*.csv", "-o", "name") == "d/big.csv\n"
    assert set(good(site, ann, "files", kept, "[ab]*", "-o", "name").split()) == {"a.txt"}


def test_files_are_fetched_into_a_folder_and_replace_nothing_unasked(site, ann, kept, tmp_path):
    into = str(tmp_path / "results")
    printed = good(site, ann, "files", kept, "--into", into)
    assert read(f"{into}/a.txt") == "one\n" and read(f"{into}/d/big.csv") == BIG
    assert "\033" not in printed and not [name for _, _, names in os.walk(into) for name in names
                                         if "\033" in name or name.endswith(".part")]
    with open(f"{into}/a.txt", "w", encoding="ascii") as out:
        out.write("mine\n")
    done = site.run("files", kept, "a.txt", "--into", into, client=ann)
    assert done.returncode == 1 and "--force" in done.stderr and read(f"{into}/a.txt") == "mine\n"
    good(site, ann, "files", kept, "a.txt", "--into", into, "--force")
    assert read(f"{into}/a.txt") == "one\n"
    done = site.run("files", kept, "none*", "--into", into, client=ann)
    assert done.returncode == 1 and kept in done.stderr


@pytest.mark.parametrize("begun", [0, 1, 1000, len(BIG), len(BIG) + 7])
def test_a_file_that_was_begun_goes_on(site, ann, kept, tmp_path, begun):
    os.mkdir(tmp_path / "d")
    with open(tmp_path / f"d/big.csv.{kept}.part", "w", encoding="ascii") as out:
        out.write((BIG + "rubbish")[:begun])
    with open(tmp_path / "d/big.csv.part", "w", encoding="ascii") as out:
        out.write("of somebody else")
    good(site, ann, "files", kept, "*.csv", "--into", str(tmp_path))
    assert read(tmp_path / "d/big.csv") == BIG
    assert read(tmp_path / "d/big.csv.part") == "of somebody else"


def test_no_file_is_written_through_a_link_out_of_the_folder(site, ann, kept, tmp_path):
    os.makedirs(tmp_path / "elsewhere")
    os.makedirs(tmp_path / "into")
    os.symlink(tmp_path / "elsewhere", tmp_path / "into/d")
    done = site.run("files", kept, "d/big.csv", "--into", str(tmp_path / "into"), "--force", client=ann)
    assert done.returncode == 1 and not os.listdir(tmp_path / "elsewhere"), done


# ---- events

def test_events_are_shown_as_they_come(site, ann):
    env = site.environment() | {"SLUICE_URL": ann.url, "SLUICE_TOKEN": ann.token}
    with subprocess.Popen([os.path.join(BIN, "sluice"), "events", "--follow", "--after", "0", "--type",
                           "FINISHED", "-o", "name"], env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as child:
        job = ann.submit("true")
        assert any(line.strip() == job for line in child.stdout)
        child.terminate()
    event = json.loads(good(site, ann, "events", "--job", job, "--after", "0", "--limit", "1", "-o", "json"))
    assert (event["job"], event["to"]) == (job, "PENDING")
    assert job in good(site, ann, "events", "--job", job, "--after", "0", "-n", "1")
    done = site.run("events", "--after", "x", client=ann)
    assert done.returncode == 1 and "SLUICE-" in done.stderr, done


# ---- many at once

def waiting_jobs(client, name, count):
    return [client.submit("true", name=name, tags=["nobody"]) for _ in range(count)]


@pytest.fixture(scope="module", name="idle")
def queue_without_worker(boss):
    boss.put("/v1/queues/idle", {"priority": 90, "filter": "'nobody' IN tags"}).expect(200, 201)


def test_a_search_is_cancelled_when_its_number_is_confirmed(site, ann, idle):
    assert idle is None
    jobs = waiting_jobs(ann, "bulk", 5)
    other = waiting_jobs(ann, "other", 1)[0]
    search = ("cancel", "--filter", "name = 'bulk'", "--status", "PENDING")
    done = site.run(*search, client=ann)
    assert done.returncode == 1 and "cancel 5 jobs" in done.stderr and "--yes" in done.stderr, done
    assert {ann.get(f"/v1/jobs/{job}").json["status"] for job in jobs} == {"PENDING"}
    assert "5 cancelled" in good(site, ann, *search, "--yes")
    wait_until("all to be cancelled", lambda: {ann.get(f"/v1/jobs/{job}").json["status"] for job in jobs}
               == {"CANCELLED"})
    assert ann.get(f"/v1/jobs/{other}").json["status"] == "PENDING"
    done = site.run(*search, "--yes", client=ann)
    assert done.returncode == 0 and "no jobs" in done.stderr
    for args in ((), (other, "--filter", "name = 'bulk'")):
        assert site.run("cancel", *args, client=ann).returncode == 2
    good(site, ann, "cancel", other)


def test_hidden_jobs_are_left_out_until_they_are_shown_again(site, ann):
    job = ann.submit("true")
    ann.wait_end(job)
    good(site, ann, "hide", job[-8:])
    assert job not in good(site, ann, "jobs", "-o", "name")
    assert job in good(site, ann, "jobs", "--all", "-o", "name")
    good(site, ann, "unhide", job[-8:])
    assert job in good(site, ann, "jobs", "-o", "name")


def test_dead_messages_are_acted_on_by_state(site, boss):
    site.reader("deadletter")
    with site.amqp() as broker:
        for i in range(3):
            broker.publish("sluice.submit", "sluice.acme.submit.default", f"rubbish {i}".encode())

    def found(state):
        return good(site, boss, "dead", "ls", "--state", state, "-o", "name").split()
    wait_until("dead messages", lambda: len(found("open")) == 3)
    done = site.run("dead", "discard", "--state", "open", client=boss)
    assert done.returncode == 1 and "discard 3 dead messages" in done.stderr, done
    assert len(found("open")) == 3
    good(site, boss, "dead", "discard", found("open")[0][-8:])
    good(site, boss, "dead", "discard", "--state", "open", "--yes")
    assert not found("open") and len(found("discarded")) == 3
    assert site.run("dead", "replay", client=boss).returncode == 2
    assert site.run("dead", "replay", "--state", "open", "--body", "{}", client=boss).returncode == 2
