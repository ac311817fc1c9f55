# SPDX-License-Identifier: MIT
"""attacks: what strangers send to break the service, a row each, and what came of it.

  with attacked("F-20 none", stand) as hit:
      hit.refused(answer, 401, "SLUICE-1010")   # one attack, and what must come back
      hit.held(condition, "nothing was read")   # one attack that is seen otherwise

At the end of the block the service must be alive and serve somebody else, and no program may have
written a report of a sanitizer. One line goes to the folder named by SLUICE_TEST_RESULTS;
tests/tools/attack_table makes the table. A row that no test tried fails the table.
"""

import contextlib
import glob
import json
import math
import os
import re
import time

from neighbour import Neighbour
from waiting import wait_until

FULL = os.environ.get("SLUICE_ATTACK") == "full"  # longer floods and more tries
WINDOW_S = 6.0 if FULL else 1.5  # of a flood, and before and after it
TRIES = 8
REPORT = re.compile(r"AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:")

# row: (what is sent, what must come back)
ROWS = {
    "F-17 heads": ("heads of requests that drip in, 200 connections", "408"),
    "F-17 bodies": ("bodies that drip in, 100 connections", "408"),
    "F-17 readers": ("100 pipelined questions, the answers read a byte at a time", "cut off"),
    "F-17 idle": ("connections that say nothing, 10,000 of one address", "closed, 429"),
    "F-17 requests": ("questions without a pause on 16 connections of one address", "429"),
    "F-17 strangers": ("bad tokens without a pause on 8 connections", "401, 429"),
    "F-17 waits": ("900 ?wait that end at once", "others are answered"),
    "F-18 smuggling": ("heads that can be read in two ways", "400, one answer, closed"),
    "F-18 request line": ("NUL, blanks and controls in method, target and version", "400, closed, no effect"),
    "F-18 refusals": ("every kind of head that is refused", "problem documents; the library's list"),
    "F-18 chunks": ("chunks of impossible sizes", "400, one answer, closed"),
    "F-18 heads": ("heads and targets too large, broken or with control characters", "400, 431"),
    "F-18 body": ("bodies over the limit, told and in chunks without an end", "413"),
    "F-18 JSON": ("deep, doubled, cut, NaN, NUL, surrogates, bytes that are no UTF-8", "400"),
    "F-18 numbers": ("numbers past each limit, of the wrong sign or kind", "400 with pointer"),
    "F-19 encoding": ("bodies that are packed, bombs among them", "415"),
    "F-19 input": ("an input that unpacks to more than its limit", "not unpacked; FAILED"),
    "F-20 none": ("alg none in any case, with and without a signature", "401"),
    "F-20 confusion": ("HS256 signed with the public key in four forms", "401"),
    "F-20 alg": ("another alg than the key's", "401"),
    "F-20 kid": ("kid that is a path, an address, SQL, or not text", "401"),
    "F-20 header": ("jwk, jku, x5u, x5c of the attacker, unknown crit", "401, nothing fetched"),
    "F-20 time": ("exp, nbf, iat past, future, missing, not numbers", "401"),
    "F-20 audience": ("iss and aud of others, or missing", "401"),
    "F-20 tenant": ("tenant of another key, paths, lists", "401"),
    "F-20 shape": ("dots, padding, blanks, doubled members, 20 KB, no JSON", "401, 431"),
    "F-20 signature": ("changed, cut, zeros, of another token", "401"),
    "F-20 revoked": ("a token whose key was removed", "401 within 10 s"),
    "F-20 timing": ("signatures wrong in the first and in the last byte", "same time"),
    "F-21 routes": ("ids of another tenant on every route that takes one", "404"),
    "F-21 lists": ("every list, asked for by another tenant", "nothing of ours"),
    "F-21 header": ("headers that claim another tenant, user or role", "no effect"),
    "F-21 roles": ("roles in other spellings, shapes and kinds", "403"),
    "F-21 users": ("acts on the jobs of another user", "403"),
    "F-21 cursors": ("cursors changed, and of another query, user or tenant", "400"),
    "F-21 events": ("event ids that are forged or of another tenant", "400, nothing of ours"),
    "F-21 keys": ("an Idempotency-Key of another user and tenant", "a job of one's own"),
    "F-22 members": ("SQL in every text of a request", "400, or kept as text"),
    "F-22 queries": ("SQL in every query parameter, name and filter", "400, 404, or nothing found"),
    "F-23 paths": ("paths that leave the job, in inputs, patterns, files, output", "400, 404"),
    "F-23 archive": ("links, pipes and devices that a job leaves to be archived", "left out"),
    "F-23 planted": ("links put in place of the folders of the archive", "400, 404, 503"),
    "F-23 staging": ("links put where an input or the archive is written", "nothing outside"),
    "F-24 log": ("CR, LF, ANSI and bidi in names, ids, headers, tokens", "one JSON line each"),
    "F-24 headers": ("CR and LF in what is repeated in headers", "not repeated"),
    "F-24 terminal": ("escapes of terminals in what the command prints", "inert"),
    "F-24 page": ("markup in names and outputs", "no document of ours; CSP"),
    "F-25 words": ("shell's characters, line feeds, dashes in command, args, env", "arrive as they are"),
    "F-25 environment": ("names that are ours, broken names, LD_PRELOAD", "400; of the job alone"),
    "F-27 flood": ("output without an end, one line of it, zeros", "head and tail kept, RSS flat"),
    "F-27 follow": ("32 followers that do not read", "dropped; RSS flat"),
    "F-28 descriptors": ("no descriptor is free", "503, recovers"),
    "F-28 accept": ("no descriptor for another connection", "it waits; others are served"),
    "F-28 submission": ("each allocation of a submission fails in turn", "503, or the whole job once"),
    "F-28 questions": ("each allocation of a question fails in turn", "503, or the whole answer"),
    "F-28 memory": ("more and more allocations of the web fail", "503, recovers"),
    "F-28 threads": ("programs start, and no thread can be made", "a word, status 1"),
    "F-28 worker descriptors": ("the worker has no descriptor free", "jobs wait"),
    "F-28 runner descriptors": ("the runner has no descriptor free", "jobs wait"),
    "F-28 processes": ("the runner can make no process", "jobs wait; one is cancelled"),
    "F-28 worker memory": ("more and more allocations of the worker fail", "jobs wait, run once"),
    "F-28 runner memory": ("more and more allocations of the runner fail", "jobs wait, run once"),
    "F-28 signals": ("every wait of web, worker and runner is interrupted", "no effect"),
    "F-28 readers": ("readers without memory and descriptors", "released, stored"),
    "F-29 filters": ("filters that are deep, long or cost much", "400 with the place"),
    "F-29 searches": ("searches that cost as much as they may", "others are answered"),
    "confine files": ("a job opens secrets, journals, the archive, other jobs' files", "EACCES"),
    "confine processes": ("a job reaches for memory, descriptors and signals of others", "EACCES, EPERM"),
    "confine user": ("the same of a job that has another user", "EACCES, EPERM"),
    "confine given": ("a job puts a link into the folder that another job is given", "nothing of root is given"),
    "confine runner": ("a job greets the runner as its worker would", "closed"),
    "broker bodies": ("bodies that are no message of ours, 1 MB among them", "dead letter"),
    "broker jobs": ("jobs unknown, of another tenant, forged and old epochs", "no run"),
    "broker commands": ("what no command is, sent to a worker and to recovery", "ignored"),
    "SSRF inputs": ("inputs from link-local addresses, by name, number, redirection", "FAILED"),
    "SSRF schemes": ("gopher, file, dict, ftp as an input and as its redirection", "400, FAILED"),
}


