# SPDX-License-Identifier: MIT
"""What is said of jobs that wait, of queues, workers and losses: tests/support/explained_where.py."""

import pytest

from explained import explained


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web()


@pytest.fixture(name="root", scope="module")
def fixture_root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    return site.client(web)


def why(client, job):
    return client.get(f"/v1/jobs/{job}/why").expect(200).json["why"]


def test_no_worker(root, ann):
    root.put_queue("alone", 1, "'alone' IN tags").expect(201)
    job = ann.submit("true", tags=["alone"])
    with explained("no worker") as row:
        row.said(why(ann, job), cause=["queue 'alone'", "no worker serves"],
                 limit=["it is the next"], step=["Ask an administrator of this site to start one."],
                 never=["sluice-worker", "busy"])
        row.said(why(root, job), step=["Start one: 'sluice-worker --tenant acme --queue alone'."])
    ann.cancel(job).expect(200)
