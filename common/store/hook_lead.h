/* SPDX-License-Identifier: MIT */
#ifndef COMMON_STORE_HOOK_LEAD_H
#define COMMON_STORE_HOOK_LEAD_H

/* hook_lead: what each transaction of the sender begins with. For the hook_* files of this folder.
 * Threads: owner (of the connection). */

#include "common/store/hook_send.h"
#include "common/store/pool.h"

/* ERR_FENCED: another process sends now. Until the end of the transaction nobody else can begin to.
 * *ret_seq: the history was looked through up to there. */
MUST_USE enum err_code hook_lead_lock(struct txn *txn, const struct hook_lead *lead,
                                      uint64_t *ret_seq, struct err *err);

#endif
