# SPDX-License-Identifier: MIT
"""servers: a private MariaDB and a private RabbitMQ for tests.

Each instance has its own state folder, ports on 127.0.0.1 and, for RabbitMQ, its own Erlang port
mapper, so that any number of them live side by side with each other and with the machine's own.

Every server is a child of this process and is ended by its own process id. A server is also told
by the kernel to end when the thread that started it ends: start them from the main thread.
"""

import contextlib
import ctypes
import fcntl
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

from waiting import wait_until

PR_SET_PDEATHSIG = 1
FIRST_PORT, LAST_PORT = 20000, 32000  # below the range that the kernel gives to outgoing calls
START_S = 120.0
STOP_S = 30.0
USER = "sluice"
PASSWORD = "sluice-test"
MARIADBD = "/usr/sbin/mariadbd"
RABBITMQ_BIN = "/usr/lib/rabbitmq/bin/"

_libc = ctypes.CDLL(None, use_errno=True)


def cache_folder():
    """What the tests of this user on this machine share."""
    cache = os.path.join(tempfile.gettempdir(), f"sluice-test-{os.geteuid()}")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    if os.stat(cache).st_uid != os.geteuid():
        raise RuntimeError(f"{cache} belongs to somebody else")
    return cache


class Ports:
    """Whoever chooses a port tells the others, by a lock on its byte of a file that ends with the
    process: they may choose at the same time, and a program may be away from its port for a while
    and come back."""

    def __init__(self):
        self.file, self.owner, self.chosen = None, None, set()

    def take(self, port):
        """False: somebody else has it, or it was given out here before."""
        if self.owner != os.getpid():  # locks are not inherited
            self.file = open(os.path.join(cache_folder(), "ports"), "ab")
            self.owner, self.chosen = os.getpid(), set()
        if port in self.chosen:
            return False
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
        self.chosen.add(port)
        return True


_ports = Ports()


def free_port():
    """A port that nobody listens on and that neither the kernel nor another test hands to anybody
    while this process lives."""
    for _ in range(1000):
        port = random.randint(FIRST_PORT, LAST_PORT)
        if not _ports.take(port):
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


def _in_child():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _call(argv, timeout_s, **more):
    try:
        return subprocess.run(argv, capture_output=True, check=False, timeout=timeout_s, **more)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(argv)}: no answer within {timeout_s:g} s") from None


