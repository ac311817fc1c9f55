# SPDX-License-Identifier: MIT
"""What is accepted can start: the largest command and environment that a submission takes run."""

import pytest

WORD = 128 * 1024 - 1  # bytes of one string that Linux takes
ALL = 1024 * 1024      # command, args and env together


@pytest.fixture(scope="module")
def ann(site):
    site.worker()
    return site.client(site.web())


@pytest.mark.parametrize("fill", ["x", "\x01", "\n", "\""])
def test_the_largest_arguments_run(ann, fill):
    args, left = [], ALL - len("true") - 1
    while left > 1:
        size = min(WORD, left - 1)
        args.append(fill * size)
        left -= size + 1
    if fill == "\x01":  # six bytes of the body each: half of the limit is what the body can carry
        args = args[:5]
    job = ann.submit("true", args=args)
    ended = ann.wait_end(job)
    assert ended["status"] == "FINISHED", (ended["condition"], ended["reason"])


def test_the_largest_variable_runs_and_one_byte_more_is_refused(ann):
    value = "v" * (WORD - len("NAME="))
    ended = ann.wait_end(ann.submit("sh", "-c", 'test "${#NAME}" = ' + str(len(value)),
                                    env={"NAME": value}))
    assert ended["status"] == "FINISHED", (ended["condition"], ended["reason"])
    for request in ({"env": {"NAME": value + "v"}}, {"args": ["x" * (WORD + 1)]}):
        problem = ann.post("/v1/jobs", {"name": "n", "command": ["true"]} | request).problem(400)
        assert str(WORD) in problem["detail"] or str(WORD - 5) in problem["detail"], problem
