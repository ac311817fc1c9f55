# SPDX-License-Identifier: MIT
"""A client in TypeScript, generated of the contract that the service hands out, at work."""

import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
MADE = os.path.join(HERE, "generated")
NODE = os.environ.get("SLUICE_NODE", "node")
OPENAPI_TYPESCRIPT = "node_modules/openapi-typescript/bin/cli.js"
TSC = "node_modules/typescript/bin/tsc"


def node(*args, **env):
    done = subprocess.run([NODE, *args], cwd=HERE, env=os.environ | env, timeout=120, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    return done.stdout


def test_a_generated_client_submits_waits_reads_and_cancels(site):
    web = site.web()
    site.worker()
    ann = site.client(web)
    os.makedirs(MADE, exist_ok=True)
    with open(os.path.join(MADE, "openapi.json"), "wb") as out:
        out.write(ann.get("/v1/openapi.json").expect(200).body)
    node(OPENAPI_TYPESCRIPT, "generated/openapi.json", "--output", "generated/api.ts",
         "--default-non-nullable=false")
    node(TSC, "--project", ".")
    said = node("generated/out/client.js", SLUICE_URL=web.url, SLUICE_TOKEN=ann.token)
    assert said.endswith("the client is content\n"), said
    assert sorted(row[0] for row in site.sql("SELECT status FROM jobs")) == ["CANCELLED", "FAILED"]
