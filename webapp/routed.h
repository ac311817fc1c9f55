/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_ROUTED_H
#define WEBAPP_ROUTED_H

/* routed: why a job went to its queue, as it stands in its first event. Threads: any. Memory: none.
 */

#include "webapp/router.h"

#define ROUTED_SIZE 320

/* "to queue 'gpu' by its filter (version 2): 'gpu' IN tags". Queues that are disabled, and whose
 * filter is true before that one's, are told. Cut to its size. */
void routed_text(const struct routing *routing, const struct filter_row *row,
                 const struct routing_queue *chosen, char ret_text[ROUTED_SIZE]);

#endif
