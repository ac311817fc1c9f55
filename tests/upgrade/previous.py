# SPDX-License-Identifier: MIT
"""previous: the programs of the version that was tagged last, built from git."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.environ.get("SLUICE_PREVIOUS") or os.path.join(ROOT, "build", "previous")


def tag():
    """The newest tag before this commit; None if there is none, or no git."""
    try:
        done = subprocess.run(["git", "-C", ROOT, "describe", "--tags", "--abbrev=0", "HEAD^"],
                              capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _run(folder, log, *words):
    with open(os.path.join(folder, log), "ab") as out:
        done = subprocess.run(words, cwd=folder, stdout=out, stderr=out, check=False)
    if done.returncode:
        with open(os.path.join(folder, log), encoding="utf-8", errors="replace") as out:
            raise RuntimeError(f"{words}:\n{out.read()[-3000:]}")


def build(name):
    """The folder with its programs; what is built already is not built again."""
    folder = os.path.join(FOLDER, name)
    if not os.path.exists(os.path.join(folder, "CMakeLists.txt")):
        os.makedirs(folder, exist_ok=True)
        with subprocess.Popen(["git", "-C", ROOT, "archive", name],
                              stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", folder], stdin=archive.stdout, check=True)
        assert archive.returncode == 0
    _run(folder, "configure.log", "cmake", "--preset", "release", "-DSLUICE_TESTS=OFF")
    _run(folder, "build.log", "cmake", "--build", "--preset", "release", "-j", str(os.cpu_count()))
    return os.path.join(folder, "build", "release", "bin")