class Hit:
    def __init__(self, row, stand):
        assert row in ROWS, f"{row} is not in tests/support/attacks.py"
        self.row, self.stand, self.attacks, self.good = row, stand, 0, 0
        self.before_ms = self.during_ms = None

    def held(self, condition, what):
        """One attack that must show no effect."""
        self.attacks += 1
        assert condition, what
        self.good += 1

    def refused(self, answer, statuses, code=None):
        """One attack that must be answered so."""
        statuses = statuses if isinstance(statuses, tuple) else (statuses,)
        self.attacks += 1
        assert answer.status in statuses, f"{self.row}: {answer!r}, not {statuses}"
        problem = answer.problem(answer.status) if answer.status >= 400 else {}
        assert code is None or problem.get("code") == code, f"{self.row}: {answer!r}, not {code}"
        self.good += 1
        return problem

    def beside(self, attack):
        """Somebody else asks before, during and after attack(begin), which calls begin() when it is
        under way; his p99 must not change. Other work on the machine makes noise, an attack that
        has an effect has it each time: one quiet try is enough."""
        for _ in range(TRIES):
            self._once(attack)
            # What a flood does to a service that does not defend itself is seconds.
            if self.during_ms <= max(3 * self.before_ms, self.before_ms + 30):
                return
        raise AssertionError(f"{self.row}: p99 of somebody else {self.before_ms:.1f} ms, "
                             f"under attack {self.during_ms:.1f} ms")

    def _once(self, attack):
        stand = self.stand
        neighbour = stand.site.client(stand.web, "neighbour")  # who shares no user's limit
        if stand.neighbours_job is None:
            stand.neighbours_job = neighbour.submit("true", name="neighbour")
        with Neighbour(stand.web, neighbour.token, f"/v1/jobs/{stand.neighbours_job}") as other:
            other.measure(0.2)
            before = other.measure(WINDOW_S)
            attack(other.begin)
            during = other.end()
            after = other.measure(WINDOW_S)
        self.before_ms, self.during_ms = p99(before + after), p99(during)


