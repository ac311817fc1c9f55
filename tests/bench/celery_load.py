# SPDX-License-Identifier: MIT
"""celery_load: what bench-load does, for Celery: confirmed publishing over connections of its own,
at most eight processes, threads beyond. Same options, same report, same log."""

import argparse
import gc
import json
import multiprocessing
import resource
import threading
import time

from kombu.common import maybe_declare

import celery_app

PROCESSES_MAX = 8


def share(options, client):
    """(number, due) of this client's requests; due is None in a closed loop."""
    if options.rate:
        total = int(options.rate * options.seconds)
        return ((at, int(at / options.rate * 1e9)) for at in range(client, total,
                                                                   options.connections))
    total = options.count or 10 ** 9
    return ((at, None) for at in range(client, total, options.connections))


def client(options, number, start, barrier, records):
    argv_of = options.command
    with celery_app.app.connection_for_write() as connection:
        producer = celery_app.app.amqp.Producer(connection)
        # Open and declared before the start, like the connections of bench-load.
        maybe_declare(celery_app.app.amqp.queues["bench"], producer.channel)
        barrier.wait()
        barrier.wait()
        pause = threading.Event()
        end = start.value + int(options.seconds * 1e9)
        for at, offset in share(options, number):
            due = time.monotonic_ns()
            if offset is not None:
                due = start.value + offset
                pause.wait(max(0, due - time.monotonic_ns()) / 1e9)
            if options.seconds and due >= end:
                break
            argv = [word.replace("@NUMBER@", f"{at + options.first:08d}") for word in argv_of]
            sent = time.monotonic_ns()
            celery_app.run.apply_async((argv,), producer=producer)
            records.append((at + options.first, due, sent, time.monotonic_ns()))


def process(options, numbers, start, barrier, results):
    gc.disable()
    records = []
    threads = [threading.Thread(target=client, args=(options, number, start, barrier, records))
               for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = resource.getrusage(resource.RUSAGE_SELF)
    results.put((records, used.ru_utime + used.ru_stime))


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--log")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if options.rate and not options.seconds:
        options.seconds = options.count / options.rate
    return options


def at_ms(times, part):
    return times[min(len(times) - 1, int(part * len(times)))] / 1e6


def main():
    options = read_options()
    # What the first call would import and make; the threads must not wait for it.
    app = celery_app.app
    assert app.backend and app.amqp.router and app.amqp.send_task_message
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(options.connections + 1)
    start = fork.Value("q", 0)
    results = fork.Queue()
    count = min(options.connections, PROCESSES_MAX)
    processes = [fork.Process(target=process, args=(
        options, range(at, options.connections, count), start, barrier, results))
        for at in range(count)]
    for each in processes:
        each.start()
    barrier.wait()
    start.value = time.monotonic_ns()
    barrier.wait()
    parts = [results.get() for _ in processes]
    for each in processes:
        each.join()
    records = sorted(record for part in parts for record in part[0])
    times = sorted(done - due for _number, due, _sent, done in records)
    if options.log:
        with open(options.log, "w", encoding="ascii") as log:
            log.writelines(f"{number} {due} {sent} {done} 201 -\n"
                           for number, due, sent, done in records)
    print(json.dumps({
        "requests": len(records), "start_ns": start.value,
        "seconds": (max(record[3] for record in records) - start.value) / 1e9,
        "cpu_s": sum(part[1] for part in parts), "p50_ms": at_ms(times, 0.5),
        "p99_ms": at_ms(times, 0.99), "max_ms": at_ms(times, 1),
        "statuses": {"201": len(records)}}))


if __name__ == "__main__":
    main()
