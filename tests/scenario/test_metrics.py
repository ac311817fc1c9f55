# SPDX-License-Identifier: MIT
"""Metrics of every process, and what is made of them: alert rules and a dashboard."""

import json
import os
import re
import subprocess

import pytest

from rest import Client
from waiting import wait_until

TOKEN = "a-token-of-prometheus-and-nobody-else"
DOCKER = os.path.join(os.path.dirname(__file__), "..", "..", "docker")
# What each process tells of what the design names.
NAMED = {
    "web": ["sluice_jobs", "sluice_oldest_age_seconds", "sluice_outbox_rows", "sluice_queues_unserved", "sluice_submit_seconds",
            "sluice_confirm_seconds", "sluice_audit_lost_total"],
    "worker": ["sluice_queue_wait_seconds", "sluice_claim_seconds", "sluice_run_seconds",
               "sluice_terminal_commit_seconds", "sluice_redeliveries_total",
               "sluice_fenced_writes_total", "sluice_stale_deliveries_total"],
    "recovery": ["sluice_blocked_jobs", "sluice_reconcile_repairs_total",
                 "sluice_fenced_writes_total"],
    "alternate": ["sluice_dead_messages"],
    "deadletter": ["sluice_dead_messages"],
    "webhook": ["sluice_webhook_waiting", "sluice_webhook_leading", "sluice_webhook_behind_events",
                "sluice_webhook_oldest_age_seconds", "sluice_webhook_attempts_total"],
}


@pytest.fixture(scope="module")
def processes(site):
    return {"web": site.web(web_metrics_token=TOKEN), "worker": site.worker(),
            **{kind: site.reader(kind) for kind in ("recovery", "alternate", "deadletter", "webhook")}}


@pytest.fixture(scope="module")
def scrapes(site, processes):
    """The text of each, after a job has ended and while another one waits."""
    ann = site.client(processes["web"], "ann")
    ann.wait_end(ann.submit("/bin/true"))
    site.client(processes["web"], "root", "admin").put_queue("far", 900, "'far' IN tags")
    ann.submit("/bin/true", tags=["far"])

    def scrape(process):
        answer = Client(process.url, TOKEN).get("/metrics").expect(200)
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.body.decode()

    wait_until("the job that waits", lambda: 'queue="far"' in scrape(processes["web"]))
    return {name: scrape(process) for name, process in processes.items()}


def promtool(*args, stdin=None):
    done = subprocess.run(["promtool", *args], input=stdin, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr.strip(), (done.stdout, done.stderr)


def series(text):
    """Names of series with the labels that they have."""
    found = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.M):
        found.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', labels))
    return found


@pytest.mark.parametrize("name", NAMED)
def test_a_scrape_is_as_it_should_be(scrapes, name):
    promtool("check", "metrics", stdin=scrapes[name])
    known = series(scrapes[name])
    for metric in NAMED[name] + ["sluice_build_info", "process_start_time_seconds"]:
        assert metric in known or f"{metric}_bucket" in known, metric


def test_tenants_and_queues_are_named_to_those_with_the_token_only(site, processes, scrapes):
    """The queue 'far' is in the scrape with the token; nothing of a tenant is in any other."""
    web, without = processes["web"], site.web("no-token")
    assert 'tenant="acme",queue="far"' in scrapes["web"]
    user = site.client(web, "root", "admin").token
    wrong = [None, user, TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "", " "]
    for process, tokens in ((web, wrong), (without, wrong + [TOKEN])):
        for token in tokens:
            text = Client(process.url, token).get("/metrics").expect(200).body.decode()
            assert "sluice_outbox_rows" in text
            labels = series(text)
            assert not {"tenant", "queue"} & set().union(*labels.values()), (token, labels)
            assert "acme" not in text and "far" not in text
    for name in set(NAMED) - {"web"}:
        assert "acme" not in scrapes[name] and "far" not in scrapes[name], name


def test_a_token_that_can_be_guessed_is_refused(site):
    web = site.web("guess", wait=False, web_metrics_token="x" * 31)
    wait_until("the refusal", lambda: not web.alive())
    assert "web.metrics_token has 31 characters" in web.log_tail() and "xxx" not in web.log_tail()


def test_a_queue_whose_jobs_nobody_takes_is_counted(scrapes):
    assert "\nsluice_queues_unserved 1\n" in scrapes["web"]  # 'far', and not 'default'


@pytest.mark.parametrize("name", NAMED)
def test_no_metric_has_a_job_or_a_user_for_a_label(scrapes, name):
    labels = set().union(*series(scrapes[name]).values())
    assert not labels & {"job", "jobs", "id", "user", "owner", "actor", "name", "path", "address"}


@pytest.mark.parametrize("name", NAMED)
def test_each_process_tells_of_its_health(processes, name):
    client = Client(processes[name].url)
    client.get("/livez").expect(200)
    client.get("/readyz").expect(200)


def test_the_rules_are_good():
    promtool("check", "rules", os.path.join(DOCKER, "prometheus", "alerts.yml"))
    promtool("test", "rules", os.path.join(DOCKER, "prometheus", "alerts_test.yml"))
    promtool("check", "config", "--syntax-only",
             os.path.join(DOCKER, "prometheus", "prometheus.yml"))


def expressions():
    with open(os.path.join(DOCKER, "prometheus", "alerts.yml"), encoding="utf-8") as rules:
        yield from re.findall(r"expr: '(.*)'", rules.read())
    with open(os.path.join(DOCKER, "grafana", "sluice.json"), encoding="utf-8") as dashboard:
        for panel in json.load(dashboard)["panels"]:
            yield from (target["expr"] for target in panel["targets"])


def test_what_is_asked_of_metrics_exists(scrapes):
    known = {"up": set()}
    for text in scrapes.values():
        for name, labels in series(text).items():
            known.setdefault(name, set()).update(labels)
    asked = list(expressions())
    assert len(asked) > 40
    for expression in asked:
        names = re.findall(r"\b(?:sluice|process)_[a-z_]+\b", re.sub(r'"[^"]*"', "", expression))
        for name in names:
            assert name in known, expression
        labels = set(re.findall(r'[{,] ?([a-z_]+)=', expression))
        for group in re.findall(r"by \(([^)]*)\)", expression):
            labels |= set(group.split(", "))
        given = {"job", "instance"}.union(*(known[name] for name in names)) if names else labels
        assert labels <= given | {"job", "instance"}, expression
