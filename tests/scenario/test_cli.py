# SPDX-License-Identifier: MIT
"""The command line as a person meets it: help, errors, tables, names."""

import os
import re

import pytest

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
