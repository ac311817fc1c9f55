# SPDX-License-Identifier: MIT
"""What a hostile job reaches: the service's secrets, its sockets, its processes, other jobs."""

import glob
import json
import os
import re
import secrets
import socket

import pytest

import jobs
from attacks import attacked
from sluice import runner_of
from waiting import wait_until

HOSTILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile.py")
DENIED = {"EACCES", "EPERM", "EXDEV"}
NOBODY = 65534


class Lair:
    """A worker whose jobs are hostile, and what they want."""

    def __init__(self, stand, tmp_path, name, priority, uid=None, **settings):
        """uid: of the whole worker."""
        self.stand, self.site, self.name = stand, stand.site, name
        site = self.site
        self.secret = self.keep("db_password", site.environment(program="sluice-worker")["SLUICE_DB_PASSWORD"])
        self.conf = self.keep("sluice.conf", "[log]\nlevel = info\n")
        self.private = next(iter(glob.glob(site.path("private", "*"))))
        queue = f"lair-{name}"
        stand.root.put(f"/v1/queues/{queue}", {"priority": priority, "filter": f"'{queue}' IN tags"}).expect(201)
        settings = {"db_password": None, "db_password_file": self.secret, "config": self.conf} | settings
        prefix = []
        if uid is not None:
            for path in (self.secret, self.conf):
                os.chown(path, uid, uid)
            work = site.path("work", name)
            os.makedirs(work)
            os.chown(work, uid, uid)
            prefix = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
            settings |= {"worker_work_root": work}
        self.worker = site.worker(queue, prefix=prefix, **settings)
        self.queue = queue
        self.folder = os.path.join(settings.get("worker_work_root", site.path("work")), f"{queue}-1")
        self.traces = jobs.Traces(str(tmp_path / name))
        os.chmod(self.traces.folder, 0o777)

    def keep(self, name, text):
        folder = self.site.path("held")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"{self.name}-{name}")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(path, 0o600)
        return path

    def submit(self, *command, **members):
        return self.stand.ann.submit(*command, tags=[self.queue], **members)

    def ended(self, *command):
        job = self.submit(*command)
        assert self.stand.ann.wait_end(job, 60)["status"] == "FINISHED", self.stand.ann.output(job, "stderr")
        return job

    def attempts(self, wishes):
        """{name: what came of it}"""
        with open(HOSTILE, encoding="utf-8") as text:
            script = text.read()
        job = self.ended("/usr/bin/python3", "-c", script, json.dumps(wishes))
        return json.loads(self.stand.ann.output(job))

    def victim(self):
        """A job of somebody else: it runs, and has a file in its folder. (pid, folder, id)"""
        job = self.submit("sh", "-c", "umask 022; echo mine >own.txt; echo $$ >pid; exec sleep 600")
        note = wait_until("the victim's folder", lambda: next(
            iter(glob.glob(f"{self.folder}/jobs/{job}*/pid")), None))
        folder = os.path.dirname(note)
        pid = wait_until("its pid", lambda: read_text(note).strip())
        return int(pid), folder, job

    def runner(self):
        return runner_of(self.folder)


