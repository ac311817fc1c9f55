# SPDX-License-Identifier: MIT
"""sources: the files of this repository, with and without their comments."""

import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIP = {"build", "generated", ".git", ".state", "node_modules", "__pycache__", ".pytest_cache"}


def paths(*endings):
    """Paths below the root that end so: tracked and new ones, none that git ignores."""
    try:
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-c", "-o",
                               "--exclude-standard"], capture_output=True, check=True)
        found = {path for path in done.stdout.decode().split("\0") if path}
    except (FileNotFoundError, subprocess.CalledProcessError):  # an archive, or no git here
        found = set(_walk())
    return sorted(path for path in found
                  if path.endswith(endings) and os.path.isfile(os.path.join(ROOT, path)))


def _walk():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIP]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), ROOT)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as text:
        return text.read()


TOKEN = re.compile(r"""(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)"""
                   r"""|(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')""", re.S)


def without_text(source):
    """C source with the insides of comments and strings blanked; the line numbers stay."""
    def blank(match):
        kept = match.group()
        if match.group("text"):
            return kept[0] + " " * (len(kept) - 2) + kept[-1]
        return re.sub(r"[^\n]", " ", kept)
    return TOKEN.sub(blank, source)


def line_comments(source):
    """Line numbers of // comments."""
    return [source.count("\n", 0, match.start()) + 1
            for match in TOKEN.finditer(source) if match.group("line")]
