# SPDX-License-Identifier: MIT
"""browser: runs a script of tests/browser in node, with what it is about on its stdin."""

import json
import os
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests/browser")
ROLES = ("viewer", "user", "operator", "admin")


def tokens(site):
    """A token of each role, of a user named like it."""
    return {role: site.token(role, role) for role in ROLES}


def _given(site, web, given):
    return json.dumps(given | {
        "url": web.url, "tokens": tokens(site),
        "shots": os.environ.get("SLUICE_SHOTS", os.path.join(ROOT, "build/screenshots")),
        "chromium": os.environ.get("SLUICE_CHROMIUM", "/usr/bin/chromium"),
    }) + "\n"


def run(script, site, web, timeout_s=400, **given):
    """What the script prints; AssertionError with what it says when it fails."""
    done = subprocess.run(["node", os.path.join(FOLDER, script)], input=_given(site, web, given),
                          text=True, capture_output=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{script}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_with(deeds, script, site, web, timeout_s=400, **given):
    """The same for a script that has the test do things meanwhile: deeds[NAME]() whenever it prints
    `have NAME`."""
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(["node", os.path.join(FOLDER, script)], text=True, bufsize=1,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as node:
            timer = threading.Timer(timeout_s, node.kill)
            timer.start()
            try:
                said = list(_answer(deeds, node, _given(site, web, given)))
                node.wait()
            finally:
                node.kill()
                timer.cancel()
        errors.seek(0)
        assert node.returncode == 0, f"{script}:\n{''.join(said)}\n{errors.read()}"
    return "".join(said)


def _answer(deeds, node, given):
    node.stdin.write(given)
    for line in node.stdout:
        if line.startswith("have "):
            deeds[line.split()[1]]()
            node.stdin.write("done\n")
        else:
            yield line
