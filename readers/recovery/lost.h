/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_LOST_H
#define READERS_RECOVERY_LOST_H

/* lost: finds jobs whose message the broker has lost, and sends new ones. Twice per lease it
 * compares the jobs that wait on a queue with the messages of that queue, and the time of the
 * oldest of these jobs with the time of those that were claimed since.
 * Threads: owner. Memory: lost_free() frees. */

#include "common/store/lost_store.h"
#include "readers/recovery/handle.h"

/* ---- the decision, apart for its test -------------------------------------------------------- */

struct lost_sample { /* of one queue */
    uint64_t waiting;
    uint64_t unsent;
    uint32_t ready;     /* messages; those that consumers hold are not among them */
    uint32_t consumers; /* each holds one message at most */
    int64_t passed_us;
    bool moved; /* something was claimed since the sample before, or this is not known */
};
struct lost_verdict {
    uint64_t sure;     /* so many messages are lost: send those of the oldest jobs */
    uint64_t passed;   /* so many more may be: of jobs that younger ones have passed */
    int64_t before_us; /* these were sent before; 0: nobody was passed */
};
/* Another sample of the same time: the one that lacks less counts. */
void lost_join(struct lost_sample *sample, const struct lost_sample *more);
/* first and second: samples a pause apart, in which a message in transit reaches a slot. before_us:
 * passed_us of the look before this one, 0 if there was none. margin_us: so much the order in which
 * jobs were accepted and that in which their messages were sent may differ. */
struct lost_verdict lost_decide(const struct lost_sample *first, const struct lost_sample *second,
                                int64_t before_us, int64_t margin_us);

/* ---- looking --------------------------------------------------------------------------------- */

struct lost;

struct lost_config {
    const struct handle_site *site;
    /* Waits until then (clock_mono_ms), and does what must not wait; true: stop. */
    bool (*pause)(void *arg, int64_t until_ms);
    void (*fenced)(void *arg, const struct recovery_lead *lead); /* another leads this tenant */
    void *arg;
};

struct lost *lost_new(const struct lost_config *cfg); /* NULL: no memory */
void lost_free(struct lost *lost);                    /* NULL is allowed */
/* When the next look is due. */
int64_t lost_due_ms(const struct lost *lost);
/* One look at the tenants of these leads. What fails for a tenant does not hold up the others; the
 * first failure is returned. ERR_FENCED goes to fenced() and is none. */
MUST_USE enum err_code lost_run(struct lost *lost, const struct recovery_lead *leads, size_t count,
                                struct err *err);

#endif
