/* SPDX-License-Identifier: MIT */
#ifndef CLI_SSE_H
#define CLI_SSE_H

/* sse: reads server-sent events (WHATWG HTML, 9.2) out of bytes as they come.
 * Threads: owner. Memory: sse_done() frees; views live for the call only. */

#include "common/base/buf.h"

#define SSE_EVENT_MAX ((size_t)1024 * 1024)

struct sse {
    struct buf line;
    struct buf data;
    char event[32];
    char id[64]; /* of the last event that was handed over: what Last-Event-ID shall say */
    /* One event; false ends the transfer. */
    bool (*on_event)(void *arg, const char *event, struct sv data);
    void *arg;
};

#define SSE_INIT(fn, fn_arg)                                                                       \
    ((struct sse){.line = BUF_INIT(SSE_EVENT_MAX),                                                 \
                  .data = BUF_INIT(SSE_EVENT_MAX),                                                 \
                  .on_event = (fn),                                                                \
                  .arg = (fn_arg)})

/* struct http_request.on_bytes with the struct sse as arg. */
bool sse_take(void *sse, struct sv bytes);
/* A new connection begins: half an event of the old one is dropped. */
void sse_restart(struct sse *sse);
void sse_done(struct sse *sse);

#endif
