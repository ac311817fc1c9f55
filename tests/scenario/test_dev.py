# SPDX-License-Identifier: MIT
"""sluice dev: what others on the machine see of it, and what becomes of a server that ends."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from sluice import BIN, read_proc
from waiting import wait_until

NOBODY = 65534
SERVERS = ("mariadb", "rabbitmq", "epmd")


class Dev:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-dev-")
        os.chmod(self.folder, 0o755)  # others may enter it, but not what is inside
        self.state = os.path.join(self.folder, "state")
        self.env = {"PATH": os.environ["PATH"], "HOME": self.folder}

    def sluice(self, *args, **more):
        return subprocess.run([os.path.join(BIN, "sluice"), *args], env=self.env | more, text=True,
                              capture_output=True, timeout=300, check=False)

    def dev(self, *args):
        return self.sluice("dev", "--state", self.state, *args)

    def processes(self):
        """{name: (pid, port)}; None while nothing runs."""
        done = self.dev("--status", "-o", "json")
        if done.returncode:
            return None
        return {process["name"]: (process["pid"], process.get("port"))
                for process in json.loads(done.stdout)["processes"]}

    def log(self, name):
        with open(os.path.join(self.state, "log", f"{name}.log"), encoding="utf-8",
                  errors="replace") as text:
            return text.read()

    def secrets(self):
        folder = os.path.join(self.state, "secrets")
        found = {}
        for name in os.listdir(folder):
            if name != "init.sql":
                with open(os.path.join(folder, name), encoding="ascii") as text:
                    found[name] = text.read()
        return found

    def run_job(self):
        return self.sluice("run", "--", "echo", "well")

    def know(self, current, *names):
        """Contexts of other sites, before or beside our own; answers what is kept by then."""
        path = os.path.join(self.folder, ".config/sluice/contexts.json")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        kept = {"contexts": {}}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as text:
                kept = json.load(text)
        for name in names:
            kept["contexts"][name] = {"url": "http://127.0.0.1:9", "token": "x", "tenant": "demo",
                                      "state": f"/elsewhere/{name}"}
        kept |= {"current": current} if current else {}
        with open(path, "w", encoding="utf-8") as out:
            json.dump(kept, out)
        return kept

    def contexts(self):
        return {context["name"]: context
                for context in json.loads(self.sluice("context", "ls", "-o", "json").stdout)}


@pytest.fixture(scope="module")
def stack():
    made = Dev()
    made.know(None, "state")  # of another checkout, whose folder has the same name
    done = made.dev("--detach")
    try:
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        made.dev("--stop")
        shutil.rmtree(made.folder, ignore_errors=True)


def test_it_has_a_context_of_its_own_and_is_the_current_site_if_there_was_none(stack):
    port = stack.processes()["sluice-web"][1]
    found = stack.contexts()
    assert set(found) == {"state", f"state-{port}"}
    assert found["state"]["url"] == "http://127.0.0.1:9" and not found["state"]["current"]
    assert found[f"state-{port}"]["current"] and found[f"state-{port}"]["user"] == "admin"
    assert json.loads(stack.sluice("whoami", "-o", "json").stdout)["context"] == f"state-{port}"


def mariadb(stack, user, text, password=""):
    """As nobody of the system, if we may become one."""
    port = stack.processes()["mariadb"][1]
    who = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
    return subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}",
                           "sluice"], input=text, capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "MYSQL_PWD": password}, **who)


def test_nobody_is_root_of_the_database_over_the_network(stack):
    for user in ("root", "", "mysql", "sluice", "sluice_web"):
        done = mariadb(stack, user, "SELECT 1")
        assert done.returncode and "ERROR 1" in done.stderr, (user, done.stdout)


def test_accounts_of_the_database_write_no_files_and_read_none(stack):
    secrets = stack.secrets()
    target = os.path.join(stack.state, "stolen")
    for user, name in (("sluice", "db_password"), ("sluice_web", "db_web"),
                       ("sluice_worker", "db_worker")):
        assert mariadb(stack, user, "SELECT 1", secrets[name]).returncode == 0
        done = mariadb(stack, user, f"SELECT 1 INTO OUTFILE '{target}'", secrets[name])
        assert "FILE privilege" in done.stderr, done.stderr
        assert "ERROR" in mariadb(stack, user, "SELECT * FROM mysql.global_priv",
                                  secrets[name]).stderr
    assert not os.path.exists(target)
    assert "secure-file-priv" in read_proc(stack.processes()["mariadb"][0], "cmdline").decode()


def test_no_process_has_a_password_in_its_arguments_or_environment(stack):
    secrets = stack.secrets()
    assert {"db_password", "db_web", "db_worker", "amqp_password", "cookie"} <= set(secrets)
    for name, (pid, _port) in stack.processes().items():
        for part in ("cmdline", "environ"):
            text = read_proc(pid, part).decode(errors="replace")
            assert text, (name, part)
            assert not [secret for secret, value in secrets.items() if value in text], (name, part)


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_that_ends_is_started_again(stack, server):
    before = stack.processes()
    os.kill(before[server][0], signal.SIGKILL)

    def again():
        now = stack.processes()
        assert now, stack.log("dev")
        return now[server][0] and now[server][0] != before[server][0]
    wait_until(f"{server} again", again, 60)
    assert f"{server} ended: starting it again (1 of 5)" in stack.log("dev")
    wait_until("a job to run", lambda: stack.run_job().stdout == "well\n", 120)
    kept = stack.processes()
    assert kept["sluice-dev"] == before["sluice-dev"]


def test_a_server_that_never_stays_up_ends_it_with_a_reason(stack):
    killed = set()

    def strike():
        now = stack.processes()
        pid = now and now["epmd"][0]
        if pid and pid not in killed:
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)
        return not now
    wait_until("the end", strike, 120)
    assert "epmd ended 6 times" in stack.log("dev")


def test_a_site_that_is_chosen_stays_chosen_when_another_starts(stack):
    wait_until("the end of the one before", lambda: not stack.processes(), 60)
    kept = stack.know("prod", "prod")["contexts"]
    done = stack.dev("--detach")
    assert done.returncode == 0, done.stderr
    found = stack.contexts()
    assert set(found) == set(kept) and [name for name in found if found[name]["current"]] == ["prod"]
    own = next(name for name in found if name.startswith("state-"))
    assert found[own]["url"] == f"http://127.0.0.1:{stack.processes()['sluice-web'][1]}"
    assert stack.sluice("run", "--context", own, "--", "echo", "well").stdout == "well\n"
