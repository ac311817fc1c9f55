/* SPDX-License-Identifier: MIT */
#ifndef CLI_PURGE_NOTE_H
#define CLI_PURGE_NOTE_H

/* purge_note: who removes what by hand, as rows of the audit log. One before anything goes, so that
 * a purge that is cut short has one too; one with what went; and one for each tenant whose jobs
 * went, so that its administrators see it. Threads: owner. */

#include "common/store/retention.h"

/* A row that cannot be written is an error: then nothing is to be removed. */
MUST_USE enum err_code purge_note_begin(const struct retention_pass *pass, struct err *err);
MUST_USE enum err_code purge_note_tenant(const struct retention_pass *pass, const char *tenant,
                                         uint64_t jobs, struct err *err);
/* failed: it did not go through. */
MUST_USE enum err_code purge_note_end(const struct retention_pass *pass, bool failed,
                                      struct err *err);

#endif
