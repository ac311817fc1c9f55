/* SPDX-License-Identifier: MIT */
#ifndef READERS_RECOVERY_DESK_BODY_H
#define READERS_RECOVERY_DESK_BODY_H

/* desk_body: the body of struct desk; for desk.c (tenants, and the crew that handles causes),
 * desk_mind.c (who leads) and desk_lanes.c (whose tests go out). Threads: what is said to be under
 * the lock is. */

#include "common/bus/consumer.h"
#include "readers/recovery/agenda.h"
#include "readers/recovery/desk.h"

#include <pthread.h>

#define CREW_MAX 64

/* The causes of one user of a tenant whose tests go out to other hosts. Under the lock. */
struct lane {
    struct lane *next; /* of its tenant */
    struct tenant *tenant;
    char user[USER_SIZE]; /* who submitted the first job that waits */
    unsigned out;         /* tests */
    struct uuid *parked;  /* causes whose turn has come, in order; the agenda has handed them out */
    size_t count;
    size_t room;
};

struct tenant {
    struct tenant *next;
    struct desk *desk;
    char name[TENANT_SIZE];
    struct bus_consumer *consumer; /* NULL: it rests; the thread of desk_serve() */
    int64_t needed_ms;             /* when it was last said to be; the same thread */
    /* lock: */
    bool rests;  /* it is neither minded nor led */
    bool fenced; /* its consumer is to be replaced */
    bool heard;  /* a message came since the mind last looked */
    int64_t heard_ms;
    bool leading;
    struct recovery_lead lead;
    int64_t renew_ms;
    int64_t reread_ms;
    struct lane *lanes;
    unsigned out; /* tests */
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
    bool look; /* at the tenants, at once */
    pthread_t minder;
    /* Threads that handle causes: one is idle, until there are so many; those that a while did
     * not need end. */
    struct crew_member {
        struct desk *desk;
        pthread_t thread;
        enum { CREW_NONE, CREW_WORKS, CREW_ENDED /* to be joined */ } state;
    } crew[CREW_MAX];
    unsigned crew_count; /* that work */
    unsigned idle;       /* of these */
    unsigned least_idle; /* since judged_ms */
    unsigned surplus;    /* that may end */
    int64_t judged_ms;
    unsigned out; /* tests that go out */
    bool has_minder;
};

/* desk_lanes.c; the lock is held. */
enum lane_answer { LANE_ENTERED, LANE_PARKED, LANE_FAILED /* no memory */ };
/* A test may go out now, and lane_leave() says when it is back; or its cause waits for its turn. */
enum lane_answer lane_enter(struct tenant *tenant, const char *user, const struct uuid *id,
                            struct lane **ret_lane);
void lane_leave(struct lane *lane);
/* Hands out a parked cause for which there is room now: it has entered. */
bool lane_next(struct desk *desk, struct agenda_item *ret_item, struct lane **ret_lane);
/* true: the cause was parked, and is not any more. */
bool lane_recall(struct tenant *tenant, const struct uuid *id);
void lanes_forget(struct tenant *tenant); /* what is parked */

/* The lock is held. */
void desk_step_down(struct tenant *tenant, const char *why);
/* The list only grows, at its head. */
struct tenant *desk_first(struct desk *desk);
void *desk_mind(void *desk); /* the minder's thread */
/* Callbacks of a tenant's consumer. */
void desk_on_delivery(void *tenant, struct bus_delivery **take_delivery);
void desk_on_state(void *tenant, enum bus_state state, uint32_t generation);

#endif
