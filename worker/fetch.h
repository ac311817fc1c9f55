/* SPDX-License-Identifier: MIT */
#ifndef WORKER_FETCH_H
#define WORKER_FETCH_H

/* fetch: brings one input to a file: http and https by libcurl (redirects stay with these two),
 * file only from beneath one of the configured roots. Link-local addresses, where clouds hand out
 * credentials, are asked only when that is allowed.
 * Threads: any; fetch_start() before the first one. */

#include "common/base/err.h"
#include "common/config/config.h"
#include "common/model/job_state.h"

#define FETCH_HOST_SIZE 256
#define FETCH_URL_SIZE 2001

/* Why it may be worth while to try again later. */
struct fetch_cause {
    enum job_condition condition; /* NONE: trying again is of no use */
    char host[FETCH_HOST_SIZE];   /* without the brackets of an IPv6 address */
    uint16_t port;
    char url[FETCH_URL_SIZE]; /* without user, password, query and fragment */
};

struct fetch {
    const char *url;
    int fd;                          /* is written to */
    uint64_t max_bytes;              /* ERR_TOO_LARGE beyond it */
    int64_t deadline_ms;             /* clock_mono_ms(); ERR_TIMEOUT after it */
    uint32_t timeout_ms;             /* the time that this leaves, for people */
    const struct config_list *roots; /* of file URLs */
    void *arg;
    /* Asked several times a second; true ends the fetch with ERR_STOPPING. */
    bool (*interrupted)(void *arg);
    bool link_local;           /* such addresses may be asked */
    struct fetch_cause *cause; /* filled with an error; NULL: nobody asks */
};

MUST_USE enum err_code fetch_start(struct err *err);
MUST_USE enum err_code fetch_run(const struct fetch *fetch, struct err *err);

/* Copies all of a file, within max_bytes, asking interrupted between pieces; as fetch_run. */
MUST_USE enum err_code fetch_copy(const struct fetch *fetch, int from_fd, uint64_t *ret_bytes,
                                  struct err *err);

#endif
