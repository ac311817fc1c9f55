/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_FRAMING_H
#define WEBAPP_FRAMING_H

/* framing: whether a request's head leaves any doubt about where the request ends or whose it is.
 * A proxy in front might read such a head otherwise than MHD does, and what is a body to one would
 * be the next request to the other (RFC 9112, 3, 5.1, 6.1 and 6.3; RFC 9110, 5.5).
 * Threads: that of MHD. Memory: none. */

#include "common/base/err.h"

#include <microhttpd.h>

/* The request line as MHD gave it when it called for the head: views of its buffer, in which the
 * head lies behind them, cut by NUL. */
struct request_line {
    const char *method;
    const char *target; /* MHD has put NUL into it, where its path and its parameters end */
    const char *version;
    const char *raw; /* a copy of the target before that; NULL: there is none */
};

/* ERR_MALFORMED: the connection is to be closed behind the answer. */
MUST_USE enum err_code framing_check(struct MHD_Connection *mhd, const struct request_line *line,
                                     struct err *err);

#endif
