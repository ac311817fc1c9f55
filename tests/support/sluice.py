# SPDX-License-Identifier: MIT
"""sluice: a whole site for scenario tests: schema, virtual host, keys, and the programs.

Timing is a tenth of the defaults: beats every 500 ms, a lease of 2 s, deferral for 1 s, AMQP
heartbeats every second. SLUICE_TEST_PACE=3 makes the first three so many times as long.
"""

import atexit
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile

import amqp
import tokens
from rest import Client
from servers import Servers, SharedServers, free_port
from waiting import wait_until
from witness import WITNESS

BIN = os.environ.get("SLUICE_BIN") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../build/dev/bin")
TENANT = "acme"
PACE = int(os.environ.get("SLUICE_TEST_PACE", "1"))
BEAT_MS, LEASE_MS, DEFER_MS = 500 * PACE, 2000 * PACE, 1000 * PACE
READY_S = 60.0
OWN = ("keys", "work", "archive", "private", "held")  # what jobs do not reach
SHARED = "SLUICE_TEST_SHARED"  # a folder that the jobs of all sites may use: that of tmp_path
# Account of the database, of whose program; its name is made of the site's tag and this.
ACCOUNTS = {"sluice-web": "web", "sluice-worker": "worker", "sluice-recovery": "recovery",
            "sluice-alternate": "reader", "sluice-deadletter": "reader",
            "sluice-webhook": "webhook"}
ACCOUNT_PASSWORD = "sluice-test-account"


def shared_folder():
    """What the jobs of all sites that come after the first call may use."""
    if SHARED not in os.environ:
        os.environ[SHARED] = tempfile.mkdtemp(prefix="sluice-shared-")
        atexit.register(shutil.rmtree, os.environ[SHARED], ignore_errors=True)
    return os.environ[SHARED]


