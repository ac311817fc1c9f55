/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_AUDIT_NOTE_H
#define WEBAPP_AUDIT_NOTE_H

/* audit_note: what of a request belongs into the audit log. An act that a transaction does has its
 * row in it (audit_log.h). The rest, refusals above all, goes into a bounded line that a thread
 * writes in batches: no request waits for it. What does not fit is counted, and the next row
 * that is written says how many were lost.
 * Threads: locked. */

#include "common/store/audit_log.h"
#include "webapp/request.h"

struct auditor;

MUST_USE enum err_code auditor_open(struct store *store, struct auditor **ret_auditor,
                                    struct err *err);
/* Writes what is in line, for some seconds at most. NULL is allowed. */
void auditor_free(struct auditor *auditor);
uint64_t auditor_lost(struct auditor *auditor);
size_t auditor_waiting(struct auditor *auditor);

/* Around a handler, on its thread: what it commits has its row. */
void audit_begin(struct request *req, struct audit_entry *entry);
void audit_end(struct request *req);
/* When the answer is known. */
void audit_answered(struct request *req, unsigned status, const struct err *err);
/* One of many acts of a request: its own row. */
void audit_next(const struct request *req, struct audit_entry *entry, const char *subject);
void audit_refused_one(const struct request *req, const char *subject, const struct err *err);

#endif
