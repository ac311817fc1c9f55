# SPDX-License-Identifier: MIT
"""What is said of jobs that have ended, and of inputs that cannot be had: tests/support/explained_jobs.py."""

import contextlib
import http.server
import os
import re
import subprocess
import threading

import pytest

import sluice
from explained import explained
from jobs import Traces
from waiting import wait_until

EMPTY = ["MISSING", "None", "(null)"]


class Files(http.server.BaseHTTPRequestHandler):
    """/404, /500: that status; /large: 300000 bytes; /slow: 1 of 100 bytes, then nothing."""

    def do_GET(self):
        path = self.path.partition("?")[0].strip("/")
        if path.isdigit():
            self.send_error(int(path))
            return
        size = {"large": 300000, "slow": 100}.get(path, 6)
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(b"x" * (1 if path == "slow" else size))
            if path == "slow":
                self.connection.recv(1)  # until the other side has had enough

    def log_message(self, *unused):
        pass


@pytest.fixture(name="url", scope="module")
def fixture_url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(name="web", scope="module")
def fixture_web(site):
    return site.web(worker_grace_ms=4000, limits_max_minutes=500, limits_default_minutes=60)


@pytest.fixture(name="root", scope="module")
def fixture_root(site, web):
    return site.client(web, "root", "admin")


@pytest.fixture(name="ann", scope="module")
def fixture_ann(site, web):
    site.worker(slots=4, worker_output_max_bytes=4096, worker_input_max_bytes=100000,
                worker_stage_timeout_ms=3000, worker_grace_ms=4000, archive_max_bytes=5000)
    return site.client(web)


def why(client, job):
    told = client.get(f"/v1/jobs/{job}/why").expect(200).json["why"]
    assert not any(word in told for word in EMPTY), told
    return told


def ended(client, *command, **more):
    job = client.submit(*command, **more)
    client.wait_end(job)
    return job, why(client, job)


# ---- commands ------------------------------------------------------------------------------------

def test_an_exit_code_comes_with_the_last_line_of_stderr(ann):
    with explained("exit code") as row:
        job, told = ended(ann, "sh", "-c", "echo first >&2; echo no licence >&2; sleep 0.5; exit 3")
        row.said(told, cause=['in its own words: "no licence"'],
                 limit=["exit code 3", re.compile(r"after \d+\.\d s")],
                 step=[f"'sluice output {job} --stderr'"], never=["first"])


def test_a_last_line_is_quoted_without_what_deceives(ann):
    with explained("hostile last line") as row:
        line = r"\033[2J\"It is fine\"\342\200\256 " + "x" * 500 + "y"
        _, told = ended(ann, "sh", "-c", f"printf '{line}' >&2; exit 1")
        row.said(told, cause=['in its own words: "?[2J', "??? xxx"],
                 limit=[re.compile(r'x\.\.\."')], never=["\033", "\u202e", "y\"", "x" * 200])


def test_a_program_that_is_not_there_names_the_path(ann):
    with explained("no such program") as row:
        _, told = ended(ann, "nosuchprogram", env={"PATH": "/opt/a:/bin"})
        row.said(told, cause=["'nosuchprogram': no such program"],
                 limit=["PATH=/opt/a:/bin on host "], step=["give the full path", "--env PATH="],
                 never=["/usr"])
        _, told = ended(ann, "./nosuchprogram")
        row.said(told, cause=["there is no such file on host"], step=["job's own folder"],
                 never=["PATH"])


def test_a_file_that_may_not_be_executed_is_said_to_be_so(ann):
    with explained("not executable") as row:
        _, told = ended(ann, "./plain", fileInputs=[{"content": "echo x\n", "targetPath": "plain"}])
        row.said(told, cause=["may not execute it"], limit=[re.compile(r"user \d+ of jobs"), "on host"],
                 step=["chmod +x", "interpreter before it"], never=["no such", "is not there"])


@pytest.mark.parametrize("command", [["./s.py"], ["s.py"]])
def test_a_missing_interpreter_is_told_from_a_missing_file(ann, command):
    with explained("no interpreter") as row:
        job, told = ended(ann, *command, fileInputs=[
            {"content": "#!/opt/none/python -u\nprint()\n", "targetPath": "s.py", "mode": "0755"}],
            env={"PATH": "/bin:"})
        row.said(told, cause=["s.py': the file is there, but its interpreter"],
                 limit=["/opt/none/python (first line)"], step=["correct that line"],
                 never=["no such program", "no such file"])
        assert "ENOENT" in ann.job(job)["reason"]


@pytest.mark.parametrize("name, says", [("SEGV", "segmentation fault"), ("ABRT", "ended itself"),
                                        ("FPE", "arithmetic error"), ("TERM", "not by Sluice")])
