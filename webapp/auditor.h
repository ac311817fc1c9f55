/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_AUDITOR_H
#define WEBAPP_AUDITOR_H

/* auditor: rows for the audit log that no transaction writes. They wait in a bounded line, which a
 * thread writes in batches: no request waits for it. No tenant and no user can fill the line for
 * others. What does not fit is counted, and a row of the tenant whose it was says how many were
 * lost.
 * Threads: locked. */

#include "common/store/audit_log.h"

struct auditor;

MUST_USE enum err_code auditor_open(struct store *store, struct auditor **ret_auditor,
                                    struct err *err);
/* Writes what is in line, for some seconds at most. NULL is allowed. */
void auditor_free(struct auditor *auditor);
void auditor_push(struct auditor *auditor, const struct audit_entry *entry);
uint64_t auditor_lost(struct auditor *auditor);
size_t auditor_waiting(struct auditor *auditor);

#endif
