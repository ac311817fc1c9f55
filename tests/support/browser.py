# SPDX-License-Identifier: MIT
"""browser: runs a script of tests/browser in node, with what it is about on its stdin."""

import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tests/browser")
ROLES = ("viewer", "user", "operator", "admin")


def tokens(site):
    """A token of each role, of a user named like it."""
    return {role: site.token(role, role) for role in ROLES}


def run(script, site, web, timeout_s=400, **given):
    """What the script prints; AssertionError with what it says when it fails."""
    given |= {
        "url": web.url, "tokens": tokens(site),
        "shots": os.environ.get("SLUICE_SHOTS", os.path.join(ROOT, "build/screenshots")),
        "chromium": os.environ.get("SLUICE_CHROMIUM", "/usr/bin/chromium"),
    }
    done = subprocess.run(["node", os.path.join(FOLDER, script)], input=json.dumps(given), text=True,
                          capture_output=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"{script}:\n{done.stdout}\n{done.stderr}"
    return done.stdout
