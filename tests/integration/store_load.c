/* SPDX-License-Identifier: MIT */
/* store_load: drives jobs from submission to their end until its standard input is closed, while
 * test_store_restart.py troubles the server; then checks that each job was counted once.
 * Prints "done N" now and then, so that the test knows that work goes on. */
#include "tests/support/test_db.h"
#include "tests/support/test_jobs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define THREADS 6
#define EVENTS_PER_JOB 9 /* submitted, claimed, PROCESSING_INPUTS ... FINISHED */

static struct test_db test;
static _Atomic bool stop;
static _Atomic uint64_t done;
static _Atomic uint64_t failed;

static enum err_code drive(struct store *store, struct err *err)
{
    struct job_new job = test_job_new();
    struct job_submitted submitted;
    struct job_move moves[JOB_MOVES_MAX] = {{.to = JOB_PENDING, .kind = "claimed"}};
    size_t count = 1 + test_moves(JOB_PENDING, JOB_SUBMITTING_JOB, moves + 1);
    struct job_claim claim = {.id = job.id,
                              .epoch = 1,
                              .worker = uuid_v7(),
                              .from = JOB_PENDING,
                              .moves = moves,
                              .move_count = count};
    struct job_hold hold = {.id = job.id, .worker = claim.worker};
    enum err_code rc = job_store_submit(store, &job, &submitted, err);
    if (rc == ERR_OK)
        rc = job_store_claim(store, &claim, &hold.fence, err);
    if (rc)
        return rc;
    count = test_moves(JOB_SUBMITTING_JOB, JOB_FINISHED, moves);
    const struct job_outcome outcome = {
        .has_exit_code = true, .run_fence = hold.fence, .attempt = true};
    return job_store_move(store, &hold, JOB_SUBMITTING_JOB, (struct job_moves){moves, count},
                          &outcome, err);
}

static void *work(void *unused)
{
    (void)unused;
    while (!stop) {
        struct err err = {0};
        if (drive(test.store, &err) == ERR_OK) {
            uint64_t now = ++done;
            if (now % 100 == 0) {
                printf("done %" PRIu64 "\n", now);
                (void)fflush(stdout);
            }
        } else {
            failed++;
            fprintf(stderr, "%s: %s\n", err_name(err.code), err.text);
        }
    }
    store_thread_end();
    return NULL;
}

static bool is(const char *what, const char *sql, uint64_t wanted)
{
    uint64_t number = test_db_number(&test, sql);
    if (number != wanted)
        fprintf(stderr, "%s: %" PRIu64 ", not %" PRIu64 "\n", what, number, wanted);
    return number == wanted;
}

int main(void)
{
    pthread_t threads[THREADS];
    char byte = 0;
    bool right = true;
    test_db_open(&test);
    test.cfg.acquire_timeout_ms = 120000;
    store_free(test.store);
    struct err err = {0};
    if (store_open(&test.cfg, &test.store, &err) != ERR_OK)
        return 1;
    for (int i = 0; i < THREADS; i++)
        right &= pthread_create(&threads[i], NULL, work, NULL) == 0;
    while (right && read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    stop = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    right &= failed == 0;
    right &= is("jobs", "SELECT COUNT(*) FROM jobs", done);
    right &= is("finished once",
                "SELECT COUNT(*) FROM jobs WHERE status = 'FINISHED' AND fence = 1 AND epoch = 1 "
                "AND attempts = 1 AND owner_worker IS NULL",
                done);
    right &= is("events", "SELECT COUNT(*) FROM job_events", done * EVENTS_PER_JOB);
    right &= is("messages", "SELECT COUNT(*) FROM outbox", done);
    test_db_close(&test);
    return right ? 0 : 1;
}
