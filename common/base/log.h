/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_LOG_H
#define COMMON_BASE_LOG_H

/* log: events as one JSON line each on stdout (stderr for the command line tool).
 *   log_event(LOG_WARN, "job.claim.lost", LOG_S("job", id), LOG_U("fence", n));
 * The name is stable and dotted; the fields are typed; secrets are never logged. A line is written
 * with one write(2), so lines of several threads and processes do not mix.
 * Threads: any (the level is atomic, the request id belongs to the thread). */

#include "common/base/base.h"
#include "common/base/err.h"
#include "common/base/sv.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct log_field {
    const char *key; /* NULL ends the list */
    enum { LOG_IS_TEXT, LOG_IS_VIEW, LOG_IS_UNSIGNED, LOG_IS_SIGNED, LOG_IS_BOOL } type;
    union {
        const char *text;
        struct sv view;
        uint64_t number;
        int64_t signed_number;
        bool flag;
    };
};

#define LOG_S(k, v) ((struct log_field){.key = (k), .type = LOG_IS_TEXT, .text = (v)})
#define LOG_V(k, v) ((struct log_field){.key = (k), .type = LOG_IS_VIEW, .view = (v)})
#define LOG_U(k, v) ((struct log_field){.key = (k), .type = LOG_IS_UNSIGNED, .number = (v)})
#define LOG_I(k, v) ((struct log_field){.key = (k), .type = LOG_IS_SIGNED, .signed_number = (v)})
#define LOG_B(k, v) ((struct log_field){.key = (k), .type = LOG_IS_BOOL, .flag = (v)})
#define LOG_END ((struct log_field){.key = NULL})

#define log_event(level, ...) log_event_list((level), __VA_ARGS__, LOG_END)
void log_event_list(enum log_level level, const char *name, ...);
/* An event with the code, text and pointer of an error. */
void log_err(const char *name, const struct err *err);

/* service is written on each line; it must live as long as the process. fd is not closed. */
void log_open(const char *service, int fd, enum log_level least);
void log_set_level(enum log_level least);
MUST_USE bool log_level_parse(struct sv text, enum log_level *ret_level);
/* The request or job that this thread works for, copied (63 bytes at most); NULL for none. */
void log_set_request(const char *request_id);
const char *log_request(void); /* "" if none */

#endif
