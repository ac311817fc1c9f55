/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_JOBS_H
#define WEBAPP_JOBS_H

/* jobs: what the files of the jobs resource share. Threads: any handler thread. */

#include "common/model/hook.h"
#include "common/model/job_request.h"
#include "common/store/job_store.h"
#include "webapp/allowance.h"
#include "webapp/request.h"
#include "webapp/routed.h"
#include "webapp/web.h"

/* The id in the path; ERR_NOT_FOUND if it is none. */
MUST_USE enum err_code job_path_id(const struct request *req, struct uuid *ret_id, struct err *err);
/* The job in the path; ERR_NOT_FOUND also for that of another tenant. */
MUST_USE enum err_code job_of_path(const struct request *req, struct job **ret_job,
                                   struct err *err);
/* As above, and the caller may act on it: ERR_FORBIDDEN otherwise. */
MUST_USE enum err_code job_of_path_to_change(const struct request *req, struct job **ret_job,
                                             struct err *err);

/* Cancels a job, if the caller may, and tells its worker. ERR_FORBIDDEN, ERR_NOT_FOUND, ERR_STATE.
 */
MUST_USE enum err_code job_cancel_one(const struct request *req, const struct job *job,
                                      struct job_cancelled *ret_done, struct err *err);

/* A request that is ready to be stored. */
struct submission {
    struct job_request *request; /* complete */
    struct routing *routing;     /* holds the queue */
    const struct job_queue *queue;
    char *text;
    char *tags;
    uint8_t hash[32]; /* with a key: of the request as it was sent, without its key */
    char key[129];    /* "" for none */
    struct job_new_hook hooks[HOOK_PER_JOB_MAX];
    size_t hook_count;
    char routed[ROUTED_SIZE]; /* why it goes to its queue, for its first event */
};
void submission_done(struct submission *submission);
#define SUBMISSION_AUTO __attribute__((cleanup(submission_done)))

/* Application merged in, limits checked, queue chosen. request is consumed. ERR_NOT_FOUND: its
 * application or its system. is_merged: the application is merged in already (a stored request); it
 * must still be there. */
MUST_USE enum err_code submission_prepare(const struct request *req,
                                          struct job_request **take_request, bool is_merged,
                                          struct submission *ret, struct err *err);
/* Application merged in and limits checked; the first half of the above, for explain. */
MUST_USE enum err_code submission_complete(const struct request *req,
                                           struct job_request **take_request, bool is_merged,
                                           struct job_request **ret_complete, struct err *err);
/* Points into submission and req. */
void submission_to_job(const struct request *req, const struct submission *submission,
                       struct job_new *ret_job);
/* ERR_BROKER_BLOCKED while the broker takes nothing. */
MUST_USE enum err_code submission_allowed(const struct request *req, struct err *err);
void submission_publish(const struct request *req, const struct submission *submission,
                        const struct job_submitted *done);
/* A list for the answer; the caller drops it. */
json_t *submission_warnings(const struct request *req, const char *queue);
/* 201 with Location. */
MUST_USE enum err_code reply_job(struct request *req, unsigned status, const struct uuid *id,
                                 struct err *err);

/* job_wait.c: parks the request until the job has ended, or for seconds at most. take_hold: of
 * ALLOWANCE_WAITS; it becomes the waiter's. */
MUST_USE enum err_code job_wait(struct request *req, const struct uuid *id, unsigned seconds,
                                struct allowance_hold *take_hold, struct err *err);

#endif
