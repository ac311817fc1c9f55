/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_WAKE_H
#define COMMON_BASE_WAKE_H

/* wake: rouses a thread that polls (an eventfd). Threads: wake_raise any, the rest owner. */

#include "common/base/base.h"

MUST_USE int wake_open(void); /* a descriptor to poll for reading; -1 and errno on failure */
void wake_raise(int wake_fd); /* any number of raises before a drain count as one */
void wake_drain(int wake_fd);

#endif