class Server:
    """What both kinds share: one child process, its log file, its end."""

    name = "server"

    def __init__(self, folder):
        self.folder = folder
        self.process = None
        self.log_path = os.path.join(folder, f"{self.name}.log")
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def _spawn(self, argv, env=None):
        with open(self.log_path, "ab") as log:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                    cwd=self.folder, start_new_session=True,
                                    preexec_fn=_in_child)

    def _log_tail(self):
        with open(self.log_path, "rb") as log:
            return log.read()[-4000:].decode(errors="replace")

    def _check_alive(self):
        if self.process is None or self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended early:\n{self._log_tail()}")

    def wait_ready(self):
        def ready():
            self._check_alive()
            return self.answers()
        wait_until(lambda: f"{self.name} to answer\n{self._log_tail()}", ready, START_S, 0.1)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def _end(self, signo):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signo)
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def stop(self):
        """An orderly end; the state stays for the next start()."""
        self._end(signal.SIGTERM)

    def kill9(self):
        self._end(signal.SIGKILL)

    def suspend(self):
        """The server hangs: connections stay open and nothing is answered."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def restart(self):
        """An orderly end and a start on the same ports with the same state."""
        self.stop()
        self.start()
        self.wait_ready()

    def close(self):
        """The end for good: quick, the state is not wanted any more."""
        self.kill9()


class MariaDBClient:
    """Statements by TCP as the test user, who may do everything."""

    timeout_s = 120.0  # of one call, which hangs when the server does

    def __init__(self, host, port, user, password):
        self.address = ["--no-defaults", f"--host={host}", f"--port={port}", f"--user={user}"]
        self.password = password

    def sql(self, text, database=None):
        """Runs statements; the rows as lists of text (None for NULL)."""
        argv = ["mariadb", *self.address, "--batch", "--skip-column-names",
                "--default-character-set=utf8mb4"]
        if database:
            argv.append(database)
        done = _call(argv, self.timeout_s, input=text.encode(),
                     env=os.environ | {"MYSQL_PWD": self.password})
        if done.returncode:
            raise RuntimeError(f"{text}: {done.stderr.decode(errors='replace')}")
        return [[None if cell == "NULL" else cell for cell in line.split("\t")]
                for line in done.stdout.decode().splitlines()]

    @contextlib.contextmanager
    def transaction(self, text, database=None):
        """Statements in a transaction that stays open for as long as the block lasts."""
        argv = ["mariadb", *self.address, "--batch", "--skip-column-names", "--unbuffered"]
        with subprocess.Popen(argv + [database] if database else argv, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True,
                              env=os.environ | {"MYSQL_PWD": self.password}) as client:
            client.stdin.write(f"BEGIN; {text}; SELECT 'open';\n")
            client.stdin.flush()
            while (line := client.stdout.readline()) and line.strip() != "open":
                pass
            assert line, f"{text}: the client ended"
            try:
                yield
            finally:
                client.stdin.close()  # it ends, and the server rolls back


class MariaDB(Server, MariaDBClient):
    name = "mariadb"

    def __init__(self, folder, port=None, options=()):
        Server.__init__(self, folder)
        self.port = port or free_port()
        MariaDBClient.__init__(self, "127.0.0.1", self.port, "root", "")
        self.data = os.path.join(folder, "data")
        # The path of a unix socket is limited to 107 bytes: not below a deep state folder.
        self.socket_folder = tempfile.mkdtemp(prefix="sluice-db-")
        self.socket = os.path.join(self.socket_folder, "s")
        # Not /tmp: a server that starts removes the temporary tables there, also those of others.
        self.tmp = os.path.join(folder, "tmp")
        os.makedirs(self.tmp, exist_ok=True)
        self.options = list(options)

    def start(self):
        if not os.path.isdir(self.data):
            self._copy_template()
        argv = [MARIADBD, "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}",
                f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-name-resolve",
                f"--tmpdir={self.tmp}",
                f"--pid-file={self.folder}/mariadb.pid", "--max-connections=600",
                "--performance-schema=OFF", "--innodb-buffer-pool-size=128M",
                "--innodb-log-file-size=32M", "--character-set-server=utf8mb4"]
        if os.geteuid() == 0:
            argv.append("--user=root")
        self.process = self._spawn(argv + self.options)

    def answers(self):
        done = subprocess.run(["mariadb-admin", "--no-defaults", f"--socket={self.socket}",
                               "--user=root", "ping"], capture_output=True, check=False)
        return done.returncode == 0

    def create(self):
        """The user that the tests connect as; it may make schemas of its own."""
        self.sql(f"CREATE OR REPLACE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
                 f"GRANT ALL ON *.* TO '{USER}'@'%' WITH GRANT OPTION;"
                 "DELETE FROM mysql.global_priv WHERE User = ''; FLUSH PRIVILEGES;"
                 "CREATE DATABASE IF NOT EXISTS sluice_test CHARACTER SET utf8mb4")

    def close(self):
        super().close()
        shutil.rmtree(self.socket_folder, ignore_errors=True)

    def environment(self):
        return {"SLUICE_TEST_DB_HOST": "127.0.0.1", "SLUICE_TEST_DB_PORT": str(self.port),
                "SLUICE_TEST_DB_USER": USER, "SLUICE_TEST_DB_PASSWORD": PASSWORD,
                "SLUICE_TEST_DB_NAME": "sluice_test", "SLUICE_TEST_DB_SOCKET": self.socket}

    def _copy_template(self):
        """mariadb-install-db takes seconds: it runs once per machine and version."""
        version = subprocess.run([MARIADBD, "--no-defaults", "--version"], capture_output=True,
                                 check=True).stdout.decode()
        tag = re.sub(r"[^A-Za-z0-9.-]+", "_", version.split("Ver", 1)[-1].split("for")[0]).strip("_")
        template = os.path.join(cache_folder(), f"mariadb-{tag}")
        with open(template + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.isdir(template):
                making = template + ".new"
                shutil.rmtree(making, ignore_errors=True)
                argv = ["mariadb-install-db", "--no-defaults", f"--datadir={making}",
                        "--auth-root-authentication-method=normal", "--skip-test-db", "--force",
                        "--innodb-log-file-size=32M"]
                if os.geteuid() == 0:
                    argv.append("--user=root")
                with open(self.log_path, "ab") as log:
                    subprocess.run(argv, stdout=log, stderr=log, check=True,
                                   env=os.environ | {"TMPDIR": self.tmp})
                os.rename(making, template)
        shutil.copytree(template, self.data)


class RabbitMQClient:
    """What rabbitmqctl tells and does; each call costs half a second."""

    timeout_s = 120.0

    def __init__(self, command, user):
        self.command = command
        self.user = user

    def ctl(self, *args):
        done = _call([*self.command, *args], self.timeout_s)
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {' '.join(args)}: "
                               f"{(done.stderr + done.stdout).decode(errors='replace')}")
        return done.stdout.decode()

    def queues(self, vhost="sluice"):
        """{queue: (ready, unacknowledged, consumers)}"""
        text = self.ctl("--no-table-headers", "list_queues", "-p", vhost, "name",
                        "messages_ready", "messages_unacknowledged", "consumers")
        rows = [line.split("\t") for line in text.splitlines() if line.count("\t") == 3]
        return {row[0]: tuple(int(cell or 0) for cell in row[1:]) for row in rows}

    def add_vhost(self, vhost):
        """A virtual host that the test user may use; one call instead of two."""
        self.ctl("eval", f'rabbit_vhost:add(<<"{vhost}">>, <<"test">>), '
                 f'rabbit_auth_backend_internal:set_permissions(<<"{self.user}">>, <<"{vhost}">>, '
                 '<<".*">>, <<".*">>, <<".*">>, <<"test">>).')

    def delete_vhost(self, vhost):
        self.ctl("delete_vhost", vhost)

    def settle(self):
        """Has the broker write down what it knows of new quorum queues.

        RabbitMQ 3.10 does so of its own accord within 5 s. A kill before that leaves a queue that
        is listed as running and takes nothing, which no client can tell from a slow one.
        """
        self.ctl("eval", "[dets:sync(Table) || Table <- dets:all()].")

    def close_connections(self, vhost, reason="test"):
        self.ctl("close_all_connections", "-p", vhost, reason)


class RabbitMQ(Server, RabbitMQClient):
    """`config` holds lines of rabbitmq.conf, `erl` further arguments of the Erlang machine."""

    name = "rabbitmq"

    def __init__(self, folder, port=None, config=None, plugins=(), erl="", epmd_port=None):
        Server.__init__(self, folder)
        self.port = port or free_port()
        self.epmd_port = epmd_port or free_port()
        self.dist_port = free_port()
        self.epmd = None
        self.plugins = plugins
        self.erl = erl
        self.node = f"sluice{self.port}@localhost"
        RabbitMQClient.__init__(self, [
            "env", f"HOME={folder}", f"ERL_EPMD_PORT={self.epmd_port}",
            f"ERL_CRASH_DUMP={folder}/erl_crash.dump", RABBITMQ_BIN + "rabbitmqctl", "--quiet", "-n", self.node], USER)
        self.config = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            "loopback_users": "none",
            "default_vhost": "sluice",
            "default_user": USER,
            "default_pass": PASSWORD,
            "disk_free_limit.absolute": "50MB",
            "log.file.level": "info",
        }
        self.config.update(config or {})

    def _environment(self):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("RABBITMQ_", "ERL_")) and name != "NOTIFY_SOCKET"}
        env.update({
            "HOME": self.folder,
            "LANG": "C.UTF-8",
            "ERL_EPMD_PORT": str(self.epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_CRASH_DUMP": f"{self.folder}/erl_crash.dump",
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_MNESIA_BASE": f"{self.folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{self.folder}/log",
            "RABBITMQ_CONFIG_FILE": f"{self.folder}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": f"{self.folder}/none",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{self.folder}/none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.folder}/plugins",
            "RABBITMQ_PID_FILE": f"{self.folder}/rabbitmq.pid",
        })
        return env

    def start(self):
        self._write_files()
        env = self._environment()
        if self.epmd is None or self.epmd.poll() is not None:
            self.epmd = self._spawn(["epmd", "-port", str(self.epmd_port), "-address",
                                     "127.0.0.1"], env)
        # With this the start script becomes the Erlang machine: its process id is ours to end.
        env["RABBITMQ_ALLOW_INPUT"] = "1"
        env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] = (
            "-noinput +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none "
            "-kernel inet_dist_use_interface {127,0,0,1} "
            f"-rabbit quorum_tick_interval 500 {self.erl}")
        self.process = self._spawn([RABBITMQ_BIN + "rabbitmq-server"], env)

    def _write_files(self):
        with open(f"{self.folder}/rabbitmq.conf", "w", encoding="ascii") as out:
            out.writelines(f"{key} = {value}\n" for key, value in self.config.items())
        with open(f"{self.folder}/plugins", "w", encoding="ascii") as out:
            out.write(f"[{','.join(self.plugins)}].\n")
        cookie = f"{self.folder}/.erlang.cookie"
        if not os.path.exists(cookie):
            with open(cookie, "w", encoding="ascii") as out:
                out.write("%032x" % random.getrandbits(128))
            os.chmod(cookie, 0o400)

    def answers(self):
        """True when it greets a client: the listener opens last."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as call:
                call.sendall(b"AMQP\x00\x00\x09\x01")
                head = call.recv(7)
                return len(head) == 7 and struct.unpack(">BHI", head)[:2] == (1, 0)
        except OSError:
            return False

    def close(self):
        super().close()
        if self.epmd is not None:
            self.epmd.kill()
            self.epmd.wait()
            self.epmd = None

    def environment(self):
        return {"SLUICE_TEST_AMQP_HOST": "127.0.0.1", "SLUICE_TEST_AMQP_PORT": str(self.port),
                "SLUICE_TEST_AMQP_USER": USER, "SLUICE_TEST_AMQP_PASSWORD": PASSWORD,
                "SLUICE_TEST_AMQP_VHOST": self.config["default_vhost"],
                # The beginning of a shell command line, for tests that are not Python.
                "SLUICE_TEST_RABBITMQCTL": " ".join(self.command)}


