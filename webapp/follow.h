/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_FOLLOW_H
#define WEBAPP_FOLLOW_H

/* follow: output of running jobs as server-sent events. One thread looks at the files of all
 * followers and reads for those whose last event has been sent, so a slow reader holds one event
 * in memory and no thread. Their number is bounded.
 *
 *   id: <offset behind the bytes>     event: output    data: <base64 of the bytes>
 *   event: end                        data: <the job as JSON>
 *
 * Threads: locked. */

#include "common/model/job.h"
#include "webapp/web.h"

MUST_USE enum err_code followers_open(struct web *web, struct followers **ret_followers,
                                      struct err *err);
void followers_wake(struct followers *followers, const struct uuid *id); /* this job has ended */
size_t followers_count(struct followers *followers);
void followers_stop(struct followers *followers); /* all streams end; they can be taken up again */
void followers_free(struct followers *followers); /* NULL is allowed */

/* Answers with the stream of a job from offset on. ERR_RATE, ERR_OVERLOADED: too many. */
MUST_USE enum err_code follow_start(struct request *req, const struct job *job, const char *stream,
                                    uint64_t offset, struct err *err);

#endif
