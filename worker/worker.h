/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

/* worker: what the parts of sluice-worker share. The first half lives as long as the process; the
 * second belongs to one incarnation: a worker that was declared dead drops all of it and begins
 * anew under another id (docs/ownership.md).
 * Threads: set up by main before others start; then read only, but for the atomics.
 * Memory:  main owns all of it. */

#include "common/bus/consumer.h"
#include "common/bus/publisher.h"
#include "common/config/config.h"
#include "common/service/fleet.h"
#include "common/store/job_store.h"
#include "common/store/job_writer.h"
#include "common/store/queue_store.h"
#include "common/store/worker_store.h"
#include "worker/announcer.h"
#include "worker/commands.h"
#include "worker/confinement.h"
#include "worker/discard.h"
#include "worker/heart.h"
#include "worker/runner_link.h"
#include "worker/slots.h"

#include <stdatomic.h>

#define WORKER_HOST_SIZE 256
#define WORKER_PATH_SIZE 1024

/* For a step that may fail without consequence; the call says why. */
static inline void best_effort(enum err_code rc)
{
    (void)rc;
}

struct worker {
    const struct config *cfg;
    struct store_config store_cfg;
    struct store *store;
    struct job_writer *writer;
    struct bus_config bus_cfg;
    struct bus_publisher *publisher;
    struct announcer *announcer;
    char work_dir[WORKER_PATH_SIZE]; /* <work_root>/<name> */
    char runner_path[WORKER_PATH_SIZE];
    struct confinement confinement; /* of its jobs */
    int work_fd;
    int archive_fd;
    struct uuid home; /* kept by work_dir: tells its workers from those of equal names elsewhere */
    char host[WORKER_HOST_SIZE];
    char boot_id[UUID_TEXT_SIZE];
    char queue[BUS_NAME_SIZE]; /* of the broker */

    struct uuid id;
    char id_text[UUID_TEXT_SIZE];
    struct witness witness;
    _Atomic(struct slots *) slots; /* callbacks may come before and after there are any */
    _Atomic(struct commands *) commands;
    struct runner_link *runner;
    struct runner_job *found; /* the runner's list at the start of this incarnation */
    size_t found_count;
    char runner_text[WORKER_RUNNER_SIZE]; /* which runner that was; "": not known */
    struct bus_consumer *consumer;
    struct heart *heart;
    struct discard *discard;
    struct fleet *fleet;
    atomic_bool leases_differ; /* of this worker and others of its site: shown by /readyz */
    atomic_bool fenced;        /* the whole worker: it was declared dead, or must assume so */
    atomic_bool draining;      /* or not receiving yet */
    atomic_bool told_to_drain; /* by its row: it takes no further jobs */
    atomic_uint left;          /* runs that go on without us */
    atomic_int busy;
};

#endif
