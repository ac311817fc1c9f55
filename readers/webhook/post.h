/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_POST_H
#define READERS_WEBHOOK_POST_H

/* post: one attempt to deliver, over HTTP. The receiver is whoever a tenant named, so: only http
 * and https, no redirect is followed, no proxy of the environment is used, and the address that a
 * name stands for is looked at when the socket is opened: what was looked at is what is connected
 * to. Of the answer only the status is kept.
 * Threads: a poster belongs to one thread; post_start() before the first one. */

#include "common/base/address.h"
#include "common/config/config.h"
#include "common/store/hook_send.h"

#include <stdatomic.h>

struct post_site { /* immutable but for what is atomic */
    const struct config *cfg;
    struct address_nets allowed;
    atomic_bool stop;              /* what is under way may take POST_STOP_MS more */
    _Atomic int64_t send_until_ms; /* of clock_mono_ms(): no attempt begins later */
};
#define POST_STOP_MS 3000

MUST_USE enum err_code post_start(struct err *err);
void post_end(void);

struct poster;
MUST_USE enum err_code poster_open(struct post_site *site, struct poster **ret_poster,
                                   struct err *err);
void poster_free(struct poster *poster); /* NULL is allowed */
/* false: the end cut it short, and nobody knows what became of it; or it was too late to begin. */
MUST_USE bool post(struct poster *poster, const struct hook_delivery *delivery,
                   struct hook_result *ret_result);

/* What follows from an attempt that was answered by this status (0: by none) when the delivery has
 * been due for age_ms; retry_after_s is what the receiver asked for, or 0. */
void post_judge(const struct config *cfg, const struct hook_delivery *delivery,
                int64_t retry_after_s, struct hook_result *result);

#endif
