/* SPDX-License-Identifier: MIT */
#ifndef COMMON_MODEL_ENDED_H
#define COMMON_MODEL_ENDED_H

/* ended: the body of a message that tells of the ends of several jobs of a tenant,
 * {"v":1,"jobs":["<uuid>",...]}: a wake-up for whoever waits for one of them. A single end has its
 * job in the routing key. Threads: any. Memory: none is kept. */

#include "common/base/err.h"
#include "common/base/sv.h"
#include "common/base/uuid.h"

#define ENDED_JOBS_MAX 64
#define ENDED_SIZE_MAX (32 + ENDED_JOBS_MAX * (UUID_TEXT_SIZE + 2))
#define ENDED_KEY "several" /* in place of the job in the routing key */

/* Text ended by NUL into ret_text (at least ENDED_SIZE_MAX bytes); answers its length. */
size_t ended_write(const struct uuid *jobs, size_t count, char *ret_text);
/* ret_jobs has room for ENDED_JOBS_MAX. ERR_MALFORMED or ERR_TOO_LARGE for anything else. */
MUST_USE enum err_code ended_read(struct sv body, struct uuid *ret_jobs, size_t *ret_count,
                                  struct err *err);

#endif