def test_a_signal_is_explained(ann, name, says):
    with explained("crash") as row:
        job, told = ended(ann, "sh", "-c", f"echo trouble >&2; kill -{name} $$")
        row.said(told, cause=[says], limit=[f"(SIG{name})"], step=[f"sluice output {job} --stderr"],
                 never=["memory"])


def test_a_kill_from_outside_is_not_charged_to_anybody(ann):
    with explained("killed from outside") as row:
        job = ann.submit("sleep", "600")
        ann.wait_status(job, "RUNNING")
        pids = wait_until("its process", lambda: sluice.job_pids(job))
        for pid in pids:
            os.kill(pid, 9)
        ann.wait_end(job)
        row.said(why(ann, job), cause=["not by Sluice", "ran out of memory"],
                 limit=["signal 9 (SIGKILL)", re.compile(r"its peak of memory was \d+ MiB")],
                 step=[f"sluice resubmit {job}"])


def test_what_says_that_it_got_no_memory_was_ended_by_its_limit(site, ann):
    with explained("memory limit") as row:
        job, told = ended(ann, "python3", "-c", "x = bytearray(300 << 20)", memoryMB=40)
        row.said(told, cause=["its limit of memory, 40 MiB, was too low", "MemoryError"],
                 limit=[re.compile(r"peak of memory was \d+ of 40 MiB")], step=["--memory-mb 80"])
        assert ann.job(job)["condition"] == "MEMORY_LIMIT"
        assert site.run("wait", job, client=ann).returncode == 1  # as its command
    _, told = ended(ann, "sh", "-c", "echo MemoryError >&2; exit 1")
    assert "limit" not in told


def test_a_crash_beside_a_limit_of_memory_names_the_limit(ann):
    with explained("memory limit, crash") as row:
        job, told = ended(ann, "sh", "-c", "kill -SEGV $$", memoryMB=30)
        row.said(told, cause=["limit of memory of 30 MiB, at which it gets no more"],
                 limit=[re.compile(r"peak of memory was \d+ of 30 MiB")], step=["--memory-mb"],
                 never=["most likely its limit"])
        assert ann.job(job)["condition"] == "COMMAND_SIGNALLED"


def test_a_time_limit_names_the_most_that_may_be_asked_for(ann):
    with explained("time limit") as row:
        _, told = ended(ann, "sleep", "600", maxSeconds=1)
        row.said(told, cause=["the limit of its request (maxSeconds)"],
                 limit=["after 1 s", "at most 500 here"], step=["--max-minutes"])


def test_output_that_was_cut_is_no_complete_one(ann):
    with explained("output cut") as row:
        _, told = ended(ann, "sh", "-c", "head -c 28890 /dev/zero")
        row.said(told, cause=["exit code 0", "its beginning and its end"],
                 limit=[re.compile(r"stdout \d+ of 28890 bytes"), "worker.output_max_bytes"],
                 step=["--keep FILE"], never=["all that was to be kept is kept"])


def test_a_pattern_that_matched_nothing_is_named(ann):
    with explained("nothing to keep") as row:
        _, told = ended(ann, "sh", "-c", "echo x > a.log", archive={"includes": ["*.log", "*.csv"]})
        row.said(told, cause=["no file matched"], limit=["--keep '*.csv'"], step=["its own folder"],
                 never=["*.log", "is kept"])


def test_what_is_too_much_to_archive_is_counted(ann):
    with explained("archive limit") as row:
        _, told = ended(ann, "sh", "-c", "for i in 1 2 3; do head -c 3000 /dev/zero > $i; done",
                        archive={"includes": ["*"]})
        row.said(told, cause=["are to be archived"], step=["keep less"],
                 limit=["9000 bytes", "at most 5000 may be (archive.max_bytes)"])


def test_a_cancelled_job_tells_by_whom_and_how_long_it_ran(site, web, ann):
    with explained("cancelled while it ran") as row:
        job = ann.submit("sleep", "600")
        ann.wait_status(job, "RUNNING")
        site.client(web, "oskar", "operator").cancel(job)
        ann.wait_end(job)
        row.said(why(ann, job), cause=["oskar cancelled it", "while it was under way"],
                 limit=[re.compile(r"way, [\d.]+ s ago; it had run for [\d.]+ s")],
                 step=[f"Run it again: 'sluice resubmit {job}'"])
        row.said(why(site.client(web, "bob"), job), step=["Ask an operator of this site"])


def test_a_job_that_ignores_sigterm_tells_when_it_is_killed(site, root, ann):
    deaf = site.path("deaf")
    with explained("SIGTERM ignored") as row:
        job = ann.submit("sh", "-c", f"trap '' TERM; touch {deaf}; "
                                     "while :; do sleep 0.2; done")
        wait_until("its trap", lambda: os.path.exists(deaf))
        ann.wait_status(job, "RUNNING")
        root.cancel(job)
        row.said(why(ann, job), cause=["root asked to cancel it", "it was sent SIGTERM"],
                 limit=[re.compile(r"it [\d.]+ s ago"), "4000 ms later (worker.grace_ms), within "])
        ann.wait_end(job)


