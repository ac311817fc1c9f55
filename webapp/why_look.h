/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_WHY_LOOK_H
#define WEBAPP_WHY_LOOK_H

/* why_look: what a blocked job waits for, as it is now: some reads by an index. Threads: any
 * handler thread. Memory: none. */

#include "webapp/web.h"
#include "webapp/why_text.h"

/* What cannot be read is left out: the answer goes without it. */
void why_look(struct web *web, const struct job *job, const struct why_blocked *blocked,
              struct why_held *ret_held);

#endif
