/* SPDX-License-Identifier: MIT */
#ifndef READERS_WEBHOOK_BODY_H
#define READERS_WEBHOOK_BODY_H

/* body: what a receiver is told, as JSON. Threads: any. */

#include "common/store/hook_send.h"

void body_write(const struct hook_event *event, const struct uuid *delivery, struct buf *ret_body);

#endif
