# SPDX-License-Identifier: MIT
"""Mail about dead messages: few, and nobody waits for it."""

import re

from mail import MailServer
from rest import Client
from waiting import wait_until

QUEUE = "sluice.acme.submit.default"
OTHER = "sluice.acme.submit.other"


def dead(site, count, key=QUEUE, first=0):
    with site.amqp() as link:
        for number in range(first, first + count):
            link.publish("sluice.dead", key, b"x", message_id=f"{key}-{number}")


def wait_rows(site, count):
    wait_until(f"{count} rows", lambda: site.count("dead_messages", "outcome IS NOT NULL") == count,
               60)


def start(site, server, wait=True, **settings):
    return site.reader("deadletter", wait=wait, **({
        "notify_smtp_url": server.url, "notify_from": "sluice@example.org",
        "notify_to": "ops@example.org, olga@example.org"} | settings))


def test_one_mail_per_cause_and_interval_tells_how_many_there_were(fresh):
    with MailServer() as server:
        reader = start(fresh, server, notify_interval_s=5)
        dead(fresh, 20)
        dead(fresh, 1, OTHER)
        wait_rows(fresh, 21)
        wait_until("two mails", lambda: len(server.mails) == 2)
        recipients, text = server.mails[0]
        assert recipients == ["ops@example.org", "olga@example.org"]
        assert f"Subject: Sluice: unknown, {QUEUE}\r\n" in text and "sluice dead show" in text
        assert OTHER in server.mails[1][1]

        def one_more_comes():
            dead(fresh, 1, first=fresh.count("dead_messages"))
            return len(server.mails) > 2
        wait_until("a third mail", one_more_comes, 30, 0.3)
        assert "more of this cause" in server.mails[2][1]
        assert reader.stop() == 0


def test_a_mail_server_that_does_not_answer_holds_nothing_up(fresh):
    with MailServer(silent=True) as server:
        reader = start(fresh, server)
        for number in range(100):
            dead(fresh, 1, f"sluice.acme.submit.q{number}")
        wait_rows(fresh, 100)
        page = Client(reader.url).get("/metrics").expect(200).body.decode()
        dropped = re.search(r'sluice_mails_total\{result="dropped"\} (\d+)', page)
        assert int(dropped[1]) >= 30  # the others wait in the queue
        assert reader.stop(timeout_s=10) == 0


def test_a_mail_that_is_refused_is_told_in_the_log(fresh):
    with MailServer(refuse=True) as server:
        reader = start(fresh, server)
        dead(fresh, 1)
        wait_rows(fresh, 1)
        reader.wait_log("notify.mail.failed", timeout_s=20)
        assert reader.stop() == 0


def test_settings_that_do_not_fit_are_refused_at_the_start(fresh):
    with MailServer() as server:
        reader = start(fresh, server, notify_to="", wait=False)
        assert reader.wait() == 1 and "notify.to" in reader.log_text()
