# SPDX-License-Identifier: MIT
"""Every command of the documentation, run in the order of its pages on a site that `./dev up` made."""

import os
import re
import shutil
import signal
import subprocess

import pytest

import markdown
from sluice import BIN, pids_below

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST = ["README.md", "docs/getting-started.md"]
NOW, LAST = None, "last"
MARK = "---- block "
# Packages and programs are there by now: a test installs and builds nothing.
BUILT = ("apt-get", "cmake", "npm", "node")
PAGE_S = 240  # servers take long to start on a machine that does much else


def pages():
    rest = sorted(f"docs/{name}" for name in os.listdir(f"{ROOT}/docs") if name.endswith(".md"))
    return FIRST + [path for path in rest if path not in FIRST]


def blocks_of(path, marker):
    with open(f"{ROOT}/{path}", encoding="utf-8") as text:
        found, _ = markdown.read(path, text.read())
    return [block for block in found if block.language == "sh" and block.marker == marker]


class Checkout:
    """A folder that looks like this repository after its build."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("home", "shim", "build/dev"):
            os.makedirs(f"{folder}/{name}")
        shutil.copy(f"{ROOT}/dev", folder)
        os.symlink(os.path.realpath(BIN), f"{folder}/build/dev/bin")
        for name in BUILT:
            with open(f"{folder}/shim/{name}", "w", encoding="ascii") as shim:
                shim.write("#!/bin/sh\nexit 0\n")
            os.chmod(f"{folder}/shim/{name}", 0o755)
        self.environment = {"HOME": f"{folder}/home", "LC_ALL": "C.UTF-8",
                            "PATH": f"{folder}/shim:{os.environ['PATH']}"}

    def run(self, blocks, begin=""):
        """What each block printed. A command that fails ends the page."""
        lines = ["trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", begin]
        for number, block in enumerate(blocks):
            lines += [f"echo; echo '{MARK}{number}'", block.text]
        with open(f"{self.folder}/page.log", "w+", encoding="utf-8") as log:
            with subprocess.Popen(["bash", "-e", "-c", "\n".join(lines)], cwd=self.folder,
                                  env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log) as shell:
                try:
                    status = shell.wait(PAGE_S)
                except subprocess.TimeoutExpired:
                    status = f"no end within {PAGE_S} s"
                    shell.kill()
            log.seek(0)
            printed = re.split(rf"\n?{MARK}\d+\n", log.read())[1:]
        at = blocks[max(0, len(printed) - 1)].place
        assert status == 0, f"{at}: {status}\n{printed[-1:]}\n{self.log_tail()}"
        return printed

    def log_tail(self):
        try:
            with open(f"{self.folder}/.state/log/dev.log", encoding="utf-8") as log:
                return log.read()[-3000:]
        except FileNotFoundError:
            return ""

    def follow(self, path, marker):
        blocks = blocks_of(path, marker)
        # A page begins where getting-started.md ends: a site that runs, and its address known.
        begin = "" if path in FIRST else 'eval "$(./dev env)"'
        for block, printed in zip(blocks, self.run(blocks, begin) if blocks else []):
            if block.shown is not None:
                assert markdown.agrees(block.shown.text, printed), (
                    f"{block.shown.place} shows\n{block.shown.text}\nand it printed\n{printed}")
        return len(blocks)


@pytest.fixture(scope="module", name="checkout")
def made(tmp_path_factory):
    it = Checkout(str(tmp_path_factory.mktemp("docs")))
    try:
        yield it
    finally:
        if os.path.exists(f"{it.folder}/.state"):
            subprocess.run([f"{it.folder}/dev", "down"], env=it.environment, check=False,
                           capture_output=True, timeout=60)
        for pid in pids_below(it.folder):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("path", pages())
def test_the_commands_of_a_page_do_what_it_shows(checkout, path):
    print(checkout.follow(path, NOW), "blocks")


def test_what_ends_the_site_comes_last(checkout):
    assert sum(checkout.follow(path, LAST) for path in pages()) > 0
    assert not pids_below(f"{checkout.folder}/.state")
