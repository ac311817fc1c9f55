# SPDX-License-Identifier: MIT
"""Webhooks: told at least once, in order per job, signed, and never to where they must not go."""

import pytest

from receiver import Receiver, signed_by
from waiting import wait_until

QUICK = {"webhook_retry_first_ms": 50, "webhook_retry_most_ms": 200, "webhook_poll_ms": 20}
HERE = {"webhook_allow_networks": "127.0.0.0/8"}


@pytest.fixture(name="place", scope="module")
def _place(shared_servers, site):
    """A site with web, a worker and a sender that may send to this machine."""
    del shared_servers
    web = site.web(**HERE)
    site.worker()
    site.reader("webhook", **QUICK, **HERE)
    site.admin = site.client(web, "root", "admin")
    site.ann = site.client(web)
    wait_until("somebody to send", lambda: site.count("webhook_sender", "holder IS NOT NULL"))
    return site


def subscribe(admin, name, url, **more):
    made = admin.put(f"/v1/subscriptions/{name}", {"url": url} | more).expect(201).json
    assert made["secret"].startswith("whsec_")
    return made


def run(client, command=("true",), **more):
    job = client.post("/v1/jobs", {"name": "told", "command": list(command)} | more).expect(201)
    return job.json["id"]


def test_a_subscriber_is_told_of_the_end_of_a_job_once_and_signed(place):
    with Receiver() as receiver:
        made = subscribe(place.admin, "first", receiver.url + "/hook?x=1")
        job = run(place.ann, ("sh", "-c", "exit 3"))
        call = wait_until("a call", lambda: next(iter(receiver.of(job)), None))
        assert call.path == "/hook?x=1" and call.attempt == 1
        assert call.said["id"] == call.id and call.said["subscription"] == "first"
        assert call.said["to"] == "FAILED" and call.said["job"]["exitCode"] == 3
        assert signed_by(made["secret"], call.headers, call.body)
        assert not signed_by("whsec_other", call.headers, call.body)
        place.admin.delete("/v1/subscriptions/first").expect(204)
        assert len(receiver.of(job)) == 1
