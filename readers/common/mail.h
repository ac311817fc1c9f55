/* SPDX-License-Identifier: MIT */
#ifndef READERS_COMMON_MAIL_H
#define READERS_COMMON_MAIL_H

/* mail: one plain text mail through an SMTP server (libcurl). Threads: any, each its own call. */

#include "common/base/buf.h"
#include "common/config/config.h"

#include <stdatomic.h>

/* The whole message, headers first, lines ended by CR LF. Bytes of the subject that are not
 * printable ASCII become '?', so that nothing from outside becomes a header. */
void mail_write(const struct config *cfg, const char *service, const char *subject,
                const char *text, struct buf *ret_mail);
/* Waits notify.timeout_ms at most, and less once *stop is true. With a password TLS is required. */
MUST_USE enum err_code mail_send(const struct config *cfg, struct sv mail, const atomic_bool *stop,
                                 struct err *err);

#endif
