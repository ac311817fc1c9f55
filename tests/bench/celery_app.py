# SPDX-License-Identifier: MIT
"""celery_app: the peer as its manual advises for work that must not be lost."""

import os
import subprocess

from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_BROKER"], backend=os.environ["BENCH_BACKEND"])
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"confirm_publish": True},
    task_default_delivery_mode="persistent",
    task_default_queue="bench",
    result_expires=None,
)


@app.task(name="run")
def run(argv):
    done = subprocess.run(argv, capture_output=True, check=False)
    return [done.returncode, done.stdout.decode(), done.stderr.decode()]
