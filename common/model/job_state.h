/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_JOB_STATE_H
#define COMMON_MODEL_JOB_STATE_H

/* job_state: the states of a job and its legal moves, and the conditions (why it is there).
 * Threads: any. Memory: none. */

#include "common/base/base.h"
#include "common/base/sv.h"

enum job_state {
#define JOB_STATE(name, text, ends, next) JOB_##name,
#include "common/model/job_state.def"
#undef JOB_STATE
    JOB_STATE_COUNT
};

/* Why a job failed, is blocked or was cancelled; JOB_COND_NONE for one that went well. */
enum job_condition {
#define JOB_CONDITION(name, rank, meaning) JOB_COND_##name,
#include "common/model/condition.def"
#undef JOB_CONDITION
    JOB_CONDITION_COUNT
};

#define JOB_STATE_TEXT_MAX 32

const char *job_state_text(enum job_state state);
MUST_USE bool job_state_parse(struct sv text, enum job_state *ret_state);
bool job_state_can(enum job_state from, enum job_state to);
bool job_state_ends(enum job_state state);      /* FINISHED, CANCELLED, FAILED */
bool job_state_is_active(enum job_state state); /* PENDING ... ARCHIVING */
/* A process of the job may exist, or have existed: from SUBMITTING_JOB to ARCHIVING. */
bool job_state_has_run(enum job_state state);

const char *job_condition_text(enum job_condition condition);    /* "" for NONE */
const char *job_condition_meaning(enum job_condition condition); /* one sentence for people */
MUST_USE bool job_condition_parse(struct sv text, enum job_condition *ret_condition);
/* The one to keep of two: the more exact; the older one if they are equally exact. */
enum job_condition job_condition_keep(enum job_condition old, enum job_condition new_one);

#endif
