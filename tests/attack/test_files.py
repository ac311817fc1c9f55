# SPDX-License-Identifier: MIT
"""Paths and links that lead out of a job's folders."""

import http.server
import os
import shutil
import threading
import urllib.parse

import pytest

from attacks import attacked

PATHS = ("../x", "../../../../etc/passwd", "/etc/passwd", "a/../../b", "./a", "a//b", "a/.", "..", ".", "",
         "a/", "/", "a\u0000b", "a/" * 600 + "b", "~/x/../../y")
ESCAPED = ("..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "%2e%2e/x", "..%5c..%5cx", "%00", "a%00b", "..;/x",
           "%c0%ae%c0%ae/x", "%252e%252e/x", "....//x", "../../../../etc/passwd", "%ff..")
SECRET = "/etc/hostname"


@pytest.fixture(scope="module")
def roots(stand):
    folder = stand.site.path("inputs")
    os.mkdir(folder)
    os.symlink(SECRET, f"{folder}/link")
    os.symlink("/etc", f"{folder}/folder")
    os.mkfifo(f"{folder}/pipe")
    return folder


@pytest.fixture(scope="module")
def worker(stand, roots):
    return stand.site.worker(worker_file_roots=roots, worker_stage_timeout_ms=5000)


def input_of(ann, source, **more):
    job = ann.submit("cat", "in", fileInputs=[{"sourceUrl": source, "targetPath": "in"} | more])
    return job, ann.wait_end(job, 60)


