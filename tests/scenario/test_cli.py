# SPDX-License-Identifier: MIT
"""The command line as a person meets it: help, errors, tables, names."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from sluice import BIN

from waiting import wait_until


@pytest.fixture(scope="module")
def web(site):
    site.worker()
    return site.web()


@pytest.fixture(scope="module")
def ann(site, web):
    return site.client(web)


@pytest.fixture(scope="module", name="boss")
def admin(site, web):
    return site.client(web, "boss", "admin")


# ---- help

@pytest.mark.parametrize("family", ["app", "queue", "dead", "context", "recovery"])
@pytest.mark.parametrize("how", [("{}", "--help"), ("{}", "-h"), ("help", "{}"), ("{}", "help")])
def test_a_family_of_commands_has_help_with_examples(site, family, how):
    done = site.run(*[word.format(family) for word in how])
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.startswith(f"usage: sluice {family} COMMAND")
    assert re.search(rf"^examples:\n  sluice {family} ", done.stdout, re.M), done.stdout


def test_each_command_has_help_with_examples_and_a_place_in_the_manual(site):
    names = re.findall(r"^  ([a-z-]+(?: [a-z]+)?) ", site.run("help").stdout, re.M)
    manual = site.run("man").stdout
    assert len(names) > 60
    for name in names:
        one, other = site.run(*name.split(), "--help"), site.run("help", *name.split())
        assert (one.returncode, one.stderr) == (0, "") and one.stdout == other.stdout, one
        examples = one.stdout.partition("\nexamples:\n")[2].splitlines()
        assert examples and any(f"sluice {name}" in line for line in examples), one.stdout
        assert f".B sluice {name}\n" in manual
        assert all(line.strip().replace("-", "\\-") in manual for line in examples
                   if "\\" not in line and "'" not in line), name


@pytest.mark.parametrize("typed, meant", [
    (["jbos"], "jobs"), (["ouput"], "output"), (["qeue", "put"], "queue"), (["app", "enabel"], "app enable"),
    (["dead", "lst"], "dead ls")])
def test_a_slip_names_what_was_meant(site, typed, meant):
    done = site.run(*typed)
    assert done.returncode == 2 and f"did you mean '{meant}'?" in done.stderr, done


def test_what_is_near_to_nothing_leads_to_the_list(site):
    done = site.run("frobnicate")
    assert done.returncode == 2 and "sluice help" in done.stderr and "mean" not in done.stderr
    done = site.run("dead")
    assert done.returncode == 2 and "ls show replay discard" in done.stderr


# ---- errors

def test_an_error_names_its_request(site, web, ann):
    done = site.run("job", "00000000-0000-7000-8000-000000000000", client=ann)
    found = re.search(r"\[SLUICE-1020, request ([0-9A-Za-z.-]+)\]", done.stderr)
    assert done.returncode == 1 and found, done
    web.wait_log(found[1])


def test_an_error_says_when_to_try_again(site):
    lost = site.web("lost", wait=False, db_port=9)  # nobody listens there
    ann = site.client(lost)
    wait_until("an answer", lambda: lost.ready() == 503)
    done = site.run("jobs", client=ann)
    assert done.returncode == 1
    assert re.search(r"\[SLUICE-1050, request [^]]+\]; try again in \d+ s", done.stderr), done


def test_an_address_where_nobody_listens_is_told_with_what_to_look_at(site):
    done = site.run("jobs", SLUICE_URL="", client_url="http://127.0.0.1:9", client_token="x")
    assert done.returncode == 3 and "is sluice-web running there?" in done.stderr, done


def test_errors_of_inputs_have_the_whole_path(site, ann):
    big = site.path("big.txt")
    with open(big, "w", encoding="ascii") as out:
        out.write("x" * (1024 * 1024 + 1))
    for path, says in ((big, "1048577 bytes, 1048576 may be sent"), ("/nonexist/file", "No such file"),
                       (site.folder, "not a regular file")):
        done = site.run("submit", "-i", path, "--", "true", client=ann)
        assert done.returncode == 2 and path in done.stderr and says in done.stderr, done
    done = site.run("submit", "--file", "/nonexist/file", client=ann)
    assert done.returncode == 2 and "/nonexist/file" in done.stderr, done


def test_an_input_may_be_named_from_the_folder_above(site, ann):
    with open(site.path("above.txt"), "w", encoding="ascii") as out:
        out.write("from above\n")
    path = os.path.join("..", os.path.basename(site.folder), "shared", "above.txt")
    done = site.run("run", "-i", path, "--", "cat", "above.txt", client=ann)
    assert (done.returncode, done.stdout) == (0, "from above\n"), done


# ---- tables

def on_terminal(site, client, *args, columns=80, **env):
    """What the command writes on a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    whole = site.environment() | {"SLUICE_URL": client.url, "SLUICE_TOKEN": client.token,
                                  "TERM": "xterm"} | env
    whole = {name: value for name, value in whole.items() if value is not None}
    with subprocess.Popen([os.path.join(BIN, "sluice"), *args], env=whole, stdin=subprocess.DEVNULL,
                          stdout=theirs, stderr=subprocess.PIPE) as child:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end was closed
                part = b""
            if not part:
                break
            written += part
        assert child.wait(60) == 0, child.stderr.read()
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module", name="jobs")
def ended_jobs(ann):
    """One that failed, and one with a wide name."""
    made = [ann.submit("false", name="fails"), ann.submit("true", name="計算の名前")]
    for job in made:
        ann.wait_end(job)
    return made


