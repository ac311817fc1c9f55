/* SPDX-License-Identifier: MIT */
#include "readers/webhook/lanes.h"

#include <stdlib.h>

#define DOUBLINGS_MAX 20

struct lane {
    struct uuid id;
    unsigned under_way;
    unsigned silent; /* deliveries that were not answered, one after the other */
    int64_t hold_until_ms;
};

struct lanes { /* only lanes that have something to remember */
    struct lanes_config cfg;
    struct lane *items;
    size_t count;
    size_t room;
};

enum err_code lanes_open(const struct lanes_config *cfg, struct lanes **ret_lanes, struct err *err)
{
    struct lanes *lanes = calloc(1, sizeof(*lanes));
    if (!lanes)
        return err_set(err, ERR_NOMEM, "out of memory");
    lanes->cfg = *cfg;
    *ret_lanes = lanes;
    return ERR_OK;
}

void lanes_free(struct lanes *lanes)
{
    if (!lanes)
        return;
    free(lanes->items);
    free(lanes);
}

static struct lane *find(const struct lanes *lanes, const struct uuid *id)
{
    for (size_t i = 0; i < lanes->count; i++) {
        if (uuid_eq(&lanes->items[i].id, id))
            return &lanes->items[i];
    }
    return NULL;
}

unsigned lanes_room(const struct lanes *lanes, const struct uuid *id, int64_t now_ms)
{
    const struct lane *lane = find(lanes, id);
    if (!lane)
        return lanes->cfg.most;
    if (lane->hold_until_ms > now_ms)
        return 0;
    unsigned most = lane->silent ? 1 : lanes->cfg.most;
    return lane->under_way < most ? most - lane->under_way : 0;
}

unsigned lanes_under_way(const struct lanes *lanes, const struct uuid *id)
{
    const struct lane *lane = find(lanes, id);
    return lane ? lane->under_way : 0;
}

/* Receivers to whom nothing has been sent for long. */
static void forget_idle(struct lanes *lanes, int64_t now_ms)
{
    for (size_t i = 0; i < lanes->count;) {
        const struct lane *lane = &lanes->items[i];
        if (lane->under_way == 0 && lane->hold_until_ms + lanes->cfg.most_hold_ms < now_ms)
            lanes->items[i] = lanes->items[--lanes->count];
        else
            i++;
    }
}

enum err_code lanes_begin(struct lanes *lanes, const struct uuid *id, int64_t now_ms,
                          struct err *err)
{
    struct lane *lane = find(lanes, id);
    if (!lane && lanes->count == lanes->room)
        forget_idle(lanes, now_ms);
    if (!lane && lanes->count == lanes->room) {
        size_t room = lanes->room ? lanes->room * 2 : 64;
        struct lane *items = realloc(lanes->items, room * sizeof(*items));
        if (!items)
            return err_set(err, ERR_NOMEM, "out of memory");
        lanes->items = items;
        lanes->room = room;
    }
    if (!lane) {
        lane = &lanes->items[lanes->count++];
        *lane = (struct lane){.id = *id};
    }
    lane->under_way++;
    return ERR_OK;
}

static int64_t hold_ms(const struct lanes_config *cfg, unsigned silent)
{
    unsigned doublings = silent - 1 < DOUBLINGS_MAX ? silent - 1 : DOUBLINGS_MAX;
    int64_t hold = cfg->first_hold_ms << doublings;
    return hold < cfg->most_hold_ms ? hold : cfg->most_hold_ms;
}

void lanes_end(struct lanes *lanes, const struct uuid *id, bool answered, int64_t now_ms)
{
    struct lane *lane = find(lanes, id);
    if (!lane)
        return;
    lane->under_way -= lane->under_way > 0;
    lane->silent = answered ? 0 : lane->silent + 1;
    lane->hold_until_ms = answered ? 0 : now_ms + hold_ms(&lanes->cfg, lane->silent);
    if (lane->under_way == 0 && lane->silent == 0)
        *lane = lanes->items[--lanes->count];
}
