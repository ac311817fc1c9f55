# SPDX-License-Identifier: MIT
"""The Debian package: it installs on a machine where nothing is, runs a job there, its units and
pages are sound, and it leaves nothing behind but data."""

import glob
import shutil

import pytest

from engine import HERE, ROOT, Engine, documented, run

UNITS = ("sluice-web", "sluice-recovery", "sluice-alternate", "sluice-deadletter",
         "sluice-webhook", "sluice-worker@one")
EXPOSURE_MAX = 35  # of 100, as systemd-analyze counts; 50 and more it calls "exposed"


class Machine:
    """A container of the image into which the package was installed."""

    def __init__(self, engine):
        self.engine = engine
        self.name = engine.docker("run", "-d", "--network", "host", "packaged", "sleep",
                                  "infinity").strip()

    def run(self, *command):
        return self.engine.docker("exec", self.name, *command)


@pytest.fixture(scope="module", name="machine")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    for block in documented("docker/README.md", "package"):
        run("bash", "-e", "-c", block.text, cwd=ROOT, timeout=1200)
    for package in glob.glob(f"{ROOT}/build/release/*.deb"):
        shutil.copy(package, folder)
    with Engine() as engine:
        engine.build("packaged", f"{HERE}/package.Dockerfile", str(folder))
        yield Machine(engine)


def test_a_job_runs(machine):
    told = machine.run("sh", "-c", "sluice dev --detach --state /var/tmp/dev && "
                       "sluice run -- echo 'from a package' && "
                       "sluice dev --stop --state /var/tmp/dev")
    print(told)
    assert "\nfrom a package\n" in told


def test_the_user_and_the_folders_are_there(machine):
    assert "sluice:x:" in machine.run("getent", "passwd", "sluice")
    assert machine.run("stat", "-c", "%U %a", "/var/lib/sluice/archive") == "sluice 750\n"
    assert machine.run("stat", "-c", "%U %a", "/etc/sluice/keys") == "root 755\n"


def test_the_units_are_sound(machine):
    machine.run("sh", "-c", "touch /etc/sluice/workers/one.env")
    for unit in UNITS:
        said = machine.run("systemd-analyze", "verify", "--man=yes", f"{unit}.service")
        assert "sluice" not in said, said
        template = unit.replace("@one", "@")
        said = machine.run("systemd-analyze", "security", "--offline=true",
                           f"--threshold={EXPOSURE_MAX}", "--no-pager",
                           f"/usr/lib/systemd/system/{template}.service")
        print(said.splitlines()[-1])


def test_the_pages_read_without_a_warning(machine):
    pages = machine.run("sh", "-c", "ls /usr/share/man/man*/sluice*").split()
    assert len(pages) == 9
    for page in pages:
        said = machine.run("sh", "-c", f"zcat -f {page} | groff -man -Tutf8 -ww -b >/dev/null")
        assert said == "", said


def test_shells_complete_commands_and_flags(machine):
    asked = ("source /usr/share/bash-completion/completions/sluice; "
             "COMP_WORDS=(sluice %s); COMP_CWORD=%d; _sluice; echo ${COMPREPLY[@]}")
    assert "queue" in machine.run("bash", "-c", asked % ("que", 1)).split()
    assert machine.run("bash", "-c", asked % ("queue p", 2)).split() == ["put"]
    assert machine.run("bash", "-c", asked % ("queue put --pri", 3)).split() == ["--priority"]
    machine.run("zsh", "-n", "/usr/share/zsh/vendor-completions/_sluice")
    said = machine.run("fish", "-c", "complete -C 'sluice queue p'")
    assert said.startswith("put\t"), said


def test_removing_it_keeps_the_data(machine):
    machine.run("sh", "-c", "echo kept > /var/lib/sluice/archive/file")
    machine.run("apt-get", "remove", "-y", "sluice")
    assert machine.run("cat", "/var/lib/sluice/archive/file") == "kept\n"
    assert machine.run("sh", "-c", "ls /usr/bin/sluice* 2>/dev/null | wc -l").strip() == "0"