def test_an_argument_that_is_too_long_belongs_into_a_file(ann):
    with explained("argument too long") as row:
        told = ann.post("/v1/jobs", {"name": "x", "command": ["true", "x" * 200000]}).problem(400)
        row.said(told["detail"], cause=["too many"], limit=["200000 bytes", "131071"],
                 step=["input file"])


# ---- inputs --------------------------------------------------------------------------------------

def fetched(client, source):
    job = client.submit("true", fileInputs=[{"sourceUrl": source, "targetPath": "a"}])
    client.wait_end(job)
    return job, why(client, job)


def test_a_refused_input_names_address_and_status(ann, url):
    with explained("input 404") as row:
        job, told = fetched(ann, url + "/404")
        row.said(told, cause=[f"input a ({url}/404)", "not found"], limit=["status 404"],
                 step=["correct the address", f"sluice resubmit {job}"])
    with explained("input 500") as row:
        job, told = fetched(ann, url + "/500")
        row.said(told, cause=[f"input a ({url}/500)", "a fault of that server"],
                 limit=["status 500"], step=["later", f"sluice resubmit {job}"])


def test_credentials_in_an_address_are_told_to_nobody(site, ann, url):
    with explained("secret in an address") as row:
        job, told = fetched(ann, url.replace("//", "//ann:hush1@") + "/404?token=hush2#hush3")
        row.said(told, cause=[f"({url}/404)"], limit=["404"], never=["hush"])
        assert "hush" not in str(ann.job(job)["reason"])
        assert "hush" not in str(ann.get(f"/v1/jobs/{job}/events").expect(200).json)
        assert not site.count("jobs", "reason LIKE '%hush%'")


def test_an_input_that_is_too_large_or_slow_tells_how_much(ann, url):
    with explained("input too large") as row:
        _, told = fetched(ann, url + "/large")
        row.said(told, cause=["larger than the limit"], step=["sluice resubmit"],
                 limit=["300000 bytes", "100000 bytes (worker.input_max_bytes)"])
    with explained("input too slow") as row:
        _, told = fetched(ann, url + "/slow")
        row.said(told, cause=["it took longer"], step=["sluice resubmit"],
                 limit=["3000 ms (worker.stage_timeout_ms)", "1 of 100 bytes"])


def test_inputs_that_are_not_allowed_are_named(ann):
    with explained("input beneath no root") as row:
        _, told = fetched(ann, "file:///etc/hostname")
        row.said(told, cause=["/etc/hostname is beneath none of the folders"],
                 limit=["worker.file_roots (none is set on this worker)"], step=["send the file along"])
    with explained("link-local input") as row:
        _, told = fetched(ann, "http://169.254.169.254/latest")
        row.said(told, cause=["169.254.169.254 is link-local", "credentials"],
                 limit=["worker.input_link_local is false"], step=["sluice resubmit"])


# ---- disks ---------------------------------------------------------------------------------------

@contextlib.contextmanager
def small_disk(path):
    os.makedirs(path)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0755", "none", path],
                          capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs root: it mounts small file systems")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(path):
    name = os.path.join(path, "filler")
    with open(name, "wb", buffering=0) as out, contextlib.suppress(OSError):
        while out.write(b"\0" * 4096):
            pass
    return name


def test_a_full_work_disk_is_no_fault_of_the_job(fresh):
    with explained("work disk full") as row, small_disk(fresh.path("small")) as disk:
        ann = fresh.client(fresh.web())
        traces = Traces(fresh.path("traces"))
        fresh.worker(worker_work_root=disk)
        ann.wait_status(ann.submit("true"), "FINISHED")
        filler = fill(disk)
        job = ann.submit("cat", "a", fileInputs=[{"content": "x" * 20000, "targetPath": "a"}])
        wait_until(lambda: why(ann, job), lambda: "worker.work_root" in why(ann, job))
        row.said(why(ann, job), cause=["the disk of worker.work_root of host"],
                 limit=[re.compile(r"has \d+ of 16 MiB free")], step=["tried again", "make room"],
                 never=["failed"])
        os.unlink(filler)
        assert ann.wait_end(job)["status"] == "FINISHED"
        assert ann.output(job) == b"x" * 20000
        assert not traces.overlapped()


def test_a_full_archive_is_no_fault_of_the_job(fresh):
    with explained("archive disk full") as row, small_disk(fresh.path("small")) as disk:
        ann = fresh.client(fresh.web(archive_root=disk))
        fresh.worker(archive_root=disk)
        job, told = ended(ann, "sh", "-c", "head -c 40000000 /dev/urandom")
        row.said(told, cause=["archive.root of host", "no fault of the job"],
                 limit=[re.compile(r"has \d+ of 16 MiB free")],
                 step=["ask an administrator of this site to make room", f"sluice resubmit {job}"])
