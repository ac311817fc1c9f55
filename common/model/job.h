/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_JOB_H
#define COMMON_MODEL_JOB_H

/* job: a job as the database holds it. Threads: owner. Memory: job_free() frees all of it. */

#include "common/base/uuid.h"
#include "common/model/job_state.h"

/* Sizes hold the longest legal text and its NUL; they equal the columns in sql/. */
#define TENANT_SIZE 64
#define USER_SIZE 129
#define JOB_NAME_SIZE 129
#define APP_ID_SIZE 65
#define APP_VERSION_SIZE 33
#define SYSTEM_ID_SIZE 65
#define QUEUE_NAME_SIZE 64
#define JOB_REASON_SIZE 401

struct job_stream {
    uint64_t total_bytes; /* what the job wrote */
    uint64_t kept_bytes;  /* what the file holds */
};

struct job {
    struct uuid id;
    char tenant[TENANT_SIZE];
    char owner[USER_SIZE];
    char name[JOB_NAME_SIZE];
    char app_id[APP_ID_SIZE]; /* "" for a plain command; the same for the next two */
    char app_version[APP_VERSION_SIZE];
    char system_id[SYSTEM_ID_SIZE];
    char queue[QUEUE_NAME_SIZE];
    enum job_state status;
    enum job_condition condition;
    uint32_t epoch;
    uint64_t fence;
    bool has_owner;
    struct uuid owner_worker;
    bool cancel_requested;
    char cancel_by[USER_SIZE];
    uint32_t node_count;
    uint32_t cores_per_node;
    uint32_t memory_mb;   /* 0: no limit */
    uint32_t max_seconds; /* wall-clock limit */
    uint32_t attempts;    /* runs that the job itself ended */
    uint32_t losses;      /* runs that the infrastructure ended */
    bool has_exit_code;
    int exit_code;
    int term_signal; /* 0: not ended by a signal */
    char reason[JOB_REASON_SIZE];
    uint64_t run_fence; /* fence of the run whose output is kept; 0: never ran */
    struct job_stream out;
    struct job_stream errs;
    bool visible;
    /* Microseconds since 1970 UTC; 0: has not happened. */
    int64_t created_us;
    int64_t updated_us;
    int64_t started_us;
    int64_t ended_us;
    char *request; /* JSON: the request with the application merged in */
    char *tags;    /* JSON array of strings */
};

void job_free(struct job *job);
DEFINE_AUTO(struct job *, job_free)

#endif
