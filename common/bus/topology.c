/* SPDX-License-Identifier: MIT */
#include "common/bus/bus.h"

#include <stdio.h>

static const char *const type_names[] = {[BUS_QUORUM] = "quorum", [BUS_CLASSIC] = "classic"};

const char *bus_submit_queue(const char *tenant, const char *queue, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.%s.submit.%s", tenant, queue);
    return ret_name;
}

const char *bus_recovery_queue(const char *tenant, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.%s.recovery", tenant);
    return ret_name;
}

const char *bus_worker_queue(const char *worker_id, char *ret_name)
{
    (void)snprintf(ret_name, BUS_NAME_SIZE, "sluice.worker.%s", worker_id);
    return ret_name;
}

const char *bus_queue_type_text(enum bus_queue_type type)
{
    return type_names[type];
}

bool bus_queue_type_parse(struct sv text, enum bus_queue_type *ret_type)
{
    for (size_t i = 0; i < ARRAY_LEN(type_names); i++) {
        if (sv_is(text, type_names[i])) {
            *ret_type = (enum bus_queue_type)i;
            return true;
        }
    }
    return false;
}
