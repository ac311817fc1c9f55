# SPDX-License-Identifier: MIT
"""A tenant without work costs recovery nothing; with its first blocked job it is served."""

from waiting import wait_until

FAST = {"recovery_tick_ms": 200, "recovery_first_test_ms": 100, "recovery_ramp_pause_ms": 100}
POLICY = {"recovery_application_unavailable": "constant every=300ms"}
ALWAYS_SERVED = 16


def add_tenants(site, count):
    """Before ours by name."""
    rows = ", ".join(f"('aaa-{at:03}', UTC_TIMESTAMP(6))" for at in range(count))
    site.sql(f"INSERT INTO tenants (name, created_at) VALUES {rows}")


def threads(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("Threads:")).split()[1])


def tenants_in(reader, event):
    return [line["tenant"] for line in reader.log_events(event)]


def test_only_those_with_work_are_served_and_they_rest_afterwards(fresh):
    web = fresh.web()
    root, ann = fresh.client(web, "root", "admin"), fresh.client(web)
    root.put("/v1/apps/demo/1", {"command": ["true"]}).expect(200, 201)
    add_tenants(fresh, 60)
    reader = fresh.reader("recovery", **FAST)
    wait_until("those that are always served",
               lambda: len(tenants_in(reader, "recovery.leads")) == ALWAYS_SERVED)
    assert "acme" not in tenants_in(reader, "recovery.serves")
    fresh.worker(**FAST, **POLICY)
    wait_until("a connection by which workers are watched",
               lambda: any(line["connection"] == "sluice-fleet"
                           for line in reader.log_events("bus.connected")))
    few = threads(reader)
    assert few < 60
    root.post("/v1/apps/demo/1/disable").expect(200)
    job = ann.submit(appId="demo", appVersion="1")
    ann.wait_status(job, "BLOCKED")
    wait_until("it is asked for", lambda: tenants_in(reader, "recovery.tested"))
    root.post("/v1/apps/demo/1/enable").expect(200)
    assert ann.wait_end(job)["status"] == "FINISHED"
    wait_until("it rests again", lambda: tenants_in(reader, "recovery.rests") == ["acme"])
    wait_until("its threads to end", lambda: threads(reader) == few)
    assert len(tenants_in(reader, "recovery.serves")) == ALWAYS_SERVED + 1
    # What was served once is served again.
    root.post("/v1/apps/demo/1/disable").expect(200)
    job = ann.submit(appId="demo", appVersion="1")
    ann.wait_status(job, "BLOCKED")
    root.post("/v1/apps/demo/1/enable").expect(200)
    assert ann.wait_end(job)["status"] == "FINISHED"
    assert fresh.count("recovery_leader") >= ALWAYS_SERVED + 1
