/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_WHY_TEXT_H
#define WEBAPP_WHY_TEXT_H

/* why_text: why a job is where it is, in one sentence. Threads: any. Memory: none. */

#include "common/base/buf.h"
#include "common/bus/bus.h"
#include "common/store/why_store.h"

struct why_facts {
    const struct job *job;
    const struct why *why;
    enum bus_state broker; /* as this process sees it */
};

/* One sentence with its full stop is added to text; there is one for every state. */
void why_tell(const struct why_facts *facts, struct buf *text);

#endif