class Together:
    """Servers that one `with` starts and closes; what had started is closed if the rest does not."""

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *unused):
        self.close()


class Servers(Together):
    """Both of them, started side by side in a folder of their own."""

    def __init__(self, folder=None, config=None, erl="", mariadb_options=()):
        self.made = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="sluice-servers-")
        self.mariadb = MariaDB(os.path.join(self.folder, "mariadb"), options=mariadb_options)
        self.rabbitmq = RabbitMQ(os.path.join(self.folder, "rabbitmq"), config=config, erl=erl)

    def start(self):
        self.rabbitmq.start()
        self.mariadb.start()
        self.mariadb.wait_ready()
        self.mariadb.create()
        self.rabbitmq.wait_ready()

    def close(self):
        self.mariadb.close()
        self.rabbitmq.close()
        if self.made:
            shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self):
        return self.mariadb.environment() | self.rabbitmq.environment()


class SharedServers:
    """Those that with_servers told us of: they are for many tests, so nobody stops them."""

    def __init__(self, env):
        self.env = {name: value for name, value in env.items() if name.startswith("SLUICE_TEST_")}
        user, password = env["SLUICE_TEST_DB_USER"], env["SLUICE_TEST_DB_PASSWORD"]
        self.mariadb = MariaDBClient(env["SLUICE_TEST_DB_HOST"], env["SLUICE_TEST_DB_PORT"],
                                     user, password)
        self.rabbitmq = RabbitMQClient(env["SLUICE_TEST_RABBITMQCTL"].split(),
                                       env["SLUICE_TEST_AMQP_USER"])

    def environment(self):
        return dict(self.env)

    def close(self):
        pass
