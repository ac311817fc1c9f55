/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_JUDGE_H
#define READERS_COMMON_JUDGE_H

/* judge: what becomes of the job that a dead message names. No I/O, no clock. Threads: any. */

#include "common/store/worker_store.h"
#include "readers/common/arrival.h"

enum verdict {
    VERDICT_KEEP,  /* a person has to look at it */
    VERDICT_LEAVE, /* the job does not need this message */
    VERDICT_BLOCK, /* it waits for this message: until its queue is back */
    VERDICT_FAIL,  /* it waits for this message, which is gone: the end */
    /* An earlier delivery of this message did so, and was cut short then. */
    VERDICT_WAS_BLOCKED,
    VERDICT_WAS_FAILED,
};

struct judge_facts {
    const struct arrival *arrival;
    const struct job *job; /* NULL: there is none of this id */
    bool owner_live;       /* of a job that has an owner */
};

/* Its reason in a sentence goes into ret_text. */
enum verdict judge(const struct judge_facts *facts, char *ret_text, size_t size);

#endif
