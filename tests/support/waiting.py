# SPDX-License-Identifier: MIT
"""waiting: the one place where tests let time pass, always for a condition and with a deadline."""

import time


def wait_until(what, condition, timeout_s=60.0, pause_s=0.05):
    """Returns the first true answer of condition(); AssertionError with `what` at the deadline.

    `what` is a text, or a function that makes one (asked only when the deadline has passed).
    What is not true (None, 0, an empty list) means "not yet"; an exception of condition() ends the
    wait. A deadline is for what never comes, also on a machine that is slow or busy with others.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() >= deadline:
            text = what() if callable(what) else what
            raise AssertionError(f"waited {timeout_s:g} s for: {text}")
        time.sleep(pause_s)


def stays_true(what, condition, for_s, pause_s=0.1):
    """AssertionError as soon as condition() is not true within this time: what must not happen
    has no event to wait for."""
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        assert condition(), f"no longer: {what}"
        time.sleep(pause_s)


def let_pass(seconds):
    """For figures over a time in which nothing happens."""
    time.sleep(seconds)
