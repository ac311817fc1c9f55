/* SPDX-License-Identifier: MIT */
#ifndef WORKER_OUTCOME_H
#define WORKER_OUTCOME_H

/* outcome: what the end of a run means for its job.
 * Threads: any. Memory: reason is in the struct. */

#include "common/model/job.h"
#include "worker/start_failure.h"

/* Notes of runner_client_kill, which come back in the record. */
#define KILL_NOTE_CANCEL "cancel"
#define KILL_NOTE_FENCED "fenced"

struct outcome {
    bool lost; /* the infrastructure ended the run: no outcome of the job, it runs again */
    enum job_state state; /* FINISHED, FAILED or CANCELLED */
    enum job_condition condition;
    bool attempt;                 /* the job itself ended this run */
    char reason[JOB_REASON_SIZE]; /* "" for a job that went well */
};

struct outcome_facts {
    const struct runner_record *record;
    const char *program; /* argv[0] */
    uint32_t max_seconds;
    uint32_t memory_mb;       /* 0: no limit */
    const char *last_line;    /* of its stderr; NULL: not looked at */
    const char *archive_room; /* of the disk that keeps outputs; NULL: the same */
    struct start_place place;
};

/* Whether the last line of stderr matters: the program may say that it got no memory. */
bool outcome_wants_last_line(const struct outcome_facts *facts);
void outcome_judge(const struct outcome_facts *facts, struct outcome *ret_outcome);

#endif
