# SPDX-License-Identifier: MIT
"""`sluice run`: what a person sees of one job."""

import json

import pytest


@pytest.fixture(scope="module")
def ann(site):
    web = site.web()
    site.worker()
    return site.client(web)


def run(site, ann, *command):
    return site.run("run", "--", *command, client=ann)


def last_job(ann):
    return ann.get("/v1/jobs?limit=1").expect(200).json["jobs"][0]


def test_both_streams_and_the_exit_code_come_through(site, ann):
    done = run(site, ann, "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.returncode) == ("out\n", 7), done
    assert "err\n" in done.stderr
    job = last_job(ann)
    assert (job["status"], job["condition"], job["exitCode"]) == ("FAILED", "COMMAND_FAILED", 7)


def test_a_job_that_is_killed_gives_128_and_the_signal(site, ann):
    done = run(site, ann, "sh", "-c", "kill -9 $$")
    assert done.returncode == 137, done
    job = last_job(ann)
    assert (job["status"], job["condition"]) == ("FAILED", "COMMAND_SIGNALLED")
    assert job["signal"] == 9 and job["exitCode"] is None


def test_a_missing_program_is_told_as_such(site, ann):
    done = run(site, ann, "no-such-program-here")
    assert done.returncode != 0
    assert "no-such-program-here" in done.stderr, done
    job = last_job(ann)
    assert (job["status"], job["condition"]) == ("FAILED", "START_FAILED")
    assert "no-such-program-here" in job["reason"] and job["exitCode"] is None


def test_success_is_finished_with_0_and_passes_all_states(site, ann):
    done = run(site, ann, "true")
    assert done.returncode == 0, done
    job = last_job(ann)
    assert (job["status"], job["exitCode"], job["condition"]) == ("FINISHED", 0, None)
    assert site.moves(job["id"]) == [
        "PENDING", "PROCESSING_INPUTS", "STAGING_INPUTS", "STAGING_JOB", "SUBMITTING_JOB",
        "RUNNING", "ARCHIVING", "FINISHED"]
    site.wait_clean()


def test_arguments_arrive_as_they_are(site, ann):
    words = ["a b", "$HOME", "`id`", "'\"", ";rm", "*", "", "\\n", "ü€😀"]
    done = run(site, ann, "printf", "%s|", *words)
    assert done.stdout == "|".join(words) + "|", done


def test_the_environment_is_clean_but_for_what_is_documented(site, ann):
    job = ann.submit("env", env={"COLOUR": "blue"})
    assert ann.wait_end(job)["status"] == "FINISHED"
    names = {line.split("=")[0]: line.split("=", 1)[1]
             for line in ann.output(job).decode().splitlines()}
    assert names["COLOUR"] == "blue" and names["SLUICE_JOB_ID"] == job
    assert names["SLUICE_TENANT"] == "acme" and names["SLUICE_QUEUE"] == "default"
    secret = [name for name in names if "PASSWORD" in name or name.startswith("SLUICE_DB")
              or name.startswith("SLUICE_TEST")]
    assert not secret


def test_inline_inputs_are_there_and_archived_files_are_kept(site, ann):
    job = ann.submit("sh", "-c", "tr a-z A-Z <in/text >out.txt; echo no >skip.tmp", fileInputs=[
        {"content": "hello", "targetPath": "in/text"}],
        archive={"mode": "always", "includes": ["*.txt", "*.tmp"], "excludes": ["*.tmp"]})
    assert ann.wait_end(job)["status"] == "FINISHED"
    assert ann.get(f"/v1/jobs/{job}/files/out.txt").expect(200).body == b"HELLO"
    ann.get(f"/v1/jobs/{job}/files/skip.tmp").problem(404)


def test_a_wall_time_limit_ends_the_job(ann):
    job = ann.submit("sh", "-c", "trap '' TERM; while :; do sleep 0.2; done", maxSeconds=1)
    ended = ann.wait_end(job)
    assert (ended["status"], ended["condition"]) == ("FAILED", "TIME_LIMIT")


def test_output_of_a_part_is_served(ann):
    job = ann.submit("printf", "0123456789")
    ann.wait_end(job)
    path = f"/v1/jobs/{job}/output/stdout"
    part = ann.get(path, Range="bytes=3-5").expect(206)
    assert part.body == b"345" and part.headers["Content-Range"] == "bytes 3-5/10"
    assert ann.get(path, Range="bytes=-2").expect(206).body == b"89"
    ann.get(path, Range="bytes=99-").problem(416)


def test_a_waiting_submission_answers_with_the_finished_job(ann):
    answer = ann.post("/v1/jobs?wait=50", {"name": "w", "command": ["true"]}).expect(200, 201)
    assert answer.json["status"] == "FINISHED"


def test_the_commands_of_the_command_line_work_together(site, ann):
    def sluice(*args, status=0):
        done = site.run(*args, client=ann)
        assert done.returncode == status, (args, done)
        return done.stdout
    job = sluice("submit", "-o", "name", "--", "sh", "-c", "echo hi").strip()
    sluice("wait", job)
    assert sluice("output", job) == "hi\n"
    assert json.loads(sluice("job", "-o", "json", job))["status"] == "FINISHED"
    assert job in sluice("jobs", "-o", "name")
    again = sluice("resubmit", "-o", "name", job).strip()
    assert again != job
    sluice("wait", again)
    sluice("job", "00000000-0000-7000-8000-000000000000", status=1)
    sluice("no-such-command", status=2)
