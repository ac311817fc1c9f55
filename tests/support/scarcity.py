# SPDX-License-Identifier: MIT
"""scarcity: memory, threads, processes and descriptors that run out in a program of a site.

  with Scarce(site) as scarce:            # what is started meanwhile obeys
      web = site.web()
  scarce.of("sluice-web").no_threads = 1  # and so on, as struct orders of scarce.c says
"""

import mmap
import os
import resource
import struct

from sluice import BIN

PROGRAMS = ("sluice-web", "sluice-worker", "sluice-runner", "sluice-recovery", "sluice-alternate",
            "sluice-deadletter", "sluice-webhook")
NAMES = ("memory_in", "memory_every", "no_threads", "no_processes", "asked", "memory_failed",
         "threads_failed", "processes_failed")


class Orders:
    """What the processes of one program are told, and what they did of it."""

    def __init__(self, path):
        with open(path, "w+b") as out:
            out.write(bytes(8 * len(NAMES)))
            out.flush()
            self.__dict__["map"] = mmap.mmap(out.fileno(), 8 * len(NAMES))

    def __getattr__(self, name):
        return struct.unpack_from("q", self.map, 8 * NAMES.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("q", self.map, 8 * NAMES.index(name), value)


class Scarce:
    def __init__(self, site):
        self.site, self.usual = site, site.environment
        self.folder = site.path("scarce")
        os.makedirs(self.folder, exist_ok=True)
        self.orders = {name: Orders(os.path.join(self.folder, name)) for name in PROGRAMS}

    def of(self, program):
        return self.orders[program]

    def __enter__(self):
        options = os.environ.get("ASAN_OPTIONS", "")
        more = {"LD_PRELOAD": os.path.join(BIN, "scarce.so"), "SCARCE_FOLDER": self.folder,
                "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0".lstrip(":")}
        self.site.environment = lambda **settings: self.usual(**settings) | more
        return self

    def __exit__(self, *unused):
        self.site.environment = self.usual


class NoDescriptors:
    """The process with this pid gets no further descriptor inside the block; `spare` it gets."""

    def __init__(self, pid, spare=0):
        self.pid, self.spare, self.usual = pid, spare, None

    def __enter__(self):
        self.usual = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        used = {int(name) for name in os.listdir(f"/proc/{self.pid}/fd")}
        free = (at for at in range(max(used) + self.spare + 2) if at not in used)
        limit = [next(free) for _ in range(self.spare + 1)][-1]
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (limit, self.usual[1]))
        return self

    def __exit__(self, *unused):
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, self.usual)
