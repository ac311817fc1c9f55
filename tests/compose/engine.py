# SPDX-License-Identifier: MIT
"""engine: a Docker engine of our own, in a network namespace that it made itself.

Images are built by an engine in the machine's own network (packages have to come from somewhere);
the site then runs in a namespace without a way out, where bridges, addresses and published ports
touch nothing of the machine. The public images cannot be pulled there: stand-ins under their names
are made of the distribution's packages.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile

import markdown
from waiting import wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BASE = "debian:bookworm-slim"
STAND_INS = {"mariadb:10.11": "mariadb", "rabbitmq:3.13": "rabbitmq"}
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def run(*command, **options):
    """The command's output; AssertionError with all of it if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=options.pop("timeout", 600), **options)
    assert done.returncode == 0, f"{command} ended {done.returncode}:\n{done.stdout[-8000:]}"
    return done.stdout


def documented(path, marker):
    """The blocks of commands of a page that this suite runs."""
    with open(f"{ROOT}/{path}", encoding="utf-8") as text:
        blocks, _ = markdown.read(path, text.read())
    return [block for block in blocks if block.language == "sh" and block.marker == marker]


class Namespace:
    """A network of its own; enter() moves the calling thread, and those it starts, into it."""

    def __init__(self, name):
        self.name, self.path = name, f"/run/netns/{name}"
        self._home = os.open("/proc/self/ns/net", os.O_RDONLY)
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")

    def _set(self, fd):
        if LIBC.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")

    def enter(self):
        fd = os.open(self.path, os.O_RDONLY)
        self._set(fd)
        os.close(fd)

    def close(self):
        self._set(self._home)
        os.close(self._home)
        run("ip", "netns", "del", self.name)


class Engine:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-compose-", dir="/var/tmp")
        self.socket = f"unix://{self.folder}/docker.sock"
        self.environment = os.environ | {"DOCKER_HOST": self.socket, "DOCKER_BUILDKIT": "0"}
        self.daemon, self.namespace = None, None

    def __enter__(self):
        try:
            self._start("--iptables=false", "--ip6tables=false", "--bridge=none")
            self._make_base()
        except BaseException:
            self.__exit__()
            raise
        return self

    def isolate(self):
        """From here on containers, and the calling thread, are in a network of their own."""
        self._stop()
        self.namespace = Namespace(f"sluice-{os.getpid()}")
        self._start(namespace=self.namespace.path)
        self.namespace.enter()

    def __exit__(self, *_):
        if self.daemon and self.daemon.poll() is None:
            for container in self.docker("ps", "-aq").split():
                self.docker("rm", "-fv", container)
            self._stop()
        if self.namespace:
            self.namespace.close()
        left = f"{self.folder}/exec/netns/default"  # the engine leaves it mounted
        subprocess.run(["umount", left], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *options, namespace=None):
        enter = ["nsenter", f"--net={namespace}"] if namespace else []
        with open(f"{self.folder}/dockerd.log", "ab") as log:
            self.daemon = subprocess.Popen(
                [*enter, "dockerd", "--data-root", f"{self.folder}/data", "--exec-root",
                 f"{self.folder}/exec", "-H", self.socket, "--pidfile", f"{self.folder}/pid",
                 *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

        def answers():
            assert self.daemon.poll() is None, self._log()
            return subprocess.run(["docker", "version"], env=self.environment, check=False,
                                  capture_output=True).returncode == 0
        wait_until(self._log, answers, 60)

    def _log(self):
        with open(f"{self.folder}/dockerd.log", encoding="utf-8", errors="replace") as log:
            return log.read()[-4000:]

    def _stop(self):
        self.daemon.send_signal(signal.SIGTERM)
        self.daemon.wait(60)

    def docker(self, *words, **options):
        return run("docker", *words, env=self.environment, **options)

    def _make_base(self):
        tree = f"{self.folder}/base"
        run("debootstrap", "--variant=minbase", "bookworm", tree)
        # Whatever authorities this machine trusts, containers that fetch packages here have to.
        shutil.copy(AUTHORITIES, f"{tree}/etc/machine-ca.crt")
        with subprocess.Popen(["tar", "-C", tree, "-c", "."], stdout=subprocess.PIPE) as tar:
            run("docker", "import", "--change", "ENV NODE_EXTRA_CA_CERTS=/etc/machine-ca.crt", "-",
                BASE, env=self.environment, stdin=tar.stdout)
        shutil.rmtree(tree)

    def build(self, tag, dockerfile, folder):
        return self.docker("build", "--network", "host", "-t", tag, "-f", dockerfile, folder,
                           timeout=3600)

    def make_site_images(self):
        """The stand-ins, and ours by its Dockerfile."""
        for tag, name in STAND_INS.items():
            self.build(tag, f"{HERE}/{name}.Dockerfile", HERE)
        self.build("sluice:local", f"{ROOT}/docker/Dockerfile", ROOT)