def p99(samples_ms):
    return sorted(samples_ms)[int(len(samples_ms) * 0.99)] if samples_ms else math.inf


class Stand:
    """A site whose programs are attacked."""

    def __init__(self, site, **settings):
        self.site = site
        self.web = site.web(**settings)
        self.ann = site.client(self.web)
        self.root = site.client(self.web, "root", "admin")
        self.job = self.ann.submit("true", name="bystander")
        self.neighbours_job = None  # made when a test measures beside somebody else
        self.told = {}  # reports by log file, as far as they were counted

    def reports(self):
        """New reports of sanitizers in the logs of all programs."""
        found = []
        for path in glob.glob(os.path.join(self.site.folder, "*.log")):
            with open(path, encoding="utf-8", errors="replace") as log:
                lines = [line for line in log if REPORT.search(line)]
            found += lines[self.told.get(path, 0):]
            self.told[path] = len(lines)
        return found

    def check_alive(self):
        for process in self.site.processes:
            assert process.alive(), f"{process.name} ended:\n{process.log_tail()}"

        def served():
            return self.ann.get(f"/v1/jobs/{self.job}").status == 200
        wait_until("somebody else to be served", served, 10)

    def end(self):
        """An orderly end of all: what leaked is told then."""
        for process in self.site.processes:
            if process.alive():
                assert process.stop() == 0, process.log_tail()
        assert not self.reports()


def _write(line):
    folder = os.environ.get("SLUICE_TEST_RESULTS")
    if folder is None:
        return
    folder = folder.replace("fault-results", "attack-results")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def attacked(row, stand):
    hit = Hit(row, stand)
    reports, passed = [], False
    try:
        yield hit
        stand.check_alive()
        reports = stand.reports()
        assert not reports, reports
        passed = True
    finally:
        reports = reports or stand.reports()
        _write({"row": row, "test": os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0],
                "at": time.time(), "passed": passed, "attacks": hit.attacks, "good": hit.good,
                "before_ms": hit.before_ms, "during_ms": hit.during_ms, "reports": len(reports)})
