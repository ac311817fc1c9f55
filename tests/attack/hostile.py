#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""hostile: a job that tries what it must not be able to do. Its argument is a JSON list of
[name, act, arguments...]; it prints a JSON object of name -> "open" or the error that met it."""

import ctypes
import errno
import json
import os
import resource
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16


def check(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "")


def read(path):
    with open(path, "rb") as data:
        data.read(1)


def write(path):
    with open(path, "ab"):
        pass


def entries(path):
    os.listdir(path)


def mode(path):
    os.chmod(path, 0o777)


def follow(path):
    os.readlink(path)


def make(path):
    os.mkdir(path)


def remove(path):
    os.unlink(path)


def cut(path):
    os.truncate(path, 0)


def link(path):
    os.link(path, "taken")


def device():
    os.mknod("device", 0o60600, os.makedev(7, 0))


def hello(path, version):
    """What the runner says to somebody who greets it as its worker would."""
    with socket.socket(socket.AF_UNIX) as link_:
        link_.settimeout(10)
        os.chdir(os.path.dirname(path))  # a path to a socket may have 107 bytes
        link_.connect(os.path.basename(path))
        body = {"op": "hello", "id": 1, "version": version, "worker": "01890000-0000-7000-8000-000000000000"}
        if version > 1:
            body["secret"] = "0" * 64
        text = json.dumps(body).encode()
        link_.sendall(struct.pack(">I", len(text)) + text)
        head = link_.recv(4)
        answer = link_.recv(65536) if head else b""
        if b'"pid"' not in answer:
            raise PermissionError(errno.EACCES, "")


def abstract(name):
    with socket.socket(socket.AF_UNIX) as link_:
        link_.connect("\0" + name)


def signal(pid):
    os.kill(pid, 0)


def limit(pid):
    resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def trace(pid):
    check(LIBC.ptrace(PTRACE_ATTACH, pid, None, None))


def descriptors():
    """More than standard input, output, error, and the one that lists them."""
    left = [name for name in os.listdir("/proc/self/fd") if int(name) > 3]
    if not left:
        raise FileNotFoundError(errno.ENOENT, "")


def attempt(act, arguments):
    try:
        globals()[act](*arguments)
        return "open"
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)


def main():
    here = os.getcwd()
    seen = {}
    for name, act, *arguments in json.loads(sys.argv[1]):
        os.chdir(here)
        seen[name] = attempt(act, arguments)
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
