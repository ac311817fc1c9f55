/* SPDX-License-Identifier: MIT */
#include "tests/support/test_jobs.h"

static void check(enum err_code rc, const struct err *err)
{
    if (rc == ERR_OK)
        return;
    fprintf(stderr, "test_jobs: %s: %s\n", err_name(rc), err->text);
    abort();
}

struct job_new test_job_new(void)
{
    return (struct job_new){.id = uuid_v7(),
                            .tenant = "acme",
                            .owner = "ann",
                            .name = "first",
                            .queue = "default",
                            .node_count = 1,
                            .cores_per_node = 2,
                            .memory_mb = 100,
                            .max_seconds = 3600,
                            .request = SV("{\"command\":[\"true\"]}"),
                            .tags = "[\"a\",\"b\"]",
                            .detail = "for a test"};
}

struct uuid test_submit(struct store *store)
{
    struct err err = {0};
    struct job_submitted done;
    struct job_new job = test_job_new();
    check(job_store_submit(store, &job, &done, &err), &err);
    return done.id;
}

struct job *test_job(struct store *store, const struct uuid *id)
{
    struct err err = {0};
    struct job *job = NULL;
    check(job_store_get(store, NULL, id, &job, &err), &err);
    return job;
}

enum job_state test_state(struct store *store, const struct uuid *id)
{
    AUTO(job_free) struct job *job = test_job(store, id);
    return job->status;
}

size_t test_moves(enum job_state from, enum job_state to, struct job_move *ret_moves)
{
    static const enum job_state way[] = {JOB_PENDING,     JOB_PROCESSING_INPUTS, JOB_STAGING_INPUTS,
                                         JOB_STAGING_JOB, JOB_SUBMITTING_JOB,    JOB_RUNNING,
                                         JOB_ARCHIVING,   JOB_FINISHED};
    size_t count = 0;
    bool on_way = false;
    for (size_t i = 0; i < ARRAY_LEN(way); i++) {
        if (on_way)
            ret_moves[count++] = (struct job_move){.to = way[i]};
        if (way[i] == from)
            on_way = true;
        if (way[i] == to)
            return count;
    }
    abort();
}

struct job_hold test_claim(struct store *store, const struct uuid *id, enum job_state to)
{
    struct err err = {0};
    struct job_move moves[JOB_MOVES_MAX] = {{.to = JOB_PENDING, .kind = "claimed"}};
    struct job_hold hold = {.id = *id, .worker = uuid_v7()};
    size_t further = test_moves(JOB_PENDING, to, moves + 1);
    struct job_claim claim = {.id = *id,
                              .epoch = 1,
                              .worker = hold.worker,
                              .from = JOB_PENDING,
                              .moves = moves,
                              .move_count = 1 + further};
    check(job_store_claim(store, &claim, &hold.fence, &err), &err);
    return hold;
}