def test_tables_have_local_times_and_json_has_utc(site, ann, jobs, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    utc = json.loads(site.run("jobs", "-o", "json", client=ann).stdout)
    assert {job["id"] for job in utc} >= set(jobs) and all(job["created"].endswith("Z") for job in utc)
    lines = site.run("jobs", client=ann).stdout.splitlines()
    assert all("+05:30" in line for line in lines[1:]) and lines[0].split()[-2:] == ["CREATED", "AGE"]
    assert re.search(r"^created +\S+\+05:30$", site.run("job", jobs[0], client=ann).stdout, re.M)
    shown = on_terminal(site, ann, "jobs", columns=200)
    assert re.search(r" \d\d:\d\d:\d\d IST +\d+[smh]$", shown, re.M), shown
    monkeypatch.setenv("TZ", "UTC")
    created = {job["id"]: job["created"] for job in utc}
    for line in site.run("jobs", client=ann).stdout.splitlines()[1:]:
        assert created[line.split()[0]] in line


def test_colours_are_for_terminals_that_want_them(site, ann, jobs):
    assert "\033[31mFAILED\033[0m" in on_terminal(site, ann, "jobs", columns=200)
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": None}):
        assert "\033" not in on_terminal(site, ann, "jobs", **env), env
    assert "\033" not in site.run("jobs", client=ann).stdout and jobs


def test_a_table_fits_the_terminal_and_ids_stay_whole(site, ann, jobs):
    ann.wait_end(ann.submit("true", name="n" * 60))
    lines = on_terminal(site, ann, "jobs", columns=120, NO_COLOR="1").splitlines()
    assert all(width(line) <= 120 for line in lines), lines
    assert all(job in "\n".join(lines) for job in jobs) and "…" in "\n".join(lines)
    assert "n" * 60 in site.run("jobs", client=ann).stdout


def width(text):
    return sum(2 if "\u3000" <= c <= "\u9fff" else 1 for c in text)


def test_columns_stand_below_each_other_whatever_the_name(site, ann, jobs):
    lines = site.run("jobs", client=ann).stdout.splitlines()
    at = lines[0].index("OWNER")
    for line in lines[1:]:
        assert width(line.split("ann ")[0]) == at, lines
    assert jobs


def test_an_empty_list_says_so_beside_the_table(site, ann, boss):
    done = site.run("jobs", "--queue", "default", "--filter", "name = 'nobody'", client=ann)
    assert (done.returncode, done.stderr) == (0, "no jobs\n") and done.stdout.startswith("ID ")
    assert site.run("dead", "ls", client=boss).stderr == "no dead messages\n"
    done = site.run("jobs", "--filter", "name = 'nobody'", "-o", "json", client=ann)
    assert (json.loads(done.stdout), done.stderr) == ([], "")


def test_a_job_is_shown_with_its_command_and_request(site, ann):
    job = ann.submit("sh", "-c", "exit 0", env={"COLOUR": "blue"}, fileInputs=[
        {"content": "x" * 5000, "targetPath": "in.txt"}])
    shown = site.run("job", job, client=ann).stdout
    assert re.search(r'^request.command +\["sh","-c","exit 0"\]$', shown, re.M), shown
    assert re.search(r"^request.env.COLOUR +blue$", shown, re.M)
    assert "5000" in shown and "xxx" not in shown
    ann.wait_end(job)


def test_a_watched_list_shows_what_comes(site, ann):
    env = site.environment() | {"SLUICE_URL": ann.url, "SLUICE_TOKEN": ann.token}
    with subprocess.Popen([os.path.join(BIN, "sluice"), "jobs", "--watch", "-o", "name"], env=env, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        job = ann.submit("true")
        for line in child.stdout:
            if line.strip() == job:
                break
        child.send_signal(signal.SIGINT)
        child.stdout.read()
        assert child.wait(60) == -signal.SIGINT
    ann.wait_end(job)
