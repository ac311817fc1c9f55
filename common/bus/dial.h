/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BUS_DIAL_H
#define COMMON_BUS_DIAL_H

/* dial: a TCP connection that can be given up while it is being made (inside bus/ only).
 * Threads: any. Memory: the descriptor is given to the caller. */

#include "common/base/base.h"
#include "common/base/err.h"

#include <stdatomic.h>

struct dial {
    const char *host;
    int port;
    int timeout_ms;      /* for each address of the host */
    int user_timeout_ms; /* bytes that nobody acknowledges for so long end the connection */
    int wake_fd;         /* raised when `stop` may have changed; it is drained */
    atomic_bool *stop;
};

/* What dial_tcp() gives its sockets beyond the ordinary, for one that was made elsewhere. */
void dial_tune(int fd, int user_timeout_ms);
MUST_USE enum err_code dial_tcp(const struct dial *dial, int *ret_fd, struct err *err);

#endif
