/* SPDX-License-Identifier: MIT */
#ifndef WEBAPP_AUDIT_NOTE_H
#define WEBAPP_AUDIT_NOTE_H

/* audit_note: what of a request belongs into the audit log. An act that a transaction does has its
 * row in it (audit_log.h). The rest, refusals above all, goes to the auditor.
 * Threads: locked. */

#include "webapp/auditor.h"
#include "webapp/request.h"

/* Around a handler, on its thread: what it commits has its row. */
void audit_begin(struct request *req, struct audit_entry *entry);
void audit_end(struct request *req);
/* When the answer is known. */
void audit_answered(struct request *req, unsigned status, const struct err *err);
/* One of many acts of a request: its own row. */
void audit_next(const struct request *req, struct audit_entry *entry, const char *subject);

/* What a request could not do to each of many jobs: one row for each reason, with the number and
 * the first ids, however many there are. */
#define AUDIT_REFUSAL_KINDS 4  /* further reasons count with the last one */
#define AUDIT_REFUSAL_SAMPLE 4 /* ids */

struct audit_refusal {
    struct err err; /* of the first one */
    uint64_t count;
    struct uuid sample[AUDIT_REFUSAL_SAMPLE];
};
struct audit_refusals { /* all zero at first */
    struct audit_refusal kinds[AUDIT_REFUSAL_KINDS];
};
void audit_refusal_add(struct audit_refusals *refusals, const struct uuid *id,
                       const struct err *err);
void audit_refusals_end(const struct request *req, const struct audit_refusals *refusals);

#endif
