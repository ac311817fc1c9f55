# SPDX-License-Identifier: MIT
"""clocks: programs whose clocks a test moves, by a preloaded library (clock_step.c)."""

import os
import struct

from sluice import BIN


class Clock:
    """A wall clock and a boot clock for what is started with .environment; they may be moved at any
    time."""

    def __init__(self, path):
        self.path, self.boot_path = path, path + ".boot"
        self.environment = {"LD_PRELOAD": os.path.join(BIN, "clock_step.so"),
                            "CLOCK_STEP_FILE": path, "CLOCK_STEP_BOOT_FILE": self.boot_path}
        self.step(0)
        self.suspend(0)

    def step(self, seconds):
        _write(self.path, seconds)

    def suspend(self, seconds):
        """As if the host had been suspended for so long: only its boot clock went on."""
        _write(self.boot_path, seconds)


def _write(path, seconds):
    with open(path, "r+b" if os.path.exists(path) else "wb") as out:
        out.write(struct.pack("q", seconds))
