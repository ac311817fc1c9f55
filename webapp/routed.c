/* SPDX-License-Identifier: MIT */
#include "webapp/routed.h"

#include "common/base/buf.h"

/* The first that would have taken it, were it not disabled. */
static const struct routing_queue *disabled_before(const struct routing *routing,
                                                   const struct filter_row *row,
                                                   const struct routing_queue *chosen)
{
    for (size_t i = 0; i < routing_count(routing); i++) {
        const struct routing_queue *queue = routing_at(routing, i);
        if (queue == chosen && !queue->is_default)
            return NULL;
        if (!queue->queue.enabled && queue->filter &&
            filter_eval(queue->filter, row) == FILTER_TRUE)
            return queue;
    }
    return NULL;
}

void routed_text(const struct routing *routing, const struct filter_row *row,
                 const struct routing_queue *chosen, char ret_text[ROUTED_SIZE])
{
    const struct routing_queue *disabled = disabled_before(routing, row, chosen);
    char except[QUEUE_NAME_SIZE + 64] = "";
    if (disabled)
        (void)snprintf(except, sizeof(except), "; queue '%s' would take it, but is disabled",
                       disabled->queue.name);
    bool by_filter = chosen->filter && filter_eval(chosen->filter, row) == FILTER_TRUE;
    if (by_filter)
        (void)snprintf(ret_text, ROUTED_SIZE, "to queue '%s' by its filter (version %u)%s: %.120s",
                       chosen->queue.name, chosen->queue.version, except, chosen->queue.filter);
    else
        (void)snprintf(ret_text, ROUTED_SIZE, "to queue '%s': no filter was true%s",
                       chosen->queue.name, except);
}
