/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_DESK_BODY_H
#define READERS_RECOVERY_DESK_BODY_H

/* desk_body: the body of struct desk; for desk.c (tenants, and the crew that handles causes) and
 * desk_mind.c (who leads). Threads: what is said to be under the lock is. */

#include "common/bus/consumer.h"
#include "readers/recovery/agenda.h"
#include "readers/recovery/desk.h"

#include <pthread.h>

#define CREW_MAX 64

struct tenant {
    struct tenant *next;
    struct desk *desk;
    char name[TENANT_SIZE];
    struct bus_consumer *consumer; /* NULL: it rests; the thread of desk_serve() */
    int64_t needed_ms;             /* when it was last said to be; the same thread */
    /* lock: */
    bool rests; /* it is neither minded nor led */
    bool heard; /* a message came since the mind last looked */
    int64_t heard_ms;
    bool leading;
    struct recovery_lead lead;
    int64_t renew_ms;
    int64_t reread_ms;
};

struct desk {
    struct desk_config cfg;
    struct uuid self;
    pthread_mutex_t lock;
    pthread_cond_t due;  /* the agenda has changed */
    pthread_cond_t mind; /* leading has */
    struct agenda *agenda;
    struct tenant *tenants;
    bool stopping;
    bool fenced;
    bool look; /* at the tenants, at once */
    pthread_t minder;
    pthread_t crew[CREW_MAX];
    unsigned crew_count;
    bool has_minder;
};

/* The lock is held. */
void desk_step_down(struct tenant *tenant, const char *why);
/* The list only grows, at its head. */
struct tenant *desk_first(struct desk *desk);
void *desk_mind(void *desk); /* the minder's thread */
/* Callbacks of a tenant's consumer. */
void desk_on_delivery(void *tenant, struct bus_delivery **take_delivery);
void desk_on_state(void *tenant, enum bus_state state, uint32_t generation);

#endif