class Process:
    """One of our programs: its log lines, its end."""

    def __init__(self, site, program, name, env, ready_url, args=()):
        self.site, self.program, self.name, self.env = site, program, name, env
        self.url, self.args, self.tls = ready_url, list(args), None
        self.log_path = os.path.join(site.folder, f"{name}.log")
        self.prefix = []  # a program that runs it
        self.child = None

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.child = subprocess.Popen([*self.prefix, os.path.join(self.site.programs, self.program),
                                           *self.args], env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, cwd=self.site.folder)
        if wait:
            self.wait_ready()
        return self

    @property
    def pid(self):
        return self.child.pid

    def ready(self):
        """What /readyz answers now; None when nobody listens."""
        try:
            return Client(self.url, timeout_s=10, tls=self.tls).get("/readyz").status
        except OSError:
            return None

    def wait_ready(self, timeout_s=READY_S):
        def ready():
            assert self.child.poll() is None, f"{self.name} ended:\n{self.log_tail()}"
            return self.ready() == 200
        wait_until(lambda: f"{self.name} to be ready\n{self.log_tail()}", ready, timeout_s)

    def alive(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, signo):
        self.child.send_signal(signo)

    def wait(self, timeout_s=120.0):
        """Its exit status; negative for a signal."""
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end:\n{self.log_tail()}") from None

    def kill9(self):
        self.signal(signal.SIGKILL)
        return self.wait()

    def stop(self, timeout_s=120.0):
        self.signal(signal.SIGTERM)
        return self.wait(timeout_s)

    def log_text(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def log_tail(self):
        return self.log_text()[-6000:]

    def log_events(self, event=None):
        """Log lines as documents; those of one event."""
        found = []
        for line in self.log_text().splitlines():
            try:
                document = json.loads(line)
            except ValueError:
                continue
            if event is None or document.get("event") == event:
                found.append(document)
        return found

    def wait_log(self, what, timeout_s=60.0):
        """Waits for a log line that contains this text."""
        def found():
            return next((line for line in self.log_text().splitlines() if what in line), None)
        return wait_until(lambda: f"'{what}' in the log\n{self.log_tail()}", found, timeout_s)


class Site:
    """servers None: those of with_servers if it runs us, else private ones.
    programs: the folder of the programs that are started from now on."""

    def __init__(self, servers=None, programs=BIN):
        self.programs = programs
        self.processes = []
        self.audited = True  # at its end; False for a test that breaks rows by hand
        self.accepted = []  # ids of the jobs that clients of this site were promised
        self.accounted = 0  # so many of them were looked at by an injection
        self.own_servers = None
        self.shared = [os.environ[SHARED]] if SHARED in os.environ else []
        if servers is None and "SLUICE_TEST_DB_HOST" in os.environ:
            servers = SharedServers(os.environ)
        elif servers is None:
            servers = self.own_servers = Servers().__enter__()
        self.servers = servers
        self.tag = secrets.token_hex(4)
        self.schema, self.vhost = f"s_{self.tag}", f"s-{self.tag}"
        self.folder = tempfile.mkdtemp(prefix=f"sluice-site-{self.tag}-")
        for name in (*OWN, "shared"):
            os.mkdir(os.path.join(self.folder, name))
        self.shared.append(os.path.join(self.folder, "shared"))
        self.key = tokens.Key(os.path.join(self.folder, "private"), "k1")
        self.add_tenant(TENANT)
        servers.mariadb.sql(f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4")
        servers.rabbitmq.add_vhost(self.vhost)
        self.has_accounts = False
        self.may_be_denied = False  # True for a test that takes rights away
        self.run("migrate").check_returncode()
        self._make_accounts()

    def _make_accounts(self):
        """Each program has the rights that it needs and no more; a version of before accounts has
        those of the tests."""
        names = [f"'{self.account(name)}'@'%'" for name in sorted(set(ACCOUNTS.values()))]
        if "grants" not in self.run("help").stdout:
            return
        self.servers.mariadb.sql("".join(
            f"CREATE USER {name} IDENTIFIED BY '{ACCOUNT_PASSWORD}'; " for name in names))
        self.run("grants", "--apply", "--prefix", self.account("")).check_returncode()
        self.has_accounts = True

    def account(self, name):
        return f"{self.tag}_{name}"

    def path(self, *parts):
        """A folder of the service, or what its jobs may reach too."""
        return os.path.join(self.folder, *(() if not parts or parts[0] in OWN else ("shared",)), *parts)

    def environment(self, program=None, **settings):
        """SLUICE_* of a program of this site, with its account of the database; settings like
        web_port=0 come on top."""
        given = self.servers.environment()
        if program and self.has_accounts:
            settings = {"db_user": self.account(ACCOUNTS[program]),
                        "db_password": ACCOUNT_PASSWORD} | settings
        made = {
            "db_host": given["SLUICE_TEST_DB_HOST"], "db_port": given["SLUICE_TEST_DB_PORT"],
            "db_user": given["SLUICE_TEST_DB_USER"],
            "db_password": given["SLUICE_TEST_DB_PASSWORD"], "db_name": self.schema,
            "amqp_host": given["SLUICE_TEST_AMQP_HOST"],
            "amqp_port": given["SLUICE_TEST_AMQP_PORT"],
            "amqp_user": given["SLUICE_TEST_AMQP_USER"],
            "amqp_password": given["SLUICE_TEST_AMQP_PASSWORD"], "amqp_vhost": self.vhost,
            "auth_keys_dir": self.path("keys"), "archive_root": self.path("archive"),
            "amqp_heartbeat_s": 1, "fleet_beat_ms": BEAT_MS, "fleet_lease_ms": LEASE_MS, "fleet_defer_ms": DEFER_MS,
        } | settings
        if self.programs == BIN:  # those of a former version do not know it
            made.setdefault("recovery_test_networks", "127.0.0.0/8")
        env = {name: value for name, value in os.environ.items()
               if not name.startswith("SLUICE_") or name.startswith("SLUICE_FAULT")}
        return env | {f"SLUICE_{name.upper()}": str(value) for name, value in made.items()
                      if value is not None}

    def run(self, *args, client=None, stdin=None, timeout_s=120, **settings):
        """The sluice command; as a client's user if one is given. Text, not bytes."""
        env = self.environment(**settings)
        if client is not None:
            env |= {"SLUICE_URL": client.url, "SLUICE_TOKEN": client.token}
        return subprocess.run([os.path.join(self.programs, "sluice"), *args], env=env, input=stdin,
                              capture_output=True, text=True, timeout=timeout_s, check=False,
                              cwd=self.folder)

    # ---- programs

    def web(self, name="web", wait=True, tls=None, **settings):
        """tls: the ssl.SSLContext by which it is asked, if it has a certificate."""
        port = free_port()
        env = self.environment(program="sluice-web", web_port=port, **settings)
        scheme = "https" if tls else "http"
        process = Process(self, "sluice-web", name, env, f"{scheme}://127.0.0.1:{port}")
        process.tls = tls
        WITNESS.watch(port, os.path.join(self.programs, "sluice-web"))
        self.processes.append(process)
        return process.start(wait)

    def worker(self, queue="default", name=None, slots=4, tenant=TENANT, wait=True, prefix=(),
               **settings):
        name = name or f"{queue}-1"
        port = free_port()
        env = self.environment(program="sluice-worker", **({
            "worker_queue": queue, "worker_name": name, "worker_slots": slots,
            "worker_tenant": tenant, "worker_work_root": self.path("work"),
            "worker_monitor_port": port, "worker_grace_ms": 1000} | self.reach() | settings))
        process = Process(self, "sluice-worker", name, env, f"http://127.0.0.1:{port}")
        process.prefix = list(prefix)
        self.processes.append(process)
        return process.start(wait)

    def reach(self):
        """Settings by which jobs of tests leave their traces beside the folders of the service."""
        if self.programs != BIN:
            return {}  # the version before does not know them
        mine = pwd.getpwuid(os.geteuid()).pw_name  # what tests look at is theirs
        return {"worker_write_paths": ",".join(self.shared), "worker_deny_paths": self.path("private"),
                "worker_read_paths": os.path.abspath(BIN), "worker_job_user": mine}

    def reader(self, kind, name=None, wait=True, **settings):
        """sluice-alternate or sluice-deadletter: kind is "alternate" or "deadletter"."""
        port = free_port()
        env = self.environment(program=f"sluice-{kind}", **({f"{kind}_monitor_port": port} | settings))
        process = Process(self, f"sluice-{kind}", name or kind, env, f"http://127.0.0.1:{port}")
        self.processes.append(process)
        return process.start(wait)

    # ---- users

    def add_tenant(self, tenant, key=None):
        return (key or self.key).install(self.path("keys"), tenant)

    def token(self, user="ann", role="user", tenant=TENANT, key=None, **more):
        return tokens.token(key or self.key, tokens.claims(user, [role], tenant, **more))

    def client(self, web, user="ann", role="user", tenant=TENANT, **options):
        options = {"accepted": self.accepted, "tls": web.tls} | options
        return Client(web.url, self.token(user, role, tenant), **options)

    def stranger(self, web, user="eve", role="admin", tenant="other"):
        """A client of another tenant, which `web` has come to know: it looks at the folders of keys
        once a second at most."""
        self.add_tenant(tenant)
        client = self.client(web, user, role, tenant)
        wait_until(f"{tenant} to be known", lambda: client.get("/v1/whoami").status == 200)
        return client

    # ---- what is there

    def sql(self, text):
        return self.servers.mariadb.sql(text, self.schema)

    def count(self, table, where="1 = 1"):
        return int(self.sql(f"SELECT COUNT(*) FROM {table} WHERE {where}")[0][0])

    def job_row(self, job, *columns):
        rows = self.sql(f"SELECT {', '.join(columns)} FROM jobs WHERE id = 0x{job.replace('-', '')}")
        return rows[0] if rows else None

    def moves(self, job):
        """The states that the job went through, in order."""
        return [row[0] for row in self.sql(
            f"SELECT to_status FROM job_events WHERE job_id = 0x{job.replace('-', '')} "
            "AND (from_status IS NULL OR from_status <> to_status) ORDER BY seq")]

    def queues(self):
        return self.servers.rabbitmq.queues(self.vhost)

    def messages(self):
        """{queue: messages} of every queue that holds some, delivered or not."""
        return {name: ready + held for name, (ready, held, _) in self.queues().items()
                if ready + held}

    def amqp(self):
        given = self.servers.environment()
        return amqp.Connection(given["SLUICE_TEST_AMQP_HOST"], given["SLUICE_TEST_AMQP_PORT"],
                               given["SLUICE_TEST_AMQP_USER"],
                               given["SLUICE_TEST_AMQP_PASSWORD"], self.vhost)

    def wait_beats(self, count=2):
        """All live workers have beaten so often: their connection to the broker counts as a sign of
        life once a beat was written since."""
        def beats():
            return {name: int(beat) for name, beat in self.sql(
                "SELECT HEX(id), beat FROM workers WHERE state = 'live'")}
        before = beats()
        wait_until(f"{count} beats of {len(before)} workers", lambda: all(
            beat >= before.get(name, 0) + count for name, beat in beats().items()))

    def wait_clean(self, timeout_s=120.0):
        """No message in any queue and no row in the outbox: nothing is left to do."""
        seen = {}

        def clean():
            seen["messages"], seen["outbox"] = self.messages(), self.count("outbox")
            return not seen["messages"] and not seen["outbox"]
        wait_until(lambda: f"nothing left over: {seen}", clean, timeout_s, 0.5)

    # ---- the end

    def breaches(self):
        """What sluice audit finds; I5 asks for programs that run, and at the end none does."""
        done = self.run("audit", "-o", "json")
        assert done.returncode in (0, 1), done.stderr
        return [breach for breach in json.loads(done.stdout) if breach["invariant"] != "I5"]

    def denied(self):
        """Log lines of a program whose account of the database lacked a right."""
        found = []
        for name in os.listdir(self.folder):
            if name.endswith(".log"):
                with open(os.path.join(self.folder, name), encoding="utf-8",
                          errors="replace") as log:
                    found += [line for line in log if "command denied to user" in line]
        return [] if self.may_be_denied else found

    def end_programs(self):
        for process in self.processes:
            if process.alive():
                process.signal(signal.SIGKILL)
                process.wait()
        for pid in pids_below(self.folder):
            _kill(pid)  # runners outlive their workers, and jobs may outlive a test that failed
        self.processes.clear()

    def close(self):
        self.end_programs()
        breaches = []
        denied = self.denied()
        try:
            if self.audited:
                breaches = self.breaches()
            if self.own_servers is not None:
                self.own_servers.close()
            else:
                self.servers.rabbitmq.delete_vhost(self.vhost)
                self.servers.mariadb.sql(f"DROP DATABASE {self.schema}" + "".join(
                    f"; DROP USER IF EXISTS '{self.account(name)}'@'%'"
                    for name in set(ACCOUNTS.values())))
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        assert not breaches, breaches
        assert not denied, denied[:3]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


# ---- processes of jobs

def read_proc(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", "rb") as data:
            return data.read()
    except OSError:
        return b""


def _pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def running(pid):
    """True if the process is there and not a zombie."""
    stat = read_proc(pid, "stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def job_pids(job):
    """Processes that have the job's id in their environment: all that descends from its command."""
    mark = f"SLUICE_JOB_ID={job}".encode()
    return {pid for pid in _pids()
            if mark in read_proc(pid, "environ").split(b"\0") and running(pid)}


def pids_below(folder):
    """Processes, other than ours, whose arguments, environment or folder name this folder."""
    mark = folder.encode()
    found = set()
    for pid in _pids():
        if pid == os.getpid() or pid == os.getppid():
            continue
        try:
            where = os.readlink(f"/proc/{pid}/cwd").encode()
        except OSError:
            where = b""
        if where.startswith(mark) or mark in read_proc(pid, "cmdline") or mark in read_proc(pid, "environ"):
            found.add(pid)
    return found


def job_pids_below(folder):
    """Processes of jobs of workers whose work root is this folder."""
    return {pid for pid in pids_below(folder)
            if b"SLUICE_JOB_ID=" in read_proc(pid, "environ") and running(pid)}


def jobs_below(folder):
    """The jobs of these processes."""
    found = (read_proc(pid, "environ").partition(b"SLUICE_JOB_ID=")[2].partition(b"\0")[0]
             for pid in job_pids_below(folder))
    return {job.decode() for job in found if job}


def stopped(pid):
    """By a signal."""
    return read_proc(pid, "stat").rpartition(b")")[2].split()[:1] == [b"T"]


def runner_of(folder):
    """The pid of the runner that works in this folder; None if there is none."""
    for pid in pids_below(folder):
        words = read_proc(pid, "cmdline").split(b"\0")
        if words[0].endswith(b"sluice-runner") and running(pid):
            return pid
    return None


def parent(pid):
    return int(read_proc(pid, "stat").rpartition(b")")[2].split()[1])


def start_time(pid):
    """With the pid it names a process uniquely."""
    fields = read_proc(pid, "stat").rpartition(b")")[2].split()
    return int(fields[19]) if fields else None
