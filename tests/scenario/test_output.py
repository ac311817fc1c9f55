# SPDX-License-Identifier: MIT
"""Output: while it comes, when there is too much of it, and limits on what a job may use."""

import threading

import pytest

from jobs import Traces
from waiting import wait_until

CAP = 64 * 1024


@pytest.fixture(scope="module")
def ann(site):
    site.worker(slots=3, worker_output_max_bytes=CAP)
    return site.client(site.web())


def test_output_is_followed_while_it_comes(site, ann):
    traces = Traces(site.path("follow"))
    job = ann.submit("sh", "-c", f"echo one; while [ ! -e {traces.path('gate')} ]; do sleep 0.1; "
                     "done; echo two")
    ann.wait_status(job, "RUNNING")
    wait_until("the first line", lambda: ann.output(job) == b"one\n")
    done = []
    follower = threading.Thread(target=lambda: done.append(
        site.run("output", job, "-f", client=ann)))
    follower.start()
    traces.open()
    follower.join(20)
    assert done and done[0].stdout == "one\ntwo\n", done


def test_too_much_output_keeps_head_tail_and_the_true_size(ann):
    job = ann.submit("sh", "-c", "echo first; yes line | head -c 10000000; echo last")
    ended = ann.wait_end(job, timeout_s=60)
    assert ended["status"] == "FINISHED"
    told, kept = ended["output"]["stdout"], ann.output(job)
    assert told["bytes"] == 10000000 + 6 + 5
    assert kept.startswith(b"first\n") and kept.endswith(b"last\n")
    assert len(kept) <= CAP + 200 and told["kept"] <= CAP + 200


def test_output_below_the_cap_is_byte_equal(ann):
    job = ann.submit("sh", "-c", "head -c 60000 /dev/zero; head -c 3000 /dev/zero >&2")
    ended = ann.wait_end(job)
    assert ann.output(job) == b"\0" * 60000 and ann.output(job, "stderr") == b"\0" * 3000
    assert ended["output"]["stderr"]["bytes"] == 3000


def test_last_words_are_kept(ann):
    for _ in range(10):
        job = ann.submit("sh", "-c", "echo last words; kill -9 $$")
        assert ann.wait_end(job)["signal"] == 9
        assert ann.output(job) == b"last words\n"


def test_memory_beyond_the_limit_is_not_given(ann):
    job = ann.submit("/usr/bin/python3", "-c", "x = bytearray(400 << 20); print(len(x))",
                     memoryMB=200)
    ended = ann.wait_end(job)
    assert ended["status"] == "FAILED"
    assert ended["condition"] in ("MEMORY_LIMIT", "COMMAND_FAILED", "COMMAND_SIGNALLED")
    assert ann.output(job) == b""


def test_what_a_job_leaves_running_is_ended_with_it(ann):
    import sluice
    job = ann.submit("sh", "-c", "setsid sleep 600 & (sleep 600 &) ; echo gone")
    assert ann.wait_end(job)["status"] == "FINISHED"
    assert not sluice.job_pids(job)


def test_nothing_of_a_job_is_left_in_the_work_folder(site, ann):
    job = ann.submit("sh", "-c", "echo x >file")
    ann.wait_end(job)
    import glob
    wait_until("its folder to go",
               lambda: not glob.glob(site.path("work", "*", "jobs", f"{job}*")))