def test_paths_stay_below(stand, ann, worker, roots):
    done = ann.submit("sh", "-c", "mkdir out; echo kept > out/a", archive={"includes": ["out"]})
    ann.wait_status(done, "FINISHED", timeout_s=60)
    assert ann.get(f"/v1/jobs/{done}/files/out/a").body == b"kept\n"
    with attacked("F-23 paths", stand) as hit:
        for path in PATHS:
            hit.refused(ann.post("/v1/jobs", {"name": "x", "command": ["true"], "fileInputs": [
                {"content": "x", "targetPath": path}]}), 400)
        for path in ESCAPED:
            hit.refused(ann.get(f"/v1/jobs/{done}/files/{path}"), (400, 404))
            hit.refused(ann.get(f"/v1/jobs/{done}/output/{path}"), (400, 404))
            hit.refused(ann.get(f"/ui/{path}"), (400, 404))
            hit.refused(ann.get(f"/v1/jobs/{path}"), (400, 404, 405))
        for patterns in (["../**"], ["/etc/**"], ["**"], ["out/../../**"], ["..", ".", "*"]):
            job = ann.post("/v1/jobs", {"name": "x", "command": ["touch", "mine"],
                                        "archive": {"includes": patterns}})
            if job.status == 201:
                ended = ann.wait_end(job.json["id"], 60)
                files = ann.get(f"/v1/jobs/{ended['id']}/files").json["files"]
                hit.held({file["path"] for file in files} <= {"mine"}, files)
            else:
                hit.refused(job, 400)
        for source in (SECRET, f"{roots}/../keys/acme/k1.pem", f"{roots}/link", f"{roots}/folder/hostname",
                       f"{roots}/pipe", f"{roots}", f"{roots}/", "/proc/self/environ", "/dev/zero",
                       f"{roots}%2F..%2F..%2Fetc/hostname", f"{roots}x/y", "//etc/hostname"):
            _, ended = input_of(ann, f"file://{source}")
            hit.held((ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED"), (source, ended))


PLANT = """
mkdir out real; echo good > out/good; ln -s /etc/hostname out/link; ln -s /etc out/folder
ln -s ../../../../../etc/hostname out/relative; ln -s /proc/self/environ out/self; ln -s . out/loop
mkfifo out/pipe; mknod out/null c 1 3 2>/dev/null; ln out/good out/hard; ln -s out/good out/inside
ln /etc/hostname out/stolen 2>/dev/null; chmod 000 real; ln -s real out/real
"""


def test_what_is_no_file_of_the_job_is_not_archived(stand, ann, worker):
    with open(SECRET, "rb") as data:
        secret = data.read()
    with attacked("F-23 archive", stand) as hit:
        job = ann.submit("sh", "-c", PLANT, archive={"includes": ["out", "**"]})
        ann.wait_end(job, 60)
        files = {file["path"] for file in ann.get(f"/v1/jobs/{job}/files").expect(200).json["files"]}
        hit.held({"out/good", "out/hard"} <= files, files)
        for name in ("link", "folder", "relative", "self", "loop", "pipe", "null", "inside", "real",
                     "folder/hostname", "loop/good"):
            hit.held(f"out/{name}" not in files, f"{name} was archived")
            hit.refused(ann.get(f"/v1/jobs/{job}/files/out/{name}"), (400, 404))
        kept = stand.site.path("archive", "acme", job)
        for folder, _, names in os.walk(kept):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as data:
                    hit.held(not os.path.islink(path) and (secret not in data.read() or name == "stolen"),
                             path)


def test_links_in_the_archive_lead_nowhere(stand, ann, worker):
    """Somebody who can write there, such as another job of the same host, puts links in place."""
    with attacked("F-23 planted", stand) as hit:
        for what in ("job", "run", "stdout", "files", "file"):
            job = ann.submit("sh", "-c", "echo own; mkdir out; echo x > out/a", archive={"includes": ["out"]})
            ann.wait_status(job, "FINISHED", timeout_s=60)
            top = stand.site.path("archive", "acme", job)
            run = os.path.join(top, sorted(os.listdir(top))[0])
            outside = stand.site.path(f"outside-{what}")
            shutil.copytree(top, outside)
            for folder, _, names in os.walk(outside):
                for name in names:
                    with open(os.path.join(folder, name), "w", encoding="ascii") as out:
                        out.write("STOLEN")
            inside = {"job": "", "run": os.path.basename(run)}.get(what, os.path.basename(run) + {
                "stdout": "/stdout", "files": "/files", "file": "/files/out/a"}.get(what, ""))
            place = os.path.join(top, inside).rstrip("/")
            (shutil.rmtree if os.path.isdir(place) else os.unlink)(place)
            os.symlink(os.path.join(outside, inside).rstrip("/"), place)
            for path in ("output/stdout", "files", "files/out/a", "output/stdout?follow"):
                answer = ann.get(f"/v1/jobs/{job}/{path}")
                hit.held(b"STOLEN" not in answer.body and answer.status < 500 or answer.status == 503,
                         f"{what}, {path}: {answer!r}")


def test_a_link_in_a_job_is_not_written_through(stand, ann, worker):
    with attacked("F-23 staging", stand) as hit:
        victim = stand.site.path("victim")
        with open(victim, "w", encoding="ascii") as out:
            out.write("mine")
        # The output's folder, seen from the job: replaced while the job runs.
        script = (f"cd {stand.site.path('archive')}/acme/$SLUICE_JOB_ID/* && mkdir -p files && "
                  f"ln -s {stand.site.folder} files/out && cd - && mkdir out && echo changed > out/victim")
        job = ann.submit("sh", "-c", script, archive={"includes": ["out"]})
        ann.wait_end(job, 60)
        with open(victim, encoding="ascii") as text:
            hit.held(text.read() == "mine", "a file outside the archive was written")
        for name in ("stdout", ".exit", "exit.json", "runner.sock", "../exit.json"):
            answer = ann.post("/v1/jobs", {"name": "x", "command": ["true"], "fileInputs": [
                {"content": "{}", "targetPath": name}]})
            if answer.status == 201:
                hit.held(ann.wait_end(answer.json["id"], 60)["status"] == "FINISHED", name)
            else:
                hit.refused(answer, 400)


# ---- addresses -------------------------------------------------------------------------------------

class Elsewhere(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", urllib.parse.unquote(self.path[1:]))
        self.end_headers()

    def log_message(self, *unused):
        pass


@pytest.fixture(scope="module")
def elsewhere():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_other_schemes_are_not_followed(stand, ann, worker, elsewhere):
    with attacked("SSRF schemes", stand) as hit:
        for source in ("gopher://127.0.0.1:25/x", "dict://127.0.0.1/x", "ftp://127.0.0.1/x", "ldap://x",
                       "scp://x/y", "smb://x/y", "file:etc/passwd", "file://host/etc/passwd", "HTTP:x",
                       "http://", "javascript:1", "http:/\n/x", " http://x"):
            hit.refused(ann.post("/v1/jobs", {"name": "x", "command": ["true"], "fileInputs": [
                {"sourceUrl": source, "targetPath": "in"}]}), 400)
        for target in ("file:///etc/hostname", "gopher://127.0.0.1:25/x", "ftp://127.0.0.1/x", "dict://x"):
            _, ended = input_of(ann, f"{elsewhere}/{urllib.parse.quote(target, safe='')}")
            hit.held((ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED"), ended)


def test_what_a_host_keeps_for_itself_is_no_input(stand, ann, worker, elsewhere):
    """Link-local addresses, and few others, are where clouds hand out credentials."""
    hosts = ("169.254.169.254", "169.254.1.1", "2852039166", "0xA9FEA9FE", "0251.0376.0251.0376",
             "[fe80::1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
             "[fd00:ec2::254]", "[fd00:ec2::23]", "100.100.100.200", "[::ffff:100.100.100.200]",
             "168.63.129.16", "[::ffff:168.63.129.16]", "192.0.0.192")
    sources = [f"http://{host}/latest/meta-data" for host in hosts]
    sources += [f"{elsewhere}/{urllib.parse.quote(source, safe='')}" for source in sources[:3]]
    with attacked("SSRF inputs", stand) as hit:
        for source in sources:
            job, ended = input_of(ann, source)
            hit.held((ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED")
                     and "worker.input_link_local" in ended["reason"], (source, job, ended))
