# SPDX-License-Identifier: MIT
"""Inputs by content, http and file URLs; what cannot be fetched is told."""

import base64
import http.server
import os
import threading

import pytest

DATA = bytes(range(256)) * 2000


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/data")
            self.end_headers()
        elif self.path == "/to-file":
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
            self.end_headers()
        elif self.path == "/data":
            self.send_response(200)
            self.send_header("Content-Length", str(len(DATA)))
            self.end_headers()
            self.wfile.write(DATA)
        else:
            self.send_error(404)

    def log_message(self, *unused):
        pass


@pytest.fixture(scope="module")
def url():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def roots(site):
    folder = site.path("inputs")
    os.mkdir(folder)
    with open(f"{folder}/data", "wb") as out:
        out.write(DATA)
    os.symlink("/etc/hostname", f"{folder}/link")
    return folder


@pytest.fixture(scope="module")
def ann(site, roots):
    site.worker(slots=2, worker_file_roots=roots, worker_stage_timeout_ms=5000)
    return site.client(site.web())


def run_cat(ann, source, **more):
    job = ann.submit("cat", "in/file", fileInputs=[
        {"sourceUrl": source, "targetPath": "in/file"} | more])
    return job, ann.wait_end(job)


def test_an_input_comes_by_http(ann, url):
    job, ended = run_cat(ann, url + "/data")
    assert ended["status"] == "FINISHED" and ann.output(job) == DATA


def test_a_redirection_is_followed(ann, url):
    job, ended = run_cat(ann, url + "/moved")
    assert ended["status"] == "FINISHED" and ann.output(job) == DATA


def test_an_input_comes_from_a_folder_that_is_allowed(ann, roots):
    job, ended = run_cat(ann, f"file://{roots}/data")
    assert ended["status"] == "FINISHED" and ann.output(job) == DATA


def test_the_mode_of_an_input_is_set(ann):
    job = ann.submit("./go", fileInputs=[
        {"content": "#!/bin/sh\necho ran\n", "targetPath": "go", "mode": "0755"}])
    assert ann.wait_end(job)["status"] == "FINISHED"
    assert ann.output(job) == b"ran\n"


@pytest.mark.parametrize("source", [
    "{url}/missing", "{url}/to-file", "file:///etc/hostname",
    "file://{roots}/../keys/acme/k1.pem", "file://{roots}/link", "file://{roots}/none"])
def test_what_cannot_or_may_not_be_fetched_fails_the_job_and_is_told(ann, url, roots, source):
    source = source.format(url=url, roots=roots)
    job, ended = run_cat(ann, source)
    assert (ended["status"], ended["condition"]) == ("FAILED", "INPUT_FAILED"), ended
    assert ended["reason"], job


@pytest.mark.parametrize("source", ["ftp://host/x", "gopher://host/x", "nonsense", ""])
def test_another_scheme_is_refused_at_once(ann, source):
    ann.post("/v1/jobs", {"name": "x", "command": ["true"], "fileInputs": [
        {"sourceUrl": source, "targetPath": "in"}]}).problem(400)


def test_binary_content_arrives(ann):
    text = "häß\u20ac" + base64.b64encode(DATA[:3000]).decode()
    job = ann.submit("cat", "in", fileInputs=[{"content": text, "targetPath": "in"}])
    ann.wait_end(job)
    assert ann.output(job).decode() == text
