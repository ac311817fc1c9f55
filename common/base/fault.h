/* SPDX-License-Identifier: MIT */
#ifndef COMMON_BASE_FAULT_H
#define COMMON_BASE_FAULT_H

/* fault: named failure points, compiled in for tests only (SLUICE_FAULTS).
 *   FAULT("job.claim.after_commit");
 * SLUICE_FAULT in the environment says what happens there, as NAME=ACTION[@N], separated by ';':
 * kill (SIGKILL to this process), stop (SIGSTOP), sleep:MILLISECONDS, fail (FAULT_FAILS is true).
 * @N acts at the N-th pass only; without it, at every pass. Each action is logged before it acts.
 * Threads: any. */

#include "common/base/base.h"

#ifdef SLUICE_FAULTS
bool fault_hit(const char *name); /* true: the caller shall act as if the step had failed */
/* For tests of one thread: text takes the place of SLUICE_FAULT, passes count from here. */
void fault_arm(const char *text);
#define FAULT(name) ((void)fault_hit(name))
#define FAULT_FAILS(name) fault_hit(name)
#else
#define FAULT(name) ((void)0)
#define FAULT_FAILS(name) false
#endif

#endif
