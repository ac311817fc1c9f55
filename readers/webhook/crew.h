/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_CREW_H
#define READERS_WEBHOOK_CREW_H

/* crew: the threads that wait for receivers. They touch no database: deliveries go in, results come
 * out. Threads: locked. Memory: a delivery is the crew's until its result was taken; then the
 * taker's (delivery_free). */

#include "readers/webhook/post.h"

struct crew;

MUST_USE enum err_code crew_open(struct post_site *site, unsigned threads, struct crew **ret_crew,
                                 struct err *err);
/* Waits for what is under way; results that nobody took are lost. NULL is allowed. */
void crew_free(struct crew *crew);
unsigned crew_free_threads(struct crew *crew); /* so many more can begin at once */
/* There must be a free thread. */
void crew_give(struct crew *crew, struct hook_delivery *take_delivery);
/* Waits until there is a result or the time has come, and takes one. false: none. *ret_known false:
 * the end cut it short. */
MUST_USE bool crew_take(struct crew *crew, int64_t until_ms, struct hook_result *ret_result,
                        bool *ret_known);
bool crew_holds(struct crew *crew, const struct uuid *delivery); /* its result was not taken */
unsigned crew_has_of(struct crew *crew, const char *tenant);     /* whose results were not taken */
/* What is under way may take a little longer; nothing more may be given. */
void crew_stop(struct crew *crew);
bool crew_is_idle(struct crew *crew); /* nothing is under way, and all results were taken */
void delivery_free(struct hook_delivery *delivery);

#endif
