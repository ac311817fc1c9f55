# SPDX-License-Identifier: MIT
"""HTTPS: whom the service and its clients trust, certificates that change under load, and that no
limit is lost behind TLS. CORS is here as well."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certificates import Authority
from rest import Client
from sluice import BIN, read_proc
from waiting import let_pass, wait_until

DEADLINE_MS = 1500
PORTAL = "https://portal.example.org"


@pytest.fixture(scope="module")
def ca(site):
    return Authority(site.path("ca"))


@pytest.fixture(scope="module")
def stranger(site):
    return Authority(site.path("stranger"), "Another CA")


@pytest.fixture(scope="module")
def web(site, ca):
    cert, key = ca.issue("web")
    return site.web(tls=ca.context(), web_tls_cert=cert, web_tls_key=key,
                    web_cors_origins=f"{PORTAL}, http://localhost:3000",
                    web_deadline_ms=DEADLINE_MS, web_connections_per_address=60)


def port_of(web):
    return int(web.url.rsplit(":", 1)[1])


def connect(web):
    return socket.create_connection(("127.0.0.1", port_of(web)), timeout=10)


def serial_of(web):
    """The serial number of the certificate that a new connection is shown."""
    with connect(web) as link, web.tls.wrap_socket(link, server_hostname="127.0.0.1") as shown:
        return int(shown.getpeercert()["serialNumber"], 16)


def cpu_s(web):
    fields = read_proc(web.pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_closed(link):
    """Reads to the end; what came."""
    got = b""
    try:
        while part := link.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def refused_start(site, **settings):
    """What a web process that must not start says."""
    env = site.environment(web_port=0, **settings)
    done = subprocess.run([os.path.join(BIN, "sluice-web")], env=env, capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 1, done.stdout
    return done.stdout


def test_a_job_runs_from_its_submission_to_its_output_over_https(site, web):
    site.worker(name="tls-1")
    ann = site.client(web)
    job = ann.submit("echo", "over tls")
    assert ann.wait_end(job)["status"] == "FINISHED"
    assert ann.output(job) == b"over tls\n"
    waited = ann.submit("sh", "-c", "sleep 0.3; head -c 300000 /dev/zero")
    assert ann.get(f"/v1/jobs/{waited}?wait=50").json["status"] == "FINISHED"
    assert len(ann.output(waited)) == 300000
    answer = ann.get("/livez").expect(200)
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_the_command_line_trusts_the_ca_that_it_is_told(site, web, ca, stranger):
    ann = site.client(web)
    told = site.run("run", "--ca", ca.ca, "--", "echo", "hello", client=ann)
    assert (told.returncode, told.stdout) == (0, "hello\n"), told.stderr
    assert site.run("jobs", client=ann, client_tls_ca=ca.ca).returncode == 0
    for settings in ({}, {"client_tls_ca": stranger.ca}):
        done = site.run("jobs", client=ann, **settings)
        assert done.returncode == 3 and "--ca or SLUICE_CA" in done.stderr, done.stderr


def test_the_command_line_refuses_a_certificate_for_another_name_or_time(site, ca):
    for name, options, why in (("other", {"names": "DNS:elsewhere.example.org"}, "subject name"),):
        cert, key = ca.issue(name, **options)
        web = site.web(name, wait=False, tls=ca.context(), web_tls_cert=cert, web_tls_key=key)
        web.wait_log("web.listening")
        done = site.run("jobs", "--ca", ca.ca, client=site.client(web))
        assert done.returncode == 3 and why in done.stderr, done.stderr
        # A health check beside the process asks whoever shows its certificate, whatever the name.
        web_is = site.run("ready", web.url, "--wait", "20", web_tls_cert=cert)
        assert web_is.returncode == 0, web_is.stderr
        assert site.run("ready", web.url, web_tls_cert=ca.issue("not-it")[0]).returncode == 3
        web.stop()


@pytest.mark.filterwarnings("ignore:.*is deprecated")
def test_only_tls_1_2_and_later_is_spoken(web, ca):
    for most in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        old = ca.context()
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, most
        with pytest.raises(OSError), connect(web) as link:
            old.wrap_socket(link, server_hostname="127.0.0.1")
    for only in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        new = ca.context()
        new.minimum_version = new.maximum_version = only
        Client(web.url, tls=new).get("/livez").expect(200)


def test_a_certificate_is_replaced_under_load_and_no_request_fails(site, ca):
    cert, key = ca.issue("changing")
    web = site.web("changing", tls=ca.context(), web_tls_cert=cert, web_tls_key=key)
    stop, faults, served = threading.Event(), [], [0] * 6

    def load(which):
        kept = site.client(web, keep=which % 2 == 0)  # half of them shake hands each time
        while not stop.is_set():
            try:
                kept.get("/v1/whoami").expect(200)
                served[which] += 1
            except (OSError, AssertionError) as fault:
                faults.append(repr(fault))
                return
    threads = [threading.Thread(target=load, args=(which,)) for which in range(len(served))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            before = list(served)
            wait_until("requests", lambda: all(n > b for n, b in zip(served, before)), 20)
            ca.issue("changing")
            web.signal(signal.SIGHUP)
            wait_until("the new one", lambda: serial_of(web) == ca.serial, 10)
            before = list(served)
            wait_until("requests", lambda: all(n > b for n, b in zip(served, before)), 20)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults, faults
    good = ca.serial
    spoil(web, cert, key)
    assert serial_of(web) == good
    metrics = site.client(web).get("/metrics").body.decode()
    ends = float(metrics.split("\nsluice_tls_certificate_expires_timestamp_seconds ")[1].split()[0])
    assert ends > time.time() + 8 * 86400


def spoil(web, cert, key):
    """Each broken file is refused with a reason, and the old certificate stays."""
    with open(cert, "rb") as file:
        whole = file.read()
    for fault, break_it in (
            ("web.tls_cert", lambda: write(cert, whole[:200])),
            ("do not match", lambda: write(cert, Authority(os.path.dirname(cert) + "/x").issue("x"))),
            ("other users", lambda: os.chmod(key, 0o604)),
            ("No such file", lambda: os.remove(key))):
        seen = len(web.log_events("tls.reload.refused"))
        write(cert, whole)
        break_it()
        web.signal(signal.SIGHUP)
        wait_until("the refusal", lambda: len(web.log_events("tls.reload.refused")) > seen, 10)
        said = str(web.log_events("tls.reload.refused")[-1])
        assert fault in said, said


def write(path, what):
    if isinstance(what, tuple):
        with open(what[0], "rb") as file:
            what = file.read()
    with open(path, "wb") as out:
        out.write(what)


def test_what_cannot_work_is_told_at_the_start(site, ca):
    cert, key = ca.issue("good")
    old, old_key = ca.issue("old", days=0)
    assert "has expired" in refused_start(site, web_tls_cert=old, web_tls_key=old_key)
    assert "web.tls_key is not" in refused_start(site, web_tls_cert=cert)
    assert "web.tls_cert is not" in refused_start(site, web_tls_key=key)
    assert "needs web.tls_client_ca" in refused_start(site, web_tls_cert=cert, web_tls_key=key,
                                                      web_tls_client="required")
    os.chmod(key, 0o644)
    said = refused_start(site, web_tls_cert=cert, web_tls_key=key)
    assert "other users" in said and "chmod" in said
    for origin in ("*", "null", "https://a.example/path", "portal.example.org"):
        assert "is not an origin" in refused_start(site, web_cors_origins=origin)


def test_certificates_of_clients_are_required_and_checked(site, ca, stranger):
    cert, key = ca.issue("strict")
    mine = ca.issue("portal", names="", purpose="clientAuth")
    web = site.web("strict", tls=ca.context(*mine), web_tls_cert=cert, web_tls_key=key,
                   web_tls_client="required", web_tls_client_ca=ca.ca)
    site.client(web).get("/v1/whoami").expect(200)
    for wrong in (None, stranger.issue("portal", names="", purpose="clientAuth"),
                  ca.issue("late", names="", purpose="clientAuth", days=0),
                  ca.issue("server", names="", purpose="serverAuth")):
        with pytest.raises(OSError):
            Client(web.url, tls=ca.context(*(wrong or ()))).get("/livez")
    by_cli = {"client_tls_ca": ca.ca, "client_tls_cert": mine[0], "client_tls_key": mine[1]}
    assert site.run("jobs", client=site.client(web), **by_cli).returncode == 0
    done = site.run("jobs", "--ca", ca.ca, client=site.client(web))
    assert done.returncode == 3 and "certificate" in done.stderr, done.stderr
    web.stop()


def test_optional_certificates_of_clients_are_checked_when_shown(site, ca, stranger):
    cert, key = ca.issue("lenient")
    web = site.web("lenient", tls=ca.context(), web_tls_cert=cert, web_tls_key=key,
                   web_tls_client="optional", web_tls_client_ca=ca.ca)
    Client(web.url, tls=ca.context()).get("/livez").expect(200)
    mine = ca.issue("portal2", names="", purpose="clientAuth")
    Client(web.url, tls=ca.context(*mine)).get("/livez").expect(200)
    wrong = stranger.issue("portal2", names="", purpose="clientAuth")
    with pytest.raises(OSError):
        Client(web.url, tls=ca.context(*wrong)).get("/livez")
    web.stop()


def test_http_at_an_https_port_and_the_reverse_end_at_once(site, web, ca):
    with connect(web) as link:
        link.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert not is_closed(link).startswith(b"HTTP")
    plain = site.web("plain", web_deadline_ms=DEADLINE_MS)
    with pytest.raises(OSError):
        Client(plain.url.replace("http:", "https:"), tls=ca.context(), timeout_s=10).get("/livez")
    done = site.run("jobs", "--ca", ca.ca, client=Client(plain.url.replace("http:", "https:"), "x"))
    assert done.returncode == 3 and "speak TLS" in done.stderr, done.stderr
    Client(plain.url).get("/livez").expect(200)
    plain.stop()


def test_a_handshake_that_does_not_come_is_ended_and_holds_up_nobody(site, web):
    ann = site.client(web)
    idle = [connect(web) for _ in range(20)]
    for link in idle[:10]:
        link.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a hello
    began = time.monotonic()
    before = cpu_s(web)
    let_pass(0.4)
    assert cpu_s(web) - before < 0.2, "waiting for a handshake costs no processor time"
    half = web.tls.wrap_socket(connect(web), server_hostname="127.0.0.1")
    half.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n")
    times = []
    while not times or time.monotonic() - began < DEADLINE_MS / 1000 * 0.8:
        sent = time.monotonic()
        ann.get("/v1/whoami").expect(200)
        times.append(time.monotonic() - sent)
    assert min(times) < 1.0, times
    for link in [*idle, half]:
        link.settimeout(DEADLINE_MS / 1000 * 4)
        try:
            is_closed(link)
        except ssl.SSLError:
            pass  # it was cut
        link.close()
    assert time.monotonic() - began > DEADLINE_MS / 1000 * 0.8
    ann.get("/v1/whoami").expect(200)


def test_one_who_leaves_while_he_waits_is_noticed_over_tls(site, web):
    ann = site.client(web)
    job = ann.submit("sleep", "20")

    def gauge(name):
        text = ann.get("/metrics").body.decode()
        return int(text.split(f"\n{name} ")[1].split()[0])
    wait_until("silence", lambda: gauge("sluice_http_connections") == 1)  # our question's own
    link = web.tls.wrap_socket(connect(web), server_hostname="127.0.0.1")
    link.sendall(f"GET /v1/jobs/{job}?wait=60 HTTP/1.1\r\nHost: x\r\n"
                 f"Authorization: Bearer {ann.token}\r\n\r\n".encode())
    wait_until("the wait", lambda: gauge("sluice_http_waits") == 1)
    link.close()
    wait_until("its end", lambda: gauge("sluice_http_connections") == 1)
    ann.cancel(job)
    ann.wait_end(job)


def test_an_address_has_its_share_of_connections_over_tls_as_well(site, ca):
    cert, key = ca.issue("few")
    web = site.web("few", tls=ca.context(), web_tls_cert=cert, web_tls_key=key,
                   web_connections_per_address=8, web_requests_per_s_per_user=5)
    kept = [site.client(web, f"u{which}", keep=True) for which in range(9)]
    answers = [client.get("/v1/whoami") for client in kept]
    assert [answer.status for answer in answers] == [200] * 8 + [429]
    wait_until("too many", lambda: kept[0].get("/v1/whoami").status == 429, pause_s=0)
    web.stop()


def test_pages_of_origins_that_are_named_may_ask_and_read(site, web):
    ann = site.client(web)
    asked = {"Origin": PORTAL, "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "authorization,content-type"}
    answer = Client(web.url, tls=web.tls).call("OPTIONS", "/v1/jobs", headers=asked).expect(204)
    assert answer.headers["Access-Control-Allow-Origin"] == PORTAL
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert answer.headers["Access-Control-Max-Age"] == "600"
    assert answer.headers["Access-Control-Allow-Credentials"] is None
    for answer in (ann.get("/v1/jobs", Origin=PORTAL).expect(200),
                   Client(web.url, tls=web.tls).get("/v1/jobs", Origin=PORTAL).expect(401)):
        assert answer.headers["Access-Control-Allow-Origin"] == PORTAL
        assert "Location" in answer.headers["Access-Control-Expose-Headers"]
        assert "Origin" in answer.headers["Vary"]


def test_pages_of_other_origins_may_not(web):
    for origin in ("https://evil.example.org", PORTAL + ".evil.example", "http://portal.example.org",
                   "null", "*"):
        for method, status in (("OPTIONS", 204), ("GET", 401)):
            answer = Client(web.url, tls=web.tls).call(method, "/v1/jobs",
                                                       headers={"Origin": origin}).expect(status)
            assert answer.headers["Access-Control-Allow-Origin"] is None
            assert answer.headers["Access-Control-Allow-Methods"] is None