def read_text(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


def wishes_for_files(lair, victim, archived):
    _, folder, _ = victim
    work = lair.folder
    return [
        ["secret", "read", lair.secret],
        ["configuration", "read", lair.conf],
        ["key that signs", "read", lair.private],
        ["journal", "read", f"{work}/runner.journal.0"],
        ["journal, to write", "write", f"{work}/runner.journal.0"],
        ["identity", "read", f"{work}/identity"],
        ["lock", "remove", f"{work}/runner.lock"],
        ["secret of the runner", "read", f"{work}/runner.secret"],
        ["log of the runner", "read", f"{work}/runner.log"],
        ["work folders", "entries", f"{work}/jobs"],
        ["folder beside its own", "make", f"{work}/jobs/mine"],
        ["file of another job", "read", f"{folder}/own.txt"],
        ["file of another job, to write", "write", f"{folder}/own.txt"],
        ["file of another job, cut", "cut", f"{folder}/own.txt"],
        ["file of another job, linked", "link", f"{folder}/own.txt"],
        ["output of another job", "read", archived],
        ["output of another job, to write", "write", archived],
        ["output of another job, cut", "cut", archived],
        ["output of another job, removed", "remove", archived],
        ["archive", "entries", lair.site.path("archive")],
        ["archive, to write", "make", lair.site.path("archive", f"m-{secrets.token_hex(4)}")],
        ["device", "device"],
    ]


def wishes_for_processes(lair, victim, abstract):
    pid, _, _ = victim
    runner, worker = lair.runner(), lair.worker.pid
    return [
        ["descriptors", "descriptors"],
        ["environ of the worker", "read", f"/proc/{worker}/environ"],
        ["memory of the worker", "read", f"/proc/{worker}/mem"],
        ["descriptors of the worker", "follow", f"/proc/{worker}/fd/1"],
        ["descriptors of the runner", "follow", f"/proc/{runner}/fd/1"],
        ["root of the runner", "entries", f"/proc/{runner}/root/"],
        ["environ of another job", "read", f"/proc/{pid}/environ"],
        ["folder of another job", "entries", f"/proc/{pid}/cwd/"],
        ["limits of the worker", "limit", worker],
        ["limits of the runner", "limit", runner],
        ["limits of another job", "limit", pid],
        ["signal to the worker", "signal", worker],
        ["signal to the runner", "signal", runner],
        ["signal to another job", "signal", pid],
        ["trace of the runner", "trace", runner],
        ["trace of another job", "trace", pid],
        ["abstract socket", "abstract", abstract],
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lairs")


@pytest.fixture(scope="module")
def abstract():
    """An abstract socket of the host that takes everybody."""
    name = f"sluice-test-{secrets.token_hex(8)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen(64)
        yield name


@pytest.fixture(scope="module")
def lair(stand, folder):
    return Lair(stand, folder, "same", 50)


def let_through(stand):
    """The folders of a site that was installed: others pass through, the archive is closed."""
    os.chmod(stand.site.folder, 0o711)
    os.chmod(stand.site.path("archive"), 0o750)


@pytest.fixture(scope="module")
def other_lair(stand, folder):
    """Jobs run as nobody, which a worker that is root does by itself."""
    let_through(stand)
    return Lair(stand, folder, "other", 52, worker_job_user="")


@pytest.fixture(scope="module")
def plain_lair(stand, folder):
    """The same on a kernel without Landlock."""
    let_through(stand)
    return Lair(stand, folder, "plain", 53, worker_job_user="nobody", worker_confine="off")


@pytest.fixture(scope="module")
def low_lair(stand, folder):
    """The whole worker is nobody, as in the units and in containers."""
    let_through(stand)
    os.makedirs(stand.site.path("archive", "acme"), exist_ok=True)
    for path in (stand.site.path("archive"), stand.site.path("archive", "acme")):
        os.chmod(path, 0o777)
    return Lair(stand, folder, "low", 54, uid=NOBODY, worker_job_user="")


@pytest.fixture(scope="module")
def open_lair(stand, folder):
    """The same without confinement: what is not open there would prove nothing here."""
    return Lair(stand, folder, "open", 51, worker_confine="off")


def archived_of(lair):
    done = lair.ended("echo", "kept")
    run = lair.site.path("archive", "acme", done)
    return os.path.join(run, sorted(os.listdir(run))[0], "stdout")


def judge(hit, seen):
    for name, result in seen.items():
        hit.held(result in DENIED or (name == "descriptors" and result == "ENOENT"), f"{name}: {result}")


def test_files_of_others_are_closed(stand, lair):
    with attacked("confine files", stand) as hit:
        judge(hit, lair.attempts(wishes_for_files(lair, lair.victim(), archived_of(lair))))


def test_files_are_open_without_confinement(open_lair):
    wishes = wishes_for_files(open_lair, open_lair.victim(), archived_of(open_lair))
    seen = open_lair.attempts([wish for wish in wishes if wish[0] not in ("lock", "device")])
    assert {name for name, result in seen.items() if result != "open"} <= {
        "journal", "output of another job, removed"}, seen


def test_processes_of_others_are_closed(stand, lair, abstract):
    with attacked("confine processes", stand) as hit:
        judge(hit, lair.attempts(wishes_for_processes(lair, lair.victim(), abstract)))


# Programs, its own folder, temporary files, pipes by name, shared memory, name service.
NEEDS = """set -ex
test "$TMPDIR" = "$HOME"; test "$PWD" -ef "$HOME"; test "$(ulimit -c)" = 0
test "$(ulimit -Hn)" -le 65536; test "$(ulimit -u)" -le 4096
cat given/input
mkdir -p a/b; echo x >a/b/c; mv a/b/c a/d; ln a/d e; ln -s e f; mkfifo g; mktemp; cat e f
cp /bin/echo run; ./run ran
echo named >/dev/stderr; echo null >/dev/null; head -c 1 /dev/urandom >r
getent passwd root; getent hosts localhost; ls /usr/bin >l; test -s l
cat /etc/hostname /proc/self/status /proc/cpuinfo >p; ls /sys/devices/system/cpu >c
/usr/bin/python3 -c 'import multiprocessing as m; m.Lock(); m.Pool(2).map(abs, [1, -1])'
/usr/bin/python3 -c 'import socket; socket.create_server(("127.0.0.1", 0))'
perl -e 'print "perl\\n"'
echo result >kept; mkdir -p dir/deep; echo result >dir/deep/kept
"""


def needs(lair):
    """A job that does what jobs do; its results are kept, and nothing of it is left behind."""
    ann = lair.stand.ann
    job = lair.submit("bash", "-c", NEEDS, archive={"includes": ["kept", "dir/**"]}, fileInputs=[
        {"content": "given", "targetPath": "given/input"}])
    assert ann.wait_end(job, 60)["status"] == "FINISHED", ann.output(job, "stderr")
    assert ann.get(f"/v1/jobs/{job}/files/dir/deep/kept").expect(200).body == b"result\n"
    wait_until("its folder to go", lambda: not glob.glob(f"{lair.folder}/jobs/{job}*"))
    return job


def test_what_a_job_needs_is_there(lair):
    needs(lair)


def test_jobs_of_another_user_have_what_they_need(other_lair):
    job = needs(other_lair)
    assert "uid=65534" in other_lair.stand.ann.output(other_lair.ended("id")).decode()
    assert job


def test_another_user_reaches_nothing(stand, other_lair, abstract):
    with attacked("confine user", stand) as hit:
        victim, archived = other_lair.victim(), archived_of(other_lair)
        judge(hit, other_lair.attempts(wishes_for_files(other_lair, victim, archived)))
        judge(hit, other_lair.attempts(wishes_for_processes(other_lair, victim, abstract)))
        judge(hit, other_lair.attempts([["mode of the output of another job", "mode", archived]]))


def test_another_user_does_not_reach_the_service_without_landlock(stand, plain_lair, abstract):
    with attacked("confine user", stand) as hit:
        victim, archived = plain_lair.victim(), archived_of(plain_lair)
        seen = plain_lair.attempts(wishes_for_files(plain_lair, victim, archived) +
                                   wishes_for_processes(plain_lair, victim, abstract))
        judge(hit, {name: result for name, result in seen.items()
                    if name != "abstract socket" and name != "folder beside its own"
                    and not re.search("(file|folder|environ|signal to|trace of|limits of) .*another job", name)})


# Puts a link in the place of a folder, as soon as it may: base, a file that tells the job, what the
# link leads to.
SWAP = """
import os, sys
base, note, target = sys.argv[1:]
while not os.path.exists(note):
    pass
with open(note) as text:
    folder = f"{base}/jobs/{text.read()}.1"
while True:
    try:
        os.rename(f"{folder}/zz", f"{folder}/yy")
        break
    except OSError:
        pass
os.symlink(target, f"{folder}/zz")
"""


def test_a_folder_is_given_with_nobody_in_it(stand, plain_lair, folder):
    """Its inputs are given to the job's user by root, path by path: another job of this user, which
    nothing else keeps out, must not lead that to files of root."""
    with attacked("confine given", stand) as hit:
        lair, target, note = plain_lair, folder / "of-root", stand.site.path("swap-this")
        (target / "deep").mkdir(parents=True)
        (target / "deep" / "file").write_text("of root")
        swapper = lair.submit("/usr/bin/python3", "-c", SWAP, lair.folder, note, str(target))
        lair.stand.ann.wait_status(swapper, "RUNNING")
        deep = "e/" * 8
        job = lair.submit("sh", "-c", "until test -e yy; do sleep 0.1; done", fileInputs=[
            {"content": "x", "targetPath": f"d{i}/{deep}f"} for i in range(200)] + [
            {"content": "x", "targetPath": "zz/f"}])
        with open(note + ".new", "w", encoding="utf-8") as out:
            out.write(job)
        os.rename(note + ".new", note)
        for each in (job, swapper):
            assert lair.stand.ann.wait_end(each, 60)["status"] == "FINISHED", lair.stand.ann.output(each, "stderr")
        for path in (target, target / "deep", target / "deep" / "file"):
            hit.held(path.stat().st_uid == 0, f"{path} was given away")


def test_a_worker_without_privilege_is_closed_to_its_jobs(stand, low_lair, abstract):
    with attacked("confine files", stand) as hit:
        victim, archived = low_lair.victim(), archived_of(low_lair)
        judge(hit, low_lair.attempts(wishes_for_files(low_lair, victim, archived)))
        judge(hit, low_lair.attempts(wishes_for_processes(low_lair, victim, abstract)))
    needs(low_lair)


def test_the_runner_serves_its_worker_only(stand, lair):
    with attacked("confine runner", stand) as hit:
        path = f"{lair.folder}/runner.sock"
        seen = lair.attempts([["former", "hello", path, 1], ["present", "hello", path, 2]])
        for name, result in seen.items():
            hit.held(result != "open", f"{name}: {result}")
        hit.held(not lair.worker.log_events("worker.runner.lost"), "the worker was displaced")
        hit.held(lair.worker.alive(), "the worker")


CROWD = """
import os, socket, sys
os.chdir(sys.argv[1])
for _ in range(3000):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect("runner.sock")
"""


def test_the_log_does_not_grow_with_those_who_are_refused(stand, lair):
    with attacked("confine runner", stand) as hit:
        path = f"{lair.folder}/runner.log"
        before = os.path.getsize(path)
        lair.ended("/usr/bin/python3", "-c", CROWD, lair.folder)
        with open(path, encoding="utf-8") as log:
            log.seek(before)
            told = sum("runner.peer.refused" in line for line in log)
        hit.held(told < 100, f"{told} lines")


def test_folders_that_the_site_names_are_open(lair, folder):
    shared = folder / "named"
    shared.mkdir(mode=0o777)
    lair.ended("sh", "-c", f"echo x >{shared}/made && cat {shared}/made")
