# SPDX-License-Identifier: MIT
"""markdown: the fenced blocks of the documentation, and what was shown compared with what came.

A block of commands is fenced as `sh`. A block fenced as `text` right below it shows what it
prints. `<!-- run: NAME -->` in the line above a block of commands names who runs it.
"""

import re

FENCE = re.compile(r"^( *)```(\S*)\s*$")
MARKER = re.compile(r"^ *<!-- run: ([^>]*?) -->\s*$")
INDENTED = re.compile(r"^ {4,}\S")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")

# What differs from run to run, and is shown by an example.
CHANGING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
    (re.compile(r"\beyJ[\w.-]+"), "TOKEN"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d+(?:\.\d+)? (m?s|min|h)\b"), r"N \1"),
)


class Block:
    """One fenced block: its place, language, marker, text, and the output shown below it."""

    def __init__(self, path, line, language, marker):
        self.path, self.line, self.language, self.marker = path, line, language, marker
        self.lines, self.shown = [], None

    @property
    def text(self):
        return "".join(self.lines)

    @property
    def place(self):
        return f"{self.path}:{self.line}"


def read(path, text):
    """(blocks, faults): every fenced block, and what keeps to no convention."""
    blocks, faults = [], []
    block, indent, marker, last, blank, in_list = None, 0, None, None, True, False
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        fence = FENCE.match(line)
        if block is not None:
            if fence and not fence[2]:
                last, block = block, None
            else:
                block.lines.append(line[indent:] if line[:indent].isspace() else line)
            continue
        if fence:
            block, indent = Block(path, number, fence[2], marker), len(fence[1])
            if not fence[2]:
                faults.append(f"{path}:{number}: a block without a language")
            if last is not None and last.language == "sh" and block.language == "text":
                last.shown = block
            blocks.append(block)
            marker = None
            continue
        if marker is not None:
            faults.append(f"{path}:{number}: a marker that stands before no block")
        found = MARKER.match(line)
        marker = found[1] if found else None
        if INDENTED.match(line) and blank and not in_list:
            faults.append(f"{path}:{number}: an indented block; fence it, with its language")
        if line.strip():
            last = None
            in_list = bool(ITEM.match(line)) or (in_list and line.startswith(" "))
        blank = not line.strip()
    if block is not None:
        faults.append(f"{path}: the block of line {block.line} has no end")
    return blocks, faults


def _line(text):
    for pattern, name in CHANGING:
        text = pattern.sub(name, text)
    return " ".join(text.split())


def _pattern(lines):
    """`...` stands for any text of a line; alone in a line, for any lines."""
    made = ""
    for line in lines:
        if line == "...":
            made += r"(?:.*\n)*?"
        else:
            made += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.compile(made)


def agrees(shown, printed):
    """Whether the output is as the documentation shows it; blanks and empty lines do not count."""
    wanted = [_line(line) for line in shown.splitlines() if line.strip()]
    came = "".join(_line(line) + "\n" for line in printed.splitlines() if line.strip())
    return _pattern(wanted).fullmatch(came) is not None
