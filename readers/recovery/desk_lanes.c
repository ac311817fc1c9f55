/* SPDX-License-Identifier: MIT */
#include "common/base/clock.h"
#include "readers/recovery/desk_body.h"

/* Tests that go out to other hosts may hang until their deadline, and users name the hosts. So each
 * user of a tenant has a lane: half of the tenant's tests at once; what finds its lane full is
 * parked there, while other lanes and all other tests go on. */

#define INNER_THREADS 4 /* that no test which goes out may take */
#define RESERVED 12     /* of the others: for tenants of which no test is out */
#define PARKED_LEAST 16

static unsigned tenant_limit(const struct desk *desk)
{
    return desk->cfg.site->cfg->recovery_testers;
}

static unsigned lane_limit(const struct desk *desk)
{
    return (tenant_limit(desk) + 1) / 2;
}

static bool has_room(const struct lane *lane)
{
    const struct desk *desk = lane->tenant->desk;
    unsigned most = CREW_MAX - INNER_THREADS - (lane->tenant->out > 0 ? RESERVED : 0);
    return lane->out < lane_limit(desk) && lane->tenant->out < tenant_limit(desk) &&
           desk->out < most;
}

static void take_room(struct lane *lane)
{
    lane->out++;
    lane->tenant->out++;
    lane->tenant->desk->out++;
}

static struct lane *lane_get(struct tenant *tenant, const char *user)
{
    struct lane *lane = tenant->lanes;
    while (lane && strcmp(lane->user, user) != 0)
        lane = lane->next;
    if (lane)
        return lane;
    lane = calloc(1, sizeof(*lane));
    if (!lane)
        return NULL;
    lane->tenant = tenant;
    (void)snprintf(lane->user, sizeof(lane->user), "%s", user);
    lane->next = tenant->lanes;
    tenant->lanes = lane;
    return lane;
}

static void lane_free(struct lane *lane)
{
    free(lane->parked);
    free(lane);
}

/* Nothing of it is out or parked. */
static void drop_if_empty(struct lane *lane)
{
    struct lane **at = &lane->tenant->lanes;
    if (lane->out > 0 || lane->count > 0)
        return;
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    lane_free(lane);
}

static bool park(struct lane *lane, const struct uuid *id)
{
    if (lane->count == lane->room) {
        size_t room = lane->room ? lane->room * 2 : PARKED_LEAST;
        struct uuid *parked = reallocarray(lane->parked, room, sizeof(*parked));
        if (!parked)
            return false;
        lane->parked = parked;
        lane->room = room;
    }
    lane->parked[lane->count++] = *id;
    return true;
}

static void unpark(struct lane *lane, size_t at)
{
    lane->count--;
    memmove(lane->parked + at, lane->parked + at + 1, (lane->count - at) * sizeof(*lane->parked));
}

enum lane_answer lane_enter(struct tenant *tenant, const char *user, const struct uuid *id,
                            struct lane **ret_lane)
{
    struct lane *lane = lane_get(tenant, user);
    if (!lane)
        return LANE_FAILED;
    if (has_room(lane)) {
        take_room(lane);
        *ret_lane = lane;
        return LANE_ENTERED;
    }
    if (park(lane, id))
        return LANE_PARKED;
    drop_if_empty(lane);
    return LANE_FAILED;
}

void lane_leave(struct lane *lane)
{
    lane->out--;
    lane->tenant->out--;
    lane->tenant->desk->out--;
    drop_if_empty(lane);
}

/* Fewer tests out go first: of the tenants, then of their users. */
static bool goes_before(const struct lane *lane, const struct lane *best)
{
    if (!best || lane->tenant->out != best->tenant->out)
        return !best || lane->tenant->out < best->tenant->out;
    return lane->out < best->out;
}

bool lane_next(struct desk *desk, struct agenda_item *ret_item, struct lane **ret_lane)
{
    struct lane *best = NULL;
    for (struct tenant *tenant = desk->tenants; tenant; tenant = tenant->next) {
        for (struct lane *lane = tenant->lanes; lane; lane = lane->next) {
            if (lane->count > 0 && has_room(lane) && goes_before(lane, best))
                best = lane;
        }
    }
    if (!best)
        return false;
    *ret_item = (struct agenda_item){best->parked[0], best->tenant};
    unpark(best, 0);
    take_room(best);
    *ret_lane = best;
    return true;
}

bool lane_recall(struct tenant *tenant, const struct uuid *id)
{
    for (struct lane *lane = tenant->lanes; lane; lane = lane->next) {
        for (size_t i = 0; i < lane->count; i++) {
            if (!uuid_eq(&lane->parked[i], id))
                continue;
            unpark(lane, i);
            drop_if_empty(lane);
            return true;
        }
    }
    return false;
}

void lanes_forget(struct tenant *tenant)
{
    struct lane *next = NULL;
    for (struct lane *lane = tenant->lanes; lane; lane = next) {
        next = lane->next;
        for (size_t i = 0; i < lane->count; i++)
            agenda_done(tenant->desk->agenda, &lane->parked[i], HANDLE_GONE);
        lane->count = 0;
        drop_if_empty(lane);
    }
}
